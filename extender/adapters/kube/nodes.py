"""Nodes as Kubernetes tells of them, and how they are read."""

from collections.abc import Mapping, Sequence

import msgspec

from extender.adapters.kube.objects import Quantities
from extender.adapters.kube.watching import Resource
from extender.cluster.eligibility import Taint
from extender.cluster.events import NodeGone, NodeSeen, NodesListed
from extender.cluster.model import CapacityRule, Node, io_capacity
from extender.cluster.node_terms import (
    HAS_SWAP,
    RUNS_WINDOWS,
    THRESHOLD_ANNOTATION,
    OpportunisticTerms,
    set_aside,
    threshold_of,
)
from extender.cluster.pods.demand import CAPACITY_ANNOTATION
from extender.cluster.pods.limits import shortened
from extender.cluster.resources import countable, offered
from extender.errors import BadAnnotation


class NodeAnnotations(msgspec.Struct):
    """Ours among a node's annotations."""

    capacity: str | None = msgspec.field(default=None, name=CAPACITY_ANNOTATION)
    threshold: str | None = msgspec.field(default=None, name=THRESHOLD_ANNOTATION)


class NodeMeta(msgspec.Struct):
    """A node's metadata."""

    name: str = ""
    labels: dict[str, str] | None = None
    annotations: NodeAnnotations | None = None


class TaintSpec(msgspec.Struct):
    """Taint."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(msgspec.Struct):
    """NodeSpec."""

    unschedulable: bool = False
    taints: list[TaintSpec] | None = None


class NodeAddress(msgspec.Struct):
    """NodeAddress: of what type it is does not matter."""

    address: str = ""


class NodeSwap(msgspec.Struct):
    """NodeSwapStatus (1.34): how many bytes of swap a node has."""

    capacity: int | None = None


class NodeSystem(msgspec.Struct, rename="camel"):
    """NodeSystemInfo."""

    operating_system: str = ""
    swap: NodeSwap | None = None


class NodeStatus(msgspec.Struct, rename="camel"):
    """NodeStatus."""

    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    addresses: list[NodeAddress] | None = None
    node_info: NodeSystem | None = None


class NodeObject(msgspec.Struct):
    """Node."""

    metadata: NodeMeta = msgspec.field(default_factory=NodeMeta)
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


def nodes(rules: Sequence[CapacityRule], highest: float = 1.0) -> Resource:
    """Return how nodes are read.

    `rules` give the I/O capacity of those that carry no annotation; `highest` is the highest T_alloc one may state.
    """
    decode = msgspec.json.Decoder(NodeObject).decode
    return Resource(
        name="nodes",
        path="/api/v1/nodes",
        listed=lambda raws: NodesListed([node_from(decode(raw), rules, highest) for raw in raws]),
        seen=lambda raw: NodeSeen(node_from(decode(raw), rules, highest)),
        gone=lambda raw: NodeGone(decode(raw).metadata.name),
    )


def node_from(document: NodeObject, rules: Sequence[CapacityRule], highest: float = 1.0) -> Node:
    """Return our Node; `highest` is the highest T_alloc that it may state.

    A broken annotation leaves the capacity from settings, or turns the node off for opportunistic pods; `problem` says
    so.
    """
    meta, labels, status = document.metadata, document.metadata.labels or {}, document.status or NodeStatus()
    annotations, problems = meta.annotations or NodeAnnotations(), list[str]()
    allocatable = offered(status.allocatable or {})
    try:
        io = io_capacity(labels, annotations.capacity, rules)
    except BadAnnotation as error:
        io = io_capacity(labels, None, rules)
        problems.append(f"{shortened(str(error))}; its capacity is taken from settings")
    try:
        threshold = threshold_of(annotations.threshold, highest)
    except BadAnnotation as error:
        threshold = 0.0
        problems.append(f"{shortened(str(error))}; no opportunistic pod is started there")
    spec = document.spec
    return Node(
        meta.name,
        {**allocatable, **io},
        "; ".join(problems) or None,
        labels=labels,
        taints=tuple(
            Taint(taint.key, taint.value or "", taint.effect) for taint in (spec.taints if spec else None) or ()
        ),
        unschedulable=spec.unschedulable if spec else False,
        addresses=tuple(one.address for one in status.addresses or ()),
        terms=OpportunisticTerms(
            threshold, _refuses(labels, status), set_aside(countable(status.capacity or {}), allocatable)
        ),
    )


def _refuses(labels: Mapping[str, str], status: NodeStatus) -> str | None:
    """Return why no opportunistic pod can run on a node; None where one can."""
    system = status.node_info or NodeSystem()
    if "windows" in (system.operating_system, labels.get("kubernetes.io/os")):
        return RUNS_WINDOWS
    return HAS_SWAP if system.swap is not None and system.swap.capacity else None
