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
from extender.cluster.resources import Amounts
from lab.packing.model import Allowing, Problem

GUARDED = "a PodDisruptionBudget allows no eviction now"
BARE = "nobody would make its pod again: it has no controller"
UNKNOWN = "a pod has constraints that are not modelled"
NO_ROOM = "a pod finds no room elsewhere"


@dataclass(frozen=True, slots=True)
class Resident:
    """A pod on a node that would have to go elsewhere. `unwritten` are constraints of its that nobody knows here."""

    name: str
    node: str
    demand: Amounts
    constraints: Constraints
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
    problem: Problem, machines: Sequence[Node], residents: Sequence[Resident], guards: Mapping[str, str]
) -> Drained:
    """Return the nodes that could be drained. `guards` are the budgets that allow no eviction, by the pod's name.

    Pods are placed the largest first, each on the fullest node that has room. Where that fails another placement may
    exist: what is returned can be drained, and more may be.
    """
    there: dict[str, list[Resident]] = {name: [] for name in problem.layout.names}
    for resident in residents:
        there[resident.node].append(resident)
    others = _Others(problem, machines)
    nodes, idle = list[str](), 0
    counts, first = dict[str, int](), dict[str, str]()
    for row, (name, pods) in enumerate(there.items()):
        found = _obstacle(row, pods, guards, others)
        if found is None:
            nodes.append(name)
            idle += not pods
        else:
            reason, what = found
            counts[reason] = counts.get(reason, 0) + 1
            first.setdefault(reason, f"{name}: {what}")
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
    """What nodes have left for the pods of another."""

    def __init__(self, problem: Problem, machines: Sequence[Node]) -> None:
        self._layout = problem.layout
        self._free: Floats = problem.capacity - problem.allocated
        self._scale = 1.0 / np.where(np.isfinite(problem.packed) & (problem.packed > 0), problem.packed, np.inf)
        self._allowing = Allowing(machines)
        self._masks: dict[Constraints, Mask] = {}

    def without_room(self, row: int, pods: Sequence[Resident]) -> Resident | None:
        """Return the first of a node's pods that finds no room on the others; None where all do."""
        free = self._free.copy()
        demands = np.array([self._layout.vector(pod.demand) for pod in pods]).reshape(len(pods), free.shape[1])
        sizes = (demands * self._scale.mean(axis=0)).sum(axis=1)
        for place in np.argsort(-sizes, kind="stable").tolist():
            demand, pod = demands[place], pods[int(place)]
            asked = np.flatnonzero(demand)
            able = (free[:, asked] >= demand[asked]).all(axis=1) & self._allowed(pod.constraints)
            able[row] = False
            rows = np.flatnonzero(able)
            if not len(rows):
                return pod
            room = np.where(self._scale[rows] > 0, free[rows], 0.0) * self._scale[rows]
            free[rows[int(room.sum(axis=1).argmin())]] -= demand
        return None

    def _allowed(self, constraints: Constraints) -> Mask:
        if constraints not in self._masks:
            self._masks[constraints] = self._allowing(constraints)
        return self._masks[constraints]
