"""Reads the cluster once for a user's command, and plans by the same functions as `control`, without its memory.

What may not be read is noted in `Reader.unread`. A command that cannot do without it fails; the others go on.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from extender import settings as files
from extender.adapters.http.wait_report import WaitReport
from extender.adapters.kube.api import Api, Refused, understood
from extender.adapters.kube.namespaces import namespaces
from extender.adapters.kube.nodes import nodes
from extender.adapters.kube.plain_objects import plain
from extender.adapters.kube.volumes import claims, volumes
from extender.adapters.kube.watching import Resource, jobs, listed, pod_groups, pods
from extender.adapters.metrics.scraping import NAME_LABEL
from extender.app.ordering import POD_GROUPS, backlog_of, control_asks_for_labels, input_builder_of
from extender.app.tuning import policy_of
from extender.cluster.events import Event, NodesListed, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.feeding import Feed
from extender.errors import ClusterError
from extender.explain.planned_order import PlannedOrder, planned_order
from extender.planner import Carried, Planner, Policy
from extender.settings import Settings
from extender.settings.sections import ControlSettings, LeaseSettings

SETTINGS_KEY = "dovetail.yaml"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
BARRED = (401, 403)
_Value = TypeVar("_Value")


class NotAllowed(ClusterError):
    """Something must be read that may not be."""


@dataclass(slots=True)
class Reader:
    """Reads from one API server; what is refused is noted in `unread`, by name.

    `namespace` is where Dovetail is installed, empty: still to be found. Only ConfigMaps and pods of that namespace are
    believed, because anybody can make objects with our labels in a namespace of his own.
    """

    api: Api
    namespace: str = ""
    unread: dict[str, str] = field(default_factory=dict)
    _unsure: str = ""

    def find_release(self, otherwise: str = LeaseSettings().namespace) -> None:
        """Find the namespace where Dovetail is installed, if nobody has named it. Raises ClusterError for several.

        The chart's ClusterRoleBindings name it. Only an administrator of the cluster can make these, while any tenant
        can make Leases, ConfigMaps and pods with our labels. Without bindings, or the right to read them, it is
        `otherwise`.
        """
        if self.namespace:
            return
        try:
            bindings = self.api.read(_BINDINGS, [("labelSelector", NAME_LABEL)])["items"]
        except Refused as refusal:
            bindings, self._unsure = [], in_short(refusal) if refusal.status in BARRED else ""
        subjects = [subject for binding in bindings for subject in binding.get("subjects") or ()]
        names = sorted({subject["namespace"] for subject in subjects if subject.get("kind") == "ServiceAccount"})
        if len(names) > 1:
            raise ClusterError(f"Dovetail is installed in {' and '.join(names)}; say which by --install-namespace")
        self.namespace = names[0] if names else otherwise

    def note_barred(self, name: str, refusal: Refused) -> bool:
        """Note what the caller has no right to read; False where it was refused for another reason."""
        barred = refusal.status in BARRED
        if barred:
            self.unread[name] = in_short(refusal)
        return barred

    def objects(self, name: str, path: str) -> list[dict[str, Any]]:
        """Return objects as JSON; none where they may not be read."""
        return self._try(name, lambda: [plain(raw, path) for raw in listed(self.api, path)[0]]) or []

    def configurations(self) -> list[dict[str, Any]]:
        """Return the release's ConfigMaps, by name."""
        path, params = f"/api/v1/namespaces/{self.namespace}/configmaps", [("labelSelector", NAME_LABEL)]
        config_maps = self._try("configmaps", lambda: self.api.read(path, params)["items"]) or []
        if not config_maps and self._unsure:
            self.unread["clusterrolebindings"] = f"{self._unsure}, so --install-namespace must say where Dovetail is"
        return sorted(config_maps, key=lambda config_map: str(config_map["metadata"]["name"]))

    def event(self, resource: Resource, *, optional: bool = False) -> Event | None:
        """Return what a list says, as the event that a watch would bring; None where it may not be read."""
        read = partial(_read_all, self.api, resource)
        return self._try(resource.name, read, absent_is_fine=optional)

    def _try(self, name: str, read: Callable[[], _Value], *, absent_is_fine: bool = False) -> _Value | None:
        try:
            with understood(name):
                return read()
        except Refused as refusal:
            if not (absent_is_fine and refusal.is_not_found):
                self.unread[name] = in_short(refusal)
            return None


@dataclass(frozen=True, slots=True)
class ClusterLook:
    """The cluster at one moment. `order` is None where pods or nodes may not be read; `source` says whose settings."""

    settings: Settings
    source: str
    order: PlannedOrder | None
    pods: Sequence[Pod]
    nodes: Sequence[Node]

    def require(self, reader: Reader) -> PlannedOrder:
        """Return the order. Raises NotAllowed where it cannot be known."""
        if self.order is None:
            why = "; ".join(f"{name}: {text}" for name, text in sorted(reader.unread.items()))
            raise NotAllowed(f"nodes and pods of all namespaces must be readable for this: {why}")
        return self.order


def look(reader: Reader, settings: Settings, source: str, waits: WaitReport | None = None) -> ClusterLook:
    """Read the cluster and plan once; `waits` are what `control` reports, None: as if nobody had waited yet.

    Raises ClusterError where the API server cannot be reached.
    """
    now = time.time()
    ledger = Ledger(in_flight_seconds=settings.control.assume_seconds)
    backlog = backlog_of(settings, by_filter=settings.asks_filter)
    feed = Feed(ledger, backlog, lambda: now)
    node_list = _take(feed, reader.event(nodes(settings.capacity_rules(), settings.opportunistic.evict_at_memory)))
    pod_list = _take(feed, reader.event(pods()))
    groups = [reader.event(pod_groups(path), optional=True) for path in POD_GROUPS]
    others = [reader.event(jobs()), *groups, reader.event(claims()), reader.event(volumes())]
    if control_asks_for_labels(settings):
        others.append(reader.event(namespaces()))
    for event in others:
        _take(feed, event)
    if waits is not None:
        ledger.note_load(waits.load)
        backlog.note_rests(waits.rests, now)
    readable = node_list is not None and pod_list is not None
    return ClusterLook(
        settings=settings,
        source=source,
        order=_order(settings, ledger, backlog, now, waits) if readable else None,
        pods=pod_list.pods if isinstance(pod_list, PodsListed) else (),
        nodes=node_list.nodes if isinstance(node_list, NodesListed) else (),
    )


def settings_of(reader: Reader, config: Path | None) -> tuple[Settings, str]:
    """Return the settings of the file, else of the release's ConfigMap, else built in; and where they come from."""
    if config is not None:
        settings = files.load(config)
        reader.find_release(settings.control.lease.namespace)
        return settings, str(config)
    reader.find_release()
    for config_map in reader.configurations():
        if SETTINGS_KEY in config_map.get("data", {}):
            name = f"ConfigMap {config_map['metadata']['namespace']}/{config_map['metadata']['name']}"
            return files.read(config_map["data"][SETTINGS_KEY], name), name
    why = reader.unread.get("configmaps", f"there is no ConfigMap labelled {NAME_LABEL} in {reader.namespace}")
    lease = LeaseSettings(namespace=reader.namespace)
    return Settings(control=ControlSettings(lease=lease)), f"built-in settings ({why})"


def in_short(refusal: Refused) -> str:
    """Return what the API server said, without the JSON around it."""
    return {401: "who you are is not accepted (401)", 403: "you may not (403)"}.get(refusal.status or 0, str(refusal))


def policy_in_force(settings: Settings, waits: WaitReport | None) -> Policy:
    """Return the planner's tuning, with the waits for locality that `control` reports, else those of settings."""
    policy = policy_of(settings)
    return policy if waits is None else replace(policy, locality_waits=waits.in_force)


def _read_all(api: Api, resource: Resource) -> Event:
    return resource.listed(listed(api, resource.path)[0])


def _take(feed: Feed, event: Event | None) -> Event | None:
    """Take an event in, if there is one, and return it with pods as they count."""
    return None if event is None else feed.take(event)[0]


def _order(settings: Settings, ledger: Ledger, backlog: Backlog, now: float, waits: WaitReport | None) -> PlannedOrder:
    input_builder = input_builder_of(settings, backlog)
    planner = Planner(policy_in_force(settings, waits), explain=True)
    if waits is not None:
        planner.carried = Carried(locality=waits.jobs, planned_at=now - waits.age_seconds)
    return planned_order(backlog, input_builder, planner, ledger.snapshot(0.0), now)
