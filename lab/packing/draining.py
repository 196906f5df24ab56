"""Which nodes could be drained now: their pods may be evicted, and find room on the others as these are.

One node at a time: each answer is as if only that node were drained. Nothing else moves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.eligibility import Constraints
from extender.cluster.model import Node
from lab.packing.keeping import Keeping
from lab.packing.model import Allowing, Problem
from lab.packing.relations import UNTIED, relate
from lab.packing.task import PackingTask

GUARDED = "a PodDisruptionBudget allows no eviction now"
BARE = "nobody would make its pod again: it has no controller"
UNKNOWN = "a pod has constraints that are not modelled"
NO_ROOM = "a pod finds no room elsewhere"


@dataclass(frozen=True, slots=True)
class Resident:
    """A pod on a node that would have to go elsewhere. `unwritten` are constraints of its that nobody knows here."""

    name: str
    task: PackingTask
    controlled: bool
    unwritten: Sequence[str] = ()


class Obstacle(msgspec.Struct, frozen=True):
    """Why nodes cannot be drained: how many for this reason, and the first of them with the pod."""

    reason: str
    nodes: int
    first: str


class Drained(msgspec.Struct, frozen=True):
    """The nodes that could be drained now, each by itself; of these, `idle` have no pod that would have to go."""

    nodes: list[str]
    idle: int
    obstacles: list[Obstacle]


def drainable(
    problem: Problem,
    machines: Sequence[Node],
    residents: Sequence[Resident],
    guards: Mapping[str, str],
    staying: Sequence[PackingTask] = (),
) -> Drained:
    """Return the nodes that could be drained. `guards` are the budgets that allow no eviction, by the pod's name.

    `staying` are tasks that nobody moves: those of DaemonSets.

    Pods are placed the largest first, each on the fullest node that has room. Where that fails another placement may
    exist: what is returned can be drained, and more may be.
    """
    there: dict[str, list[Resident]] = {name: [] for name in problem.layout.names}
    for resident in residents:
        if resident.task.node is not None:
            there[resident.task.node].append(resident)
    others = _Others(problem, machines, residents, staying)
    nodes, idle = list[str](), 0
    counts, first = dict[str, int](), dict[str, str]()
    for row, (name, pods) in enumerate(there.items()):
        obstacle = _obstacle(row, pods, guards, others)
        if obstacle is None:
            nodes.append(name)
            idle += not pods
        else:
            reason, pod = obstacle
            counts[reason] = counts.get(reason, 0) + 1
            first.setdefault(reason, f"{name}: {pod}")
    most_first = sorted(counts, key=lambda reason: -counts[reason])
    return Drained(nodes, idle, [Obstacle(reason, counts[reason], first[reason]) for reason in most_first])


def _obstacle(
    row: int, pods: Sequence[Resident], guards: Mapping[str, str], others: "_Others"
) -> tuple[str, str] | None:
    """Return why a node cannot be drained, and of which pod; None where it can."""
    for pod in pods:
        if pod.name in guards:
            return GUARDED, f"{pod.name}, {guards[pod.name]}"
        if not pod.controlled:
            return BARE, pod.name
        if pod.unwritten:
            return UNKNOWN, f"{pod.name}: {', '.join(pod.unwritten)}"
    left = others.without_room(row, pods)
    return None if left is None else (NO_ROOM, left.name)


class _Others:
    """What nodes have left for the pods of another, and which pods are where."""

    def __init__(
        self, problem: Problem, machines: Sequence[Node], residents: Sequence[Resident], staying: Sequence[PackingTask]
    ) -> None:
        self._layout = problem.layout
        self._free: Floats = problem.capacity - problem.allocated
        self._scale = 1.0 / np.where(np.isfinite(problem.packed) & (problem.packed > 0), problem.packed, np.inf)
        self._allowing = Allowing(machines)
        self._masks: dict[Constraints, Mask] = {}
        tasks = [pod.task for pod in residents]
        relations, ties = relate(tasks, staying, machines, self._allowing)
        self._keeping = None if relations is None else Keeping(relations, np.arange(len(machines)))
        self._ties = {pod.name: tied for pod, tied in zip(residents, ties, strict=True)}
        for pod in residents:
            self._move(pod, self._layout.rows[pod.task.node or ""], 1)

    def without_room(self, row: int, pods: Sequence[Resident]) -> Resident | None:
        """Return the first of a node's pods that finds no room on the others; None where all do."""
        moved = [(pod, row, -1) for pod in pods]
        for pod, place, change in moved:
            self._move(pod, place, change)
        left = self._place(row, pods, moved)
        for pod, place, change in moved:
            self._move(pod, place, -change)
        return left

    def _place(self, row: int, pods: Sequence[Resident], moved: list[tuple[Resident, int, int]]) -> Resident | None:
        """Place pods on the others as `without_room` says; adds to `moved` who came where."""
        free = self._free.copy()
        demands = np.array([self._layout.vector(pod.task.demand) for pod in pods]).reshape(len(pods), free.shape[1])
        sizes = (demands * self._scale.mean(axis=0)).sum(axis=1)
        for place in np.argsort(-sizes, kind="stable").tolist():
            demand, pod = demands[place], pods[int(place)]
            asked = np.flatnonzero(demand)
            able = (free[:, asked] >= demand[asked]).all(axis=1) & self._allowed(pod)
            able[row] = False
            rows = np.flatnonzero(able)
            if not len(rows):
                return pod
            room = np.where(self._scale[rows] > 0, free[rows], 0.0) * self._scale[rows]
            chosen = int(rows[int(room.sum(axis=1).argmin())])
            free[chosen] -= demand
            self._move(pod, chosen, 1)
            moved.append((pod, chosen, 1))
        return None

    def _move(self, pod: Resident, row: int, change: int) -> None:
        """Note that a pod is on a node, or with -1 that it is there no more."""
        ties = self._ties[pod.name]
        if self._keeping is not None and ties != UNTIED:
            self._keeping.take(np.array([row]), np.array([change]), ties, ties.copy)

    def _allowed(self, pod: Resident) -> Mask:
        constraints, ties = pod.task.constraints, self._ties[pod.name]
        if constraints not in self._masks:
            self._masks[constraints] = self._allowing(constraints)
        if self._keeping is None or ties == UNTIED:
            return self._masks[constraints]
        return self._masks[constraints] & self._keeping.allowance(ties, ties.copy, None).for_one
