"""What a pod asks of the pods about it, of its JSON: for recordings alone, as the service does not look at it."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from extender.adapters.kube.objects import Expression, NodeAffinity, VolumeSource
from extender.cluster.eligibility import Requirement
from extender.cluster.model import EVERY_NAMESPACE
from extender.cluster.peers import HostPort, Peers, PodTerm, Selector, TopologySpread
from extender.cluster.recording.lines import NAMESPACE_SELECTORS, PREFERRED, SPREAD_ANYWAY, VOLUMES

_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104  # it is compared, nobody listens


class LabelSelector(msgspec.Struct, rename="camel"):
    """LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class _Term(msgspec.Struct, rename="camel"):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None


class _PodAffinity(msgspec.Struct):
    required: list[_Term] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[msgspec.Raw] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _SpreadConstraint(msgspec.Struct, rename="camel"):
    topology_key: str = ""
    when_unsatisfiable: str = ""
    max_skew: int = 1
    min_domains: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class _Port(msgspec.Struct, rename="camel"):
    host_port: int | None = None
    protocol: str | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")


class _Container(msgspec.Struct, rename="camel"):
    ports: list[_Port] | None = None
    restart_policy: str | None = None


class PeersMeta(msgspec.Struct):
    """A pod's metadata, by which others know it."""

    namespace: str = ""
    labels: dict[str, str] | None = None


class PeersSpec(msgspec.Struct, rename="camel"):
    """PodSpec: what it says of other pods, and what else a recording names without holding it."""

    affinity: _Affinity | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    topology_spread_constraints: list[_SpreadConstraint] | None = None
    volumes: list[VolumeSource] | None = None


def peers_of(meta: PeersMeta, spec: PeersSpec) -> Peers:
    """Return what a pod asks of others, all of it required; without terms that select namespaces by labels."""
    spreads = spec.topology_spread_constraints or ()
    return Peers(
        away=tuple(_term(one, meta.namespace) for one in _required(spec, "pod_anti_affinity") if not _selects(one)),
        near=tuple(_term(one, meta.namespace) for one in _required(spec, "pod_affinity") if not _selects(one)),
        spread=tuple(_spread(one, meta) for one in spreads if one.when_unsatisfiable == "DoNotSchedule"),
        ports=tuple(dict.fromkeys(_ports(spec))),
    )


def unwritten_of(spec: PeersSpec) -> tuple[str, ...]:
    """Return which constraints and preferences a pod has besides those that a recording holds."""
    affinity = spec.affinity or _Affinity()
    preferring = (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
    every = (*_required(spec, "pod_affinity"), *_required(spec, "pod_anti_affinity"))
    spreads = spec.topology_spread_constraints or ()
    there = (
        (NAMESPACE_SELECTORS, any(map(_selects, every))),
        (PREFERRED, any(one is not None and one.preferred for one in preferring)),
        (SPREAD_ANYWAY, any(one.when_unsatisfiable == "ScheduleAnyway" for one in spreads)),
        (VOLUMES, any(one.persistent_volume_claim or one.ephemeral for one in spec.volumes or ())),
    )
    return tuple(name for name, is_there in there if is_there)


def _required(spec: PeersSpec, field: str) -> Sequence[_Term]:
    asked: _PodAffinity | None = getattr(spec.affinity, field) if spec.affinity else None
    return (asked.required if asked else None) or ()


def _selects(term: _Term) -> bool:
    """Say whether a term selects namespaces by their labels; an empty selector selects all of them."""
    selector = term.namespace_selector
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def _term(term: _Term, namespace: str) -> PodTerm:
    """Return a term; without namespaces, and without a selector of them, it is about those of the pod's own."""
    named = (EVERY_NAMESPACE,) if term.namespace_selector is not None else tuple(sorted(set(term.namespaces or ())))
    return PodTerm(term.topology_key, named or (namespace,), _selector(term.label_selector))


def _selector(selector: LabelSelector | None) -> Selector | None:
    """Return a selector, its requirements sorted; None, which selects no pod, stays None."""
    if selector is None:
        return None
    equal = [Requirement(key, "In", (value,)) for key, value in (selector.match_labels or {}).items()]
    others = [
        Requirement(one.key, one.operator, tuple(sorted(one.values or ()))) for one in selector.match_expressions or ()
    ]
    return tuple(sorted({*equal, *others}, key=lambda one: (one.key, one.operator, one.values)))


def _spread(one: _SpreadConstraint, meta: PeersMeta) -> TopologySpread:
    """Return a spread; by `matchLabelKeys` it counts pods alone that have the pod's own values."""
    selector = one.label_selector
    if selector is not None and one.match_label_keys:
        own: Mapping[str, str] = meta.labels or {}
        values = {key: own[key] for key in one.match_label_keys if key in own}
        selector = LabelSelector({**values, **(selector.match_labels or {})}, selector.match_expressions)
    return TopologySpread(
        PodTerm(one.topology_key, (meta.namespace,), _selector(selector)),
        most=one.max_skew,
        domains=one.min_domains or 1,
        by_affinity=one.node_affinity_policy != "Ignore",
        by_taints=one.node_taints_policy == "Honor",
    )


def _ports(spec: PeersSpec) -> Iterator[HostPort]:
    """Yield the ports of its node that a pod takes; of init containers only those that stay (sidecars)."""
    stay = (one for one in spec.init_containers or () if one.restart_policy == "Always")
    for container in (*(spec.containers or ()), *stay):
        for port in container.ports or ():
            if port.host_port:
                address = port.host_ip or ""
                yield HostPort(port.host_port, port.protocol or "TCP", "" if address == _EVERY_ADDRESS else address)
