"""The cluster read once, for somebody who asks: the order by the functions of `control`, without its memory.

Whatever may not be read is noted in `unread`: who needs it says so, the others go on without.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from extender import settings as files
from extender.adapters.http.wait_report import WaitReport
from extender.adapters.kube.api import Api, Refused
from extender.adapters.kube.namespaces import namespaces
from extender.adapters.kube.volumes import claims, volumes
from extender.adapters.kube.watching import Resource, jobs, listed, nodes, pod_groups, pods
from extender.adapters.metrics.scraping import NAME_LABEL
from extender.app.ordering import POD_GROUPS, backlog_of, input_builder_of, policy_of
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Event, Node, NodesListed, Pod, PodsListed
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.feeding import Feed
from extender.errors import ClusterError
from extender.explain.planned_order import PlannedOrder, planned_order
from extender.planner import Carried, Planner, Policy
from extender.settings import Settings
from extender.settings.sections import ControlSettings, LeaseSettings

SETTINGS_KEY = "dovetail.yaml"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_BARRED = (401, 403)
_Value = TypeVar("_Value")


class NotAllowed(ClusterError):
    """Something must be read that may not be."""


@dataclass(slots=True)
class Reader:
    """Reads from one API server; what is refused is noted in `unread`, by name.

    `namespace` is that of the release: only there our ConfigMaps and pods are believed, since anybody can make some
    with our labels in a namespace of his own. Empty: still to be found.
    """

    api: Api
    namespace: str = ""
    unread: dict[str, str] = field(default_factory=dict)
    _unsure: str = ""

    def find_release(self, otherwise: str = LeaseSettings().namespace) -> None:
        """Find the namespace of the release if nobody has named it. Raises ClusterError where there are several.

        The chart's ClusterRoleBindings say it, which only who rules the cluster can make: Leases, ConfigMaps and pods
        with our labels anybody can who has a namespace. Without them, or the right to read them, it is `otherwise`.
        """
        if self.namespace:
            return
        try:
            found = self.api.read(_BINDINGS, [("labelSelector", NAME_LABEL)])["items"]
        except Refused as refusal:
            found, self._unsure = [], in_short(refusal) if refusal.status in _BARRED else ""
        subjects = [subject for it in found for subject in it.get("subjects") or ()]
        names = sorted({it["namespace"] for it in subjects if it.get("kind") == "ServiceAccount"})
        if len(names) > 1:
            raise ClusterError(f"Dovetail is installed in {' and '.join(names)}; say which by --namespace")
        self.namespace = names[0] if names else otherwise

    def note_barred(self, name: str, refusal: Refused) -> bool:
        """Note what the caller has no right to read; False where it was refused for another reason."""
        barred = refusal.status in _BARRED
        if barred:
            self.unread[name] = in_short(refusal)
        return barred

    def objects(self, name: str, path: str) -> list[dict[str, Any]]:
        """Return objects as JSON; none where they may not be read."""
        return self._try(name, lambda: [msgspec.json.decode(raw) for raw in listed(self.api, path)[0]]) or []

    def configurations(self) -> list[dict[str, Any]]:
        """Return the release's ConfigMaps, by name."""
        path, params = f"/api/v1/namespaces/{self.namespace}/configmaps", [("labelSelector", NAME_LABEL)]
        found = self._try("configmaps", lambda: self.api.read(path, params)["items"]) or []
        if not found and self._unsure:
            self.unread["clusterrolebindings"] = f"{self._unsure}, so --namespace must say where Dovetail is"
        return sorted(found, key=lambda it: str(it["metadata"]["name"]))

    def event(self, resource: Resource, *, optional: bool = False) -> Event | None:
        """Return what a list says, as the event that a watch would bring; None where it may not be read."""
        read = partial(_read_all, self.api, resource)
        return self._try(resource.name, read, absent_is_fine=optional)

    def _try(self, name: str, read: Callable[[], _Value], *, absent_is_fine: bool = False) -> _Value | None:
        try:
            return read()
        except Refused as refusal:
            if not (absent_is_fine and refusal.status == 404):
                self.unread[name] = in_short(refusal)
            return None


@dataclass(frozen=True, slots=True)
class Look:
    """What is there. `view` is None where pods or nodes may not be read; `told_by` says where settings come from."""

    settings: Settings
    told_by: str
    view: PlannedOrder | None
    pods: Sequence[Pod]
    nodes: Sequence[Node]

    def require(self, reader: Reader) -> PlannedOrder:
        """Return the order. Raises NotAllowed where it cannot be known."""
        if self.view is None:
            why = "; ".join(f"{name}: {text}" for name, text in sorted(reader.unread.items()))
            raise NotAllowed(f"nodes and pods of all namespaces must be readable for this: {why}")
        return self.view


def look(reader: Reader, told: Settings, told_by: str, waits: WaitReport | None = None) -> Look:
    """Read the cluster and plan once; `waits` are as `control` has told them, None: as if nobody had waited yet.

    Raises ClusterError where the API server cannot be reached.
    """
    now = time.time()
    ledger, backlog = Ledger(in_flight_seconds=told.control.assume_seconds), backlog_of(told)
    feed = Feed(ledger, backlog, lambda: now)
    seen_nodes = _take(feed, reader.event(nodes(told.capacity_rules())))
    seen_pods = _take(feed, reader.event(pods()))
    groups = [reader.event(pod_groups(path), optional=True) for path in POD_GROUPS]
    others = [reader.event(jobs()), *groups, reader.event(claims()), reader.event(volumes())]
    if any(queue.asks_for_labels for queue in told.declared_queues()):
        others.append(reader.event(namespaces()))
    for event in others:
        _take(feed, event)
    return Look(
        settings=told,
        told_by=told_by,
        view=None if seen_nodes is None or seen_pods is None else _view(told, ledger, backlog, now, waits),
        pods=seen_pods.pods if isinstance(seen_pods, PodsListed) else (),
        nodes=seen_nodes.nodes if isinstance(seen_nodes, NodesListed) else (),
    )


def settings_of(reader: Reader, config: Path | None) -> tuple[Settings, str]:
    """Return the settings of the file, else of the release's ConfigMap, else built in; and where they come from."""
    if config is not None:
        told = files.load(config)
        reader.find_release(told.control.lease.namespace)
        return told, str(config)
    reader.find_release()
    for it in reader.configurations():
        if SETTINGS_KEY in it.get("data", {}):
            name = f"ConfigMap {it['metadata']['namespace']}/{it['metadata']['name']}"
            return files.read(it["data"][SETTINGS_KEY], name), name
    why = reader.unread.get("configmaps", f"there is no ConfigMap labelled {NAME_LABEL} in {reader.namespace}")
    lease = LeaseSettings(namespace=reader.namespace)
    return Settings(control=ControlSettings(lease=lease)), f"built-in settings ({why})"


def in_short(refusal: Refused) -> str:
    """Return what the API server said, without the JSON around it."""
    return {401: "who you are is not accepted (401)", 403: "you may not (403)"}.get(refusal.status or 0, str(refusal))


def policy_in_force(told: Settings, waits: WaitReport | None) -> Policy:
    """Return the planner's tuning, with the waits for locality that `control` has told, else those of settings."""
    policy = policy_of(told)
    return policy if waits is None else replace(policy, locality_waits=waits.in_force)


def _read_all(api: Api, resource: Resource) -> Event:
    return resource.listed(listed(api, resource.path)[0])


def _take(feed: Feed, event: Event | None) -> Event | None:
    """Take an event in, if there is one, and return it with pods as they count."""
    return None if event is None else feed.take(event)[0]


def _view(told: Settings, ledger: Ledger, backlog: Backlog, now: float, waits: WaitReport | None) -> PlannedOrder:
    input_builder = input_builder_of(told, backlog)
    planner = Planner(policy_in_force(told, waits), explain=True)
    if waits is not None:
        planner.carried = Carried(locality=waits.jobs, planned_at=now - waits.age_seconds)
    return planned_order(backlog, input_builder, planner, ledger.snapshot(0.0), now)
