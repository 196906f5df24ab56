"""`dovetail explain`, `queues` and `doctor`: read the cluster, ask `control`'s own functions, return what to print."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from extender.adapters.http.wait_report import WaitReport
from extender.adapters.kube.api import Refused, connect
from extender.app.inspection import tables
from extender.app.inspection.checks import Diagnosis
from extender.app.inspection.known_waits import waits_of
from extender.app.inspection.reading import NotAllowed, Reader, in_short, look, policy_in_force, settings_of
from extender.cluster.model import Pod
from extender.errors import DovetailError
from extender.explain.advice import changes_for
from extender.explain.doctor import PROBLEM, findings
from extender.explain.planned_order import PlannedOrder
from extender.explain.pod import HELD, explain, state_of
from extender.explain.pod_in_plan import case_of
from extender.explain.queues import queue_states
from extender.settings import Settings


class NoSuchPod(DovetailError):
    """The pod that was asked about is not there, or its name cannot be one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How to reach the cluster, which settings to go by (None: the cluster's own), and how to answer."""

    kubeconfig: Path | None
    config: Path | None
    json: bool
    namespace: str = ""
    """Where Dovetail is; empty: to be found."""
    control: str = ""
    """The address of `dovetail control`; empty: through its pods."""


def explain_pod(asked: Asked, name: str) -> tuple[str, bool]:
    """Return why a pod waits, or where it went, and whether all was read for it.

    Raises DovetailError where it cannot be said.
    """
    namespace, pod_name = _split(name)
    reader, told, by = _begin(asked)
    path = f"/api/v1/namespaces/{namespace}/pods/{pod_name}"
    try:
        raw = reader.api.read(path)
    except Refused as refusal:
        if refusal.status == 404:
            raise NoSuchPod(f"there is no pod {name}; accepted: NAMESPACE/NAME of one that exists") from None
        raise NotAllowed(f"pod {name} cannot be read: {in_short(refusal)}") from None
    waits = waits_of(reader, asked.control) if told.locality.wait_seconds else None
    known = waits if isinstance(waits, WaitReport) else None
    seen = look(reader, told, by, known)
    found = seen.require(reader)
    pod = next((it for it in seen.pods if it.uid == raw["metadata"]["uid"]), None)
    if pod is None:
        raise NoSuchPod(f"pod {name} went away while it was looked at")
    change = _changes(found, pod, told, waits if isinstance(waits, str) else "")
    policy = policy_in_force(told, known)
    answer = explain(found, pod, policy, change, _refusal(raw), waits_known=known is not None)
    shown = msgspec.to_builtins(answer) if asked.json else tables.explanation(answer)
    return _answer(reader, seen.told_by, shown), not reader.unread


def show_queues(asked: Asked) -> tuple[str, bool]:
    """Return where all queues stand, and whether all was read for it. Raises DovetailError where it cannot be said."""
    reader, told, by = _begin(asked)
    seen = look(reader, told, by)
    found = queue_states(seen.require(reader))
    shown = {"queues": msgspec.to_builtins(found)} if asked.json else tables.queues(found)
    return _answer(reader, by, shown), not reader.unread


def examine(asked: Asked, extender: str) -> tuple[str, bool]:
    """Return what doctor found, and whether all is well as far as that goes: no problem, and nothing left unread."""
    reader, told, by = _begin(asked)
    seen = look(reader, told, by)
    found = findings(Diagnosis(reader, extender, asked.control).facts(seen))
    well = not reader.unread and all(it.level != PROBLEM for it in found)
    shown = {"findings": msgspec.to_builtins(found)} if asked.json else tables.findings(found)
    return _answer(reader, by, shown), well


def _begin(asked: Asked) -> tuple[Reader, Any, str]:
    reader = Reader(connect(asked.kubeconfig), asked.namespace)
    told, by = settings_of(reader, asked.config)
    return reader, told, by


def _split(name: str) -> tuple[str, str]:
    namespace, slash, pod = name.partition("/")
    if not (namespace and slash and pod) or "/" in pod:
        raise NoSuchPod(f"{name!r} is not the name of a pod; accepted: NAMESPACE/NAME")
    return namespace, pod


def _changes(found: PlannedOrder, pod: Pod, told: Settings, unknown: str) -> list[str]:
    if state_of(pod, ours=found.backlog.has_place(pod)) != HELD:
        return []
    return changes_for(case_of(found, pod), found.why.get(pod.uid), unknown=unknown, by_target=told.locality.target > 0)


def _refusal(raw: dict[str, Any]) -> str:
    """Return what kube-scheduler said of a pod last."""
    conditions = raw.get("status", {}).get("conditions", ())
    return next(
        (str(it.get("message", "")) for it in conditions if it["type"] == "PodScheduled" and it["status"] == "False"),
        "",
    )


def _answer(reader: Reader, told_by: str, answer: dict[str, Any] | str) -> str:
    """Return an answer, for machines or for people, with what it rests on; the first line says what was not read."""
    if isinstance(answer, dict):
        document = {"unread": reader.unread, **answer, "settings": told_by}
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return "\n".join([*tables.incomplete(reader.unread), answer, "", f"settings: {told_by}"])
