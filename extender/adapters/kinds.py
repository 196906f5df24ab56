"""Kubernetes' pods and nodes as JSON -> our Pod and Node. Decodes the fields that are used and skips the rest. Pure.

Kubernetes' spelling ends here.
"""

from collections.abc import Mapping, Sequence

import msgspec

from extender.cluster.demand import (
    CAPACITY_ANNOTATION,
    DEMAND_ANNOTATION,
    Container,
    PodResources,
    declared,
    requested,
)
from extender.cluster.model import CapacityRule, Node, Pod, io_capacity
from extender.cluster.resources import Amounts, countable, greatest
from extender.errors import BadAnnotation

_Quantities = dict[str, str]


class Requests(msgspec.Struct):
    """ResourceRequirements."""

    requests: _Quantities | None = None


class ContainerSpec(msgspec.Struct, rename="camel"):
    """Container."""

    name: str = ""
    resources: Requests | None = None
    restart_policy: str | None = None


class ContainerStatus(msgspec.Struct, rename="camel"):
    """ContainerStatus."""

    name: str = ""
    resources: Requests | None = None
    allocated_resources: _Quantities | None = None


class Condition(msgspec.Struct):
    """PodCondition."""

    type: str = ""
    status: str = ""
    reason: str | None = None


class PodAnnotations(msgspec.Struct):
    """Ours among a pod's annotations."""

    demand: str | None = msgspec.field(default=None, name=DEMAND_ANNOTATION)


class NodeAnnotations(msgspec.Struct):
    """Ours among a node's annotations."""

    capacity: str | None = msgspec.field(default=None, name=CAPACITY_ANNOTATION)


class PodMeta(msgspec.Struct, rename="camel"):
    """A pod's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: PodAnnotations | None = None


class NodeMeta(msgspec.Struct, rename="camel"):
    """A node's metadata."""

    name: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: NodeAnnotations | None = None


class PodSpec(msgspec.Struct, rename="camel"):
    """PodSpec."""

    node_name: str | None = None
    priority: int | None = None
    containers: list[ContainerSpec] | None = None
    init_containers: list[ContainerSpec] | None = None
    overhead: _Quantities | None = None
    resources: Requests | None = None


class PodStatus(msgspec.Struct, rename="camel"):
    """PodStatus."""

    phase: str | None = None
    nominated_node_name: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: Requests | None = None
    allocated_resources: _Quantities | None = None


class NodeStatus(msgspec.Struct):
    """NodeStatus."""

    allocatable: _Quantities | None = None


class PodObject(msgspec.Struct):
    """Pod."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus | None = None


class NodeObject(msgspec.Struct):
    """Node."""

    metadata: NodeMeta = msgspec.field(default_factory=NodeMeta)
    status: NodeStatus | None = None


def pod_from(found: PodObject) -> Pod:
    """Return our Pod. A broken annotation leaves its requests and says so in `problem`."""
    meta, spec, status = found.metadata, found.spec, found.status or PodStatus()
    demand, problem = requested(_resources(spec, status)), None
    try:
        io = declared(meta.annotations.demand if meta.annotations else None)
        demand = {**demand, **io} if io else demand
    except BadAnnotation as error:
        problem = str(error)
    return Pod(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        demand={name: amount for name, amount in demand.items() if amount > 0},
        node=spec.node_name or None,
        nominated=status.nominated_node_name or None,
        priority=spec.priority or 0,
        finished=status.phase in ("Succeeded", "Failed"),
        unschedulable=any(c.type == "PodScheduled" and c.status == "False" for c in status.conditions or ()),
        resource_version=version_number(meta.resource_version),
        problem=problem,
        leaving=meta.deletion_timestamp is not None,
    )


def node_from(found: NodeObject, rules: Sequence[CapacityRule]) -> Node:
    """Return our Node. A broken annotation leaves the capacity from settings and says so in `problem`."""
    meta, labels = found.metadata, found.metadata.labels or {}
    allocatable, problem = countable(_quantities(found.status.allocatable if found.status else None)), None
    try:
        io = io_capacity(labels, meta.annotations.capacity if meta.annotations else None, rules)
    except BadAnnotation as error:
        io, problem = io_capacity(labels, None, rules), str(error)
    return Node(meta.name, {**allocatable, **io}, problem)


def _resources(spec: PodSpec, status: PodStatus) -> PodResources:
    reported = {s.name: s for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    pending = next((c for c in status.conditions or () if c.type == "PodResizePending"), None)
    level = countable(_quantities(spec.resources.requests if spec.resources else None))
    return PodResources(
        containers=[_container(c, reported.get(c.name)) for c in spec.containers or ()],
        init_containers=[_container(c, reported.get(c.name)) for c in spec.init_containers or ()],
        overhead=countable(_quantities(spec.overhead)),
        pod_level=level,
        pod_level_reported=_reported(status.resources, status.allocated_resources),
        resize_infeasible=pending is not None and pending.reason == "Infeasible",
    )


def _container(spec: ContainerSpec, status: ContainerStatus | None) -> Container:
    return Container(
        requests=countable(_quantities(spec.resources.requests if spec.resources else None)),
        reported=_reported(status.resources, status.allocated_resources) if status else None,
        sidecar=spec.restart_policy == "Always",
    )


def _reported(actuated: Requests | None, allocated: _Quantities | None) -> Amounts | None:
    if actuated is None:
        return None
    return greatest((countable(_quantities(actuated.requests)), countable(_quantities(allocated))))


def _quantities(quantities: Mapping[str, str] | None) -> Mapping[str, str]:
    return quantities or {}


def version_number(text: str) -> int:
    """Return a resource version as a number, 0 where it is none; they grow with time."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
