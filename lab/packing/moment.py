"""A checkpoint of a recording as a packing problem; what cannot be understood is left out, named and counted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.cluster.model import Node
from extender.cluster.recording.lines import (
    HOST_PORTS,
    NAMESPACE_SELECTORS,
    POD_AFFINITY,
    PREFERRED,
    SPREAD_ANYWAY,
    SPREADING,
    VOLUMES,
    Checkpoint,
    NodeLine,
    PodLine,
    impossible,
)
from extender.cluster.resources import CPU, MEMORY
from extender.errors import TraceError
from extender.words import many
from lab.packing.devices import PARTS
from lab.packing.draining import Resident
from lab.packing.model import Problem, problem_of
from lab.packing.task import PackingTask

_LEAVE = ("DaemonSet", "Node")
"""Pods of these owners leave with their node: those of DaemonSets, and static ones."""

NEVER_MODELLED = (
    "which devices a pod gets: an extended resource counts as whole devices, all alike; "
    f"{' and '.join(PARTS)} as parts that fit on one device each",
)

_UNWRITTEN = {
    HOST_PORTS: "host ports",
    NAMESPACE_SELECTORS: "affinity to pods of namespaces selected by labels",
    POD_AFFINITY: "required affinity to pods, or away from them",
    PREFERRED: "preferred affinity",
    SPREAD_ANYWAY: "topology spread that need not be met (ScheduleAnyway)",
    SPREADING: "topology spread",
    VOLUMES: "volumes by claims: the nodes that they are tied to",
}


@dataclass(frozen=True, slots=True)
class ClusterMoment:
    """A cluster at one moment. `left_out` and `not_modelled` are for people; `placed`: whether tasks have nodes.

    `machines` [M] are the nodes, `residents` the pods on them and `staying` those that leave with their node, for who
    asks which can be drained; `guards` are the PodDisruptionBudgets that allow no eviction now, by the names of their
    pods.
    """

    source: str
    problem: Problem
    left_out: Sequence[str]
    not_modelled: Sequence[str]
    placed: bool = True
    machines: Sequence[Node] = ()
    residents: Sequence[Resident] = ()
    staying: Sequence[PackingTask] = ()
    guards: Mapping[str, str] = field(default_factory=dict)


def moment_of(checkpoint: Checkpoint, source: str, more: Sequence[str] = ()) -> ClusterMoment:
    """Return the checkpoint as a problem; `more` is what else was left out. Raises TraceError where nothing remains."""
    left_out = _LeftOut()
    # 1. Nodes that say what they have.
    nodes = [line.node() for line in checkpoint.nodes if left_out.unless(_node_mistake(line))]
    if not nodes:
        raise TraceError("; ".join([f"{source}: no node that can be packed", *left_out.words(), *more]))
    # 2. Pods: what leaves with its node, and the workload.
    names, every = {node.name for node in nodes}, {line.name for line in checkpoint.nodes}
    leaving, tasks, residents = [], [], []
    for pod in checkpoint.pods:
        if not left_out.unless(_pod_mistake(pod, every)):
            continue
        if pod.owner_kind in _LEAVE:
            leaving += [_task(pod, pod.node)] if pod.node in names else []
        else:
            tasks.append(_task(pod, pod.node if pod.node in names else None))
            residents += [_resident(pod, pod.node)] if pod.node in names else []
    if not tasks:
        raise TraceError("; ".join([f"{source}: no pod that can be packed", *left_out.words(), *more]))
    problem = problem_of(nodes, tasks, leaving)
    note = f"{many(len(leaving), 'pod')} of DaemonSets, or static; percents are of what such pods leave of their nodes"
    return ClusterMoment(
        source,
        problem,
        [*([note] if leaving else []), *left_out.words(), *more],
        [*_not_modelled(checkpoint.pods), *NEVER_MODELLED],
        machines=sorted(nodes, key=lambda node: problem.layout.rows[node.name]),
        residents=residents,
        staying=leaving,
    )


def _not_modelled(pods: Sequence[PodLine]) -> list[str]:
    """Return what the recording does not hold of its pods, each with how many have it."""
    counts = Counter(name for pod in pods for name in pod.unwritten)
    return [f"{_UNWRITTEN.get(name, name)} ({many(count, 'pod')})" for name, count in sorted(counts.items())]


def _resident(pod: PodLine, node: str) -> Resident:
    name = f"{pod.namespace}/{pod.name}"
    hard = tuple(what for what in pod.unwritten if what not in (PREFERRED, SPREAD_ANYWAY))
    return Resident(name, _task(pod, node), bool(pod.owner), hard)


def _task(pod: PodLine, node: str | None) -> PackingTask:
    return PackingTask(
        pod.demand,
        pod.created,
        f"{pod.namespace}/{pod.job}",
        pod.constraints,
        node,
        namespace=pod.namespace,
        labels=tuple(sorted(pod.labels.items())),
        peers=pod.peers,
    )


def _node_mistake(line: NodeLine) -> tuple[str, str]:
    """Return what is wrong with a node and which it is; "" for nothing."""
    wrong = impossible(line.offers)
    if wrong:
        return f"nodes with an amount that is none ({wrong})", line.name
    lacks = [name for name in (CPU, MEMORY) if not line.offers.get(name)]
    return (f"nodes without {' and '.join(lacks)} to offer", line.name) if lacks else ("", "")


def _pod_mistake(pod: PodLine, nodes: set[str]) -> tuple[str, str]:
    name = f"{pod.namespace}/{pod.name}"
    wrong = impossible(pod.demand)
    if wrong:
        return f"pods with a request that is none ({wrong})", name
    if pod.node is not None and pod.node not in nodes:
        return "pods on nodes that the checkpoint does not have", f"{name} on {pod.node}"
    return ("pods on idle resources (opportunistic)", name) if pod.opportunistic else ("", "")


class _LeftOut:
    """What is left out: how many of each kind, and the first of it."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._first: dict[str, str] = {}

    def unless(self, mistake: tuple[str, str]) -> bool:
        """Say whether there is no mistake; count it where there is one."""
        what, name = mistake
        if what:
            self._counts[what] += 1
            self._first.setdefault(what, name)
        return not what

    def words(self) -> list[str]:
        return [f"{count} {what}, the first: {self._first[what]}" for what, count in self._counts.items()]
