"""Node, Pod, and the events that change them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.cluster.demand import CAPACITY_ANNOTATION, declared
from extender.cluster.resources import Amounts


@dataclass(frozen=True, slots=True)
class Node:
    """What a node offers. A disk or network dimension that is absent from `allocatable` is not limited there."""

    name: str
    allocatable: Amounts
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    """What the ledger and the verbs need of a pod."""

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

    @property
    def holds(self) -> str | None:
        """The node whose resources it holds, if any."""
        return None if self.finished else self.node


@dataclass(frozen=True, slots=True)
class CapacityRule:
    """The disk and network rates of nodes whose labels match; for nodes that carry no annotation of ours."""

    node_selector: Mapping[str, str]
    capacity: Amounts = field(default_factory=dict)

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
class NodeSeen:
    """A node is there, new or changed."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class NodesListed:
    """These are all the nodes there are."""

    nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod is there, new or changed."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod was removed."""

    uid: str


@dataclass(frozen=True, slots=True)
class PodsListed:
    """These are all the pods there are."""

    pods: Sequence[Pod]


Event = NodeSeen | NodeGone | NodesListed | PodSeen | PodGone | PodsListed
