"""`dovetail explain`, `queues` and `doctor`: read the cluster, ask `control`'s own functions, return what to print."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
import yaml

from extender.adapters.http.wait_report import WaitReport
from extender.adapters.kube.api import Refused, connect, default_namespace
from extender.adapters.kube.decoding import is_refusal
from extender.adapters.kube.watching import pods
from extender.app.inspection import tables
from extender.app.inspection.checks import Diagnosis
from extender.app.inspection.known_holding import lease_of, new_pods
from extender.app.inspection.known_preemptions import end_of, eviction_of, preemption_of, said_of
from extender.app.inspection.known_waits import waits_of
from extender.app.inspection.page import WIDE, Page, page_of_terminal
from extender.app.inspection.pod_text import pod_text
from extender.app.inspection.query import Query
from extender.app.inspection.reading import NotAllowed, Reader, in_short, look, policy_in_force, settings_of
from extender.cluster.events import PodsListed
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import ONLY
from extender.errors import DovetailError
from extender.explain.advice import changes_for
from extender.explain.doctor import findings
from extender.explain.findings import PROBLEM, why_unled
from extender.explain.planned_order import PlannedOrder
from extender.explain.pod import MOST_NODES, WAITING, Refusal, explain, state_of
from extender.explain.pod_in_plan import case_of
from extender.explain.queues import queue_states
from extender.explain.running_as import PROMOTION_REFUSED, STAYS_REGULAR
from extender.settings import Settings

_MOST_NODES_WIDE = 20
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
"""What Kubernetes lets pods and namespaces be called; anything else would make another path of it."""


class NoSuchPod(DovetailError):
    """The pod that was asked about is not there, or its name cannot be one."""


def explain_pod(query: Query, name: str, namespace: str = "") -> tuple[str, bool]:
    """Return why a pod waits, or where it went, and whether all that this needs was read.

    `name` is NAME or NAMESPACE/NAME; without `namespace` a bare name is looked for where kubectl would. Raises
    DovetailError where there is no answer.
    """
    # 1. Read the pod itself, which may be allowed where nothing else is.
    namespace, pod_name = _split(query, name, namespace)
    reader, settings, source = _begin(query)
    raw = _read_pod(reader, namespace, pod_name)
    # 2. Ask `control` how long jobs have waited for locality, and who found no idle room, where settings have that;
    #    and whether the pod rests, or one like it was refused in its turn, where the pods do not say so.
    idle, refusal = settings.opportunistic.enabled, _refusal(raw)
    may_rest = refusal is not None or (settings.asks_filter and not raw["spec"].get("nodeName"))
    waits = waits_of(reader, query.control) if settings.locality.wait_seconds or idle or may_rest else None
    report = waits if isinstance(waits, WaitReport) else None
    # 3. Read the cluster and plan.
    cluster = look(reader, settings, source, report)
    order = cluster.require(reader)
    pod = next((pod for pod in cluster.pods if pod.uid == raw["metadata"]["uid"]), None)
    if pod is None:
        raise NoSuchPod(f"pod {namespace}/{pod_name} went away while it was looked at")
    # 4. Where it waits, see whether anybody releases pods, and whether new ones are held.
    waiting = state_of(pod, order.backlog) in WAITING
    lease = lease_of(reader, settings) if waiting else ""
    unled = "" if isinstance(lease, str) else why_unled(lease)
    # 5. Find the pod in the plan, and say what would have to change.
    over = pod.leaving or pod.failed
    explanation = explain(
        order,
        pod,
        policy_in_force(settings, report),
        _changes(order, pod, settings, waits if isinstance(waits, str) else "", unled) if waiting else (),
        refusal,
        waits_known=report is not None,
        most_nodes=_MOST_NODES_WIDE if query.wide else MOST_NODES,
        preempted=_named(preemption_of(reader, namespace, pod_name, pod.uid), cluster.pods) if over else "",
        ended=end_of(raw.get("status") or {}) if over else "",
        stays=_stays(reader, pod) if idle else "",
        new_pods=new_pods(reader, settings) if waiting else None,
        idle=(waits if isinstance(waits, str) else report.idle if report else None) if idle else None,
    )
    document = msgspec.to_builtins(explanation)
    return _printed(query, reader, source, document, pod_text(explanation, _page(query))), not reader.unread


def show_queues(query: Query) -> tuple[str, bool]:
    """Return where all queues stand, and whether all that this needs was read. Raises DovetailError for no answer."""
    reader, settings, source = _begin(query)
    states = queue_states(look(reader, settings, source).require(reader))
    hold = new_pods(reader, settings)
    document = {"new_pods": msgspec.to_builtins(hold), "queues": msgspec.to_builtins(states)}
    page = _page(query)
    text = "\n".join([tables.queues(states, page, ungated=settings.asks_filter), *tables.new_pods(hold, page)])
    return _printed(query, reader, source, document, text), not reader.unread


def examine(query: Query, extender: str) -> tuple[str, bool]:
    """Return what doctor found, and whether all is well: no problem, and nothing left unread.

    `extender` is the address of `dovetail serve`, empty: through its pods.
    """
    reader, settings, source = _begin(query)
    waits = waits_of(reader, query.control)
    cluster = look(reader, settings, source, waits if isinstance(waits, WaitReport) else None)
    results = findings(Diagnosis(reader, extender, query.control).facts(cluster))
    well = not reader.unread and all(finding.level != PROBLEM for finding in results)
    document = {"findings": msgspec.to_builtins(results)}
    return _printed(query, reader, source, document, tables.findings(results, _page(query))), well


def _begin(query: Query) -> tuple[Reader, Settings, str]:
    """Return a reader of the cluster, the settings that count, and where they come from."""
    reader = Reader(connect(query.kubeconfig, query.context), query.install_namespace)
    settings, source = settings_of(reader, query.config)
    return reader, settings, source


def _split(query: Query, name: str, namespace: str) -> tuple[str, str]:
    """Return the namespace and the name of a pod. Raises NoSuchPod where they can be none."""
    named, slash, pod_name = name.rpartition("/")
    if not slash:
        named = namespace or default_namespace(query.kubeconfig, query.context)
        name = f"{named}/{pod_name}"
    if not _NAME.fullmatch(pod_name) or not _NAME.fullmatch(named):
        raise NoSuchPod(f"{name!r} is not the name of a pod; accepted: NAME with --namespace, or NAMESPACE/NAME")
    return named, pod_name


def _read_pod(reader: Reader, namespace: str, name: str) -> dict[str, Any]:
    """Return the pod as JSON. Raises NoSuchPod, NotAllowed."""
    try:
        raw: dict[str, Any] = reader.api.read(f"/api/v1/namespaces/{namespace}/pods/{name}")
    except Refused as refusal:
        if refusal.is_not_found:
            if why := preemption_of(reader, namespace, name):
                listed = reader.event(pods())
                why = _named(why, listed.pods if isinstance(listed, PodsListed) else ())
                raise NoSuchPod(f"pod {namespace}/{name} is gone, preempted: {why}") from None
            if why := eviction_of(reader, namespace, name):
                raise NoSuchPod(f"pod {namespace}/{name} is gone, evicted: {why}") from None
            hint = "accepted: NAME with --namespace, or NAMESPACE/NAME, of one that exists"
            raise NoSuchPod(f"there is no pod {namespace}/{name}; {hint}") from None
        raise NotAllowed(f"pod {namespace}/{name} cannot be read: {in_short(refusal)}") from None
    return raw


def _named(why: str, others: Iterable[Pod]) -> str:
    """Return why a pod was preempted, with the name of the pod for which it was: kube-scheduler says its UID."""
    return next((why.replace(pod.uid, pod.full_name) for pod in others if pod.uid in why.split()), why)


def _changes(order: PlannedOrder, pod: Pod, settings: Settings, unknown: str, unled: str) -> list[str]:
    """Return what would have to change for a waiting pod.

    `unknown` is why waits for locality are not known, `unled` why no `control` leads.
    """
    if pod.held and pod.choice == ONLY and not settings.opportunistic.enabled:
        return ["settings must let pods run on idle resources (opportunistic.enabled): it runs on these alone"]
    by_target = settings.locality.target > 0
    reason = order.why.get(pod.uid)
    return changes_for(case_of(order, pod), reason, unknown=unknown, by_target=by_target, unled=unled)


def _stays(reader: Reader, pod: Pod) -> str:
    """Return why a held pod could not be made opportunistic, or why one that runs so could not be made regular."""
    if pod.held and not pod.opportunistic:
        return said_of(reader, pod.namespace, pod.name, STAYS_REGULAR, pod.uid)
    if pod.holds is not None and pod.opportunistic:
        return said_of(reader, pod.namespace, pod.name, PROMOTION_REFUSED, pod.uid)
    return ""


def _refusal(raw: dict[str, Any]) -> Refusal | None:
    """Return what kube-scheduler said of a pod last, where it refused it; that it had gates says nothing.

    A condition as old as the pod may have begun with its gates, so it does not say since when it is refused.
    """
    conditions = raw.get("status", {}).get("conditions", ())
    refusals = (entry for entry in conditions if is_refusal(entry["type"], entry["status"], entry.get("reason")))
    entry = next(refusals, None)
    if entry is None:
        return None
    since = entry.get("lastTransitionTime")
    known = since and since != raw["metadata"].get("creationTimestamp")
    return Refusal(str(entry.get("message", "")), datetime.fromisoformat(since).timestamp() if known else None)


def _page(query: Query) -> Page:
    return WIDE if query.wide else page_of_terminal()


def _printed(query: Query, reader: Reader, source: str, document: dict[str, Any], text: str) -> str:
    """Return an answer as the query wants it, with whose settings it rests on; what was not read comes first."""
    if query.output in ("json", "yaml"):
        whole = {"unread": reader.unread, **document, "settings": source}
        if query.output == "yaml":
            return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True).rstrip("\n")
        return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()
    return "\n".join([*_page(query).incomplete(reader.unread), text, "", f"settings: {source}"])
