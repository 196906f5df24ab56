"""Preemption as kube-scheduler does it: a pod that finds no room may end pods of lower priority on one node.

From Kubernetes 1.36, pkg/scheduler/framework/plugins/defaultpreemption and .../preemption. Of nodes on which it would
fit without pods of lower priority, that one is taken whose most important victim is least important; then the one whose
victims are least important together, then with the fewest, then where the most important began last. No victim is
ended that could stay. Without PodDisruptionBudgets and grace periods; all nodes are looked at, where kube-scheduler
looks at a tenth, or 100.

N nodes, T running pods, R resources that count.
"""

from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, fits
from extender.cluster.resources import CPU_INDEX, DIMENSIONS, MEMORY_INDEX
from extender.cluster.waiting import Running, Waiting
from extender.planner import Plan

_OFFSET = 2**31 + 1
"""Added to each priority before they are summed up, as there: more victims of one priority are more."""

_HIGHEST = 2**31 - 1
"""No pod is more important."""


@dataclass(frozen=True, slots=True)
class PlanWithVictims(Plan):
    """A plan after which `victims` end, places in `Running` [V]. The pods that get their room are in the next plan."""

    victims: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))


def counted_by_kube(resources: int) -> Rows:
    """Return the columns, of so many, by which kube-scheduler counts: CPU, memory, what is beyond the six."""
    return np.array([CPU_INDEX, MEMORY_INDEX, *range(len(DIMENSIONS), resources)], dtype=np.intp)


class Preemption:
    """What is preempted in one plan; `victims` are places of running pods.

    `free` [N, R] is what no pod holds. kube-scheduler chooses victims by the resources in `columns` [K], and with
    `all_resources` (the extender's verb `preempt`) only nodes count where nothing else is short once they are gone.
    """

    def __init__(self, running: Running, free: Floats, columns: Rows, *, all_resources: bool = False) -> None:
        if running.priority is None or running.seconds is None:
            raise ValueError("nobody says how important running pods are")
        self._running, self._free, self._all_resources = running, free, all_resources
        self._priority, self._began = running.priority, running.ends_at - running.seconds
        self._columns, self._held = columns, running.demand
        self._counted = running.demand[:, columns]
        self._there: Mask = np.ones(len(running.node), dtype=np.bool_)
        # By priority what nodes would have, and by demand and priority who would go on each: until others run there.
        self._rooms: dict[int, Floats] = {}
        self._known: dict[tuple[bytes, int], dict[int, tuple[tuple[float, ...], list[int]]]] = {}
        self.victims: list[int] = []

    def lowest(self) -> int:
        """Return the priority of the least important pod that runs: only a pod above it can preempt anybody."""
        return int(self._priority[self._there].min(initial=_HIGHEST))

    def has_room(self, demand: Floats, allowed: Mask | None) -> bool:
        """Say whether a pod of this demand [R] fits on an `allowed` node [N] (None: on any) without more victims."""
        counted = slice(None) if self._all_resources else self._columns
        enough = fits(self._free[:, counted], demand[counted])
        return bool((enough if allowed is None else enough & allowed).any())

    def node_for(self, demand: Floats, priority: int, allowed: Mask | None) -> int | None:
        """Return the node for a pod of this demand [R] that may go to the `allowed` [N] (None: all), its victims noted.

        None where it would fit nowhere, whoever of lower priority ends.
        """
        # 1. Where it would fit without all pods that are less important.
        room = self._room_without(priority)
        could = fits(room[:, self._columns], demand[self._columns])
        if allowed is not None:
            could &= allowed
        # 2. Who would have to go on each, and where that does the least harm; of equals the first node.
        known = self._known.setdefault((demand.tobytes(), priority), {})
        best: tuple[tuple[float, ...], int, list[int]] | None = None
        for node in np.flatnonzero(could).tolist():
            if node not in known:
                known[node] = self._who_goes(room[node] - demand, priority, node, demand)
            harm, victims = known[node]
            if victims and (best is None or harm < best[0]):
                best = harm, node, victims
        if best is None:
            return None
        # 3. They go, and the pod has its room.
        _, node, victims = best
        self._there[victims] = False
        self._free[node] += self._held[victims].sum(axis=0) - demand
        self.victims += victims
        self._forget(node)
        return node

    def _room_without(self, priority: int) -> Floats:
        """Return what nodes would have without all pods below a priority [N, R]."""
        if priority not in self._rooms:
            lower = np.flatnonzero(self._there & (self._priority < priority))
            self._rooms[priority] = self._free.copy()
            np.add.at(self._rooms[priority], self._running.node[lower], self._held[lower])
        return self._rooms[priority]

    def _forget(self, node: int) -> None:
        """Forget what was known of a node on which others are now."""
        for of_pods in self._known.values():
            of_pods.pop(node, None)
        for priority, room in self._rooms.items():
            room[node] = self._free[node] + self._held[self._below(priority, node)].sum(axis=0)

    def _below(self, priority: int, node: int) -> Rows:
        """Return who runs on a node and is less important."""
        return np.flatnonzero(self._there & (self._priority < priority) & (self._running.node == node))

    def _who_goes(self, room: Floats, priority: int, node: int, demand: Floats) -> tuple[tuple[float, ...], list[int]]:
        """Return how much harm is done on a node, and whose ends do it; nobody's where these would not help."""
        victims = self._victims(room[self._columns], self._below(priority, node))
        return self._harm(victims), victims if victims and self._helps(victims, node, demand) else []

    def _helps(self, victims: list[int], node: int, demand: Floats) -> bool:
        """Say whether nothing that counts is short on the node once these are gone."""
        return not self._all_resources or bool(fits(self._free[node] + self._held[victims].sum(axis=0), demand))

    def _victims(self, room: Floats, there: Rows) -> list[int]:
        """Return who of these has to go, where so much is left without any: the more important stay if they can."""
        victims, held = [], self._counted
        for place in there[np.lexsort((self._began[there], -self._priority[there]))].tolist():
            if (room >= held[place]).all():
                room = room - held[place]
            else:
                victims.append(place)
        return victims

    def _harm(self, victims: list[int]) -> tuple[float, ...]:
        priorities = self._priority[victims]
        highest = int(priorities.max(initial=-(2**31)))
        began = self._began[victims][priorities == highest].min(initial=np.inf)
        return highest, float((priorities + _OFFSET).sum()), len(victims), -float(began)


def nominations(
    preemption: Preemption, waiting: Waiting, demand: Floats, classes: Rows, left: Counts
) -> list[tuple[str, int]]:
    """Return the pods for which running ones are preempted, each by the name of its class and its node.

    Tasks are tried in the order of these `classes` [K] (rows of `waiting`), `left` [K] of each. A task of class c needs
    demand[c] [C, R]. Who has room already preempts nobody.
    """
    nominated: list[tuple[str, int]] = []
    if waiting.priority is None:
        return nominated
    outranking = (left > 0) & (waiting.priority[classes] > preemption.lowest())
    for row, count in zip(classes[outranking].tolist(), left[outranking].tolist(), strict=True):
        allowed = None if waiting.barred is None else ~waiting.barred[row]
        for _ in range(count):
            if preemption.has_room(demand[row], allowed):
                break
            node = preemption.node_for(demand[row], int(waiting.priority[row]), allowed)
            if node is None:
                break
            nominated.append((waiting.names[row], node))
    return nominated
