"""Node, Pod, what owns or groups pods, claims, volumes and Services."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.cluster.eligibility import ANYWHERE, Constraints, Taint, Terms
from extender.cluster.node_terms import OpportunisticTerms
from extender.cluster.pods.demand import CAPACITY_ANNOTATION, declared
from extender.cluster.pods.identity import NOBODY, Identity
from extender.cluster.pods.opportunistic import ONLY, RegularRequests
from extender.cluster.pods.preference import InputHolders, Preferences
from extender.cluster.resources import DIMENSIONS, Amounts

HOLD_GATE = "dovetail.dev/hold"
PROMISED_ANNOTATION = "dovetail.dev/nominated"
"""The node that we nominated the pod for: by this our nominations are told from those of others."""

TURN_ANNOTATION = "dovetail.dev/turn"
"""Changes when a pod's turn has come that kube-scheduler has refused before: any change makes it try the pod again."""


_BOUND_TO_NODES = ("DaemonSet", "Node")
"""Owners each of whose pods has its node already."""

EVERY_NAMESPACE = "*"
"""Stands for all namespaces; no namespace can be called so."""


@dataclass(frozen=True, slots=True)
class Node:
    """What a node offers. A disk or network dimension that is absent from `allocatable` is not limited there.

    `addresses` are those by which others may know it: IP addresses and host names. `problem` says which of its
    annotations cannot be understood, and what counts instead. `terms` are about opportunistic pods.
    """

    name: str
    allocatable: Amounts
    problem: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    addresses: tuple[str, ...] = ()
    terms: OpportunisticTerms = field(default_factory=OpportunisticTerms)

    def allows(self, constraints: Constraints) -> bool:
        """Say whether a pod with these constraints may go there."""
        return constraints.allow(self.name, self.labels, self.taints, unschedulable=self.unschedulable)


@dataclass(frozen=True, slots=True)
class Pod:
    """What we need of a pod; times in seconds since the epoch.

    `gates` are its scheduling gates, `promised` the node that we nominated it for, `owner` the UID of its controller,
    `owner_kind` and `owner_name` what that is, `tasks` how many its stage has, `duration` the seconds it says it runs.
    `inputs` are the nodes that hold its input, `prefers` its preferred node affinity, `claims` the volume claims that
    it uses ("namespace/name"). `queue_problem` says why it counts in another queue than it names.

    `demand` is what it needs, whatever its spec requests now. An `opportunistic` pod has given its requests up: it runs
    on what others reserved and do not use. `regular_requests` is what it requests as a regular pod, where it says so
    and may become one; `choice` is ONLY, NEVER or ALLOWED where its user chose how it may run, else None. Then
    `tenant_choice` counts: ALLOWED or NEVER where its namespace says so, or else its queue. Those requests are back and
    `ungranted` where its node has not given it any of them yet.

    One that is `leaving` is being deleted, and its grace period ends at `leaves_at`. One that was `rejected` was bound,
    and its kubelet would not have it. `near` are the namespaces of the pods that it draws near, or would rather have
    elsewhere, by its affinity to pods. It `asks_of_pods` where it depends on which pods are there whether it may go to
    a node, by required affinity to pods, required spread or ports of the node. `device_templates` are those of its
    device claims.

    One that is `unschedulable` was refused. The last try of one that `errored` came to no end: kube-scheduler tries it
    again by itself.
    """

    uid: str
    namespace: str
    name: str
    demand: Amounts
    node: str | None = None
    nominated: str | None = None
    priority: int = 0
    finished: bool = False
    unschedulable: bool = False
    resource_version: int = 0
    problem: str | None = None
    leaving: bool = False
    gates: tuple[str, ...] = ()
    scheduler: str = ""
    identity: Identity = NOBODY
    constraints: Constraints = ANYWHERE
    owner: str = ""
    owner_kind: str = ""
    created: float = 0.0
    started: float | None = None
    duration: float | None = None
    tasks: int | None = None
    may_preempt: bool = True
    promised: str | None = None
    failed: bool = False
    inputs: InputHolders = ()
    prefers: Preferences = ()
    claims: tuple[str, ...] = ()
    queue_problem: str | None = None
    owner_name: str = ""
    opportunistic: bool = False
    regular_requests: RegularRequests | None = None
    choice: str | None = None
    tenant_choice: str | None = None
    ungranted: bool = False
    rejected: bool = False
    near: tuple[str, ...] = ()
    asks_of_pods: bool = False
    device_templates: tuple[str, ...] = ()
    leaves_at: float = 0.0
    errored: bool = False

    @property
    def full_name(self) -> str:
        """Its namespace and name, as people and logs call it."""
        return f"{self.namespace}/{self.name}"

    @property
    def may_run(self) -> str | None:
        """How it may run by what was chosen: by itself, else by its namespace, else by its queue; None: nobody did."""
        return self.choice or self.tenant_choice

    @property
    def stays_opportunistic(self) -> bool:
        """Whether it is opportunistic for good: it never is regular, or nobody knows what it requested."""
        return self.opportunistic and (self.choice == ONLY or self.regular_requests is None)

    @property
    def counted(self) -> Amounts:
        """What it counts as regular on its node: its demand, of an opportunistic pod only what it cannot give up."""
        if not self.opportunistic:
            return self.demand
        return {name: amount for name, amount in self.demand.items() if name not in DIMENSIONS}

    @property
    def warning(self) -> str | None:
        """What its user is told of annotations that cannot be understood, and of its queue; None: nothing."""
        ignored = "broken annotations are ignored: the pod's requests and its other annotations count"
        broken = None if self.problem is None else f"{self.problem}; {ignored}"
        return "; ".join(filter(None, (broken, self.queue_problem))) or None

    @property
    def tried_in_vain(self) -> bool:
        """Whether kube-scheduler's last try has ended without a node for it."""
        return self.unschedulable or self.errored

    @property
    def held(self) -> bool:
        """Whether our gate keeps it from kube-scheduler."""
        return HOLD_GATE in self.gates

    @property
    def waits(self) -> bool:
        """Whether it has no node yet and may get one."""
        return self.node is None and not self.finished and not self.leaving

    @property
    def awaited(self) -> str | None:
        """The node that counts a waiting pod: for which it is nominated, or to which alone it may go.

        kube-scheduler takes a nomination away when an extender fails, and tries the pod again by itself. Such a pod
        keeps to its promise, as an opportunistic one does. While it has a gate a nomination by others is none: it would
        keep the room from the pod itself, for ever.
        """
        if self.gates and self.nominated != self.promised:
            return None
        if self.nominated is None and (self.opportunistic or self.errored) and not self.gates:
            return self.promised
        return self.nominated

    @property
    def holds(self) -> str | None:
        """The node whose resources it holds, if any."""
        return None if self.finished else self.node

    @property
    def is_of_node(self) -> bool:
        """Whether it belongs to one node, and would be there if that were empty: of a DaemonSet, or a static pod."""
        return self.owner_kind in _BOUND_TO_NODES


@dataclass(frozen=True, slots=True)
class CapacityRule:
    """The disk and network rates of nodes whose labels match; for nodes that carry no annotation of ours."""

    node_selector: Mapping[str, str]
    capacity: Amounts

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether all labels of the selector are there."""
        return self.node_selector.items() <= labels.items()


def io_capacity(labels: Mapping[str, str], annotation: str | None, rules: Sequence[CapacityRule]) -> Amounts:
    """Return a node's disk and network rates: the first rule that matches, overridden by the node's own annotation.

    Raises BadAnnotation.
    """
    rule = next((rule.capacity for rule in rules if rule.matches(labels)), {})
    return {**rule, **declared(annotation, CAPACITY_ANNOTATION)}


@dataclass(frozen=True, slots=True)
class Owner:
    """A Job: how many of its pods have still to end well, of how many."""

    uid: str
    left: int
    total: int
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """A pod group: `least` of its pods start together or none. `source` is the kind of object that says so."""

    name: str
    least: int
    source: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim by its "namespace/name", and the volume that it is bound to; "" while it has none."""

    name: str
    volume: str = ""


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume, and on which nodes it can be used; None: on all."""

    name: str
    affinity: Terms | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """A Service by its "namespace/name", and the labels of the pods that it is for; none: it names its pods itself."""

    name: str
    selector: Mapping[str, str] = field(default_factory=dict)
