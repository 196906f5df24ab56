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
    """A plan before which these running pods end, places in `Running` [V]; whom they make room for is planned next."""

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
        self.victims: list[int] = []

    def lowest(self) -> int:
        """Return the priority of the least important pod that runs: only a pod above it can preempt anybody."""
        return int(self._priority[self._there].min(initial=_HIGHEST))

    def has_room(self, demand: Floats, allowed: Mask | None) -> bool:
        """Say whether a pod of this demand [R] fits on an `allowed` node [N] (None: on any) without more victims."""
        counted = slice(None) if self._all_resources else self._columns
        there = fits(self._free[:, counted], demand[counted])
        return bool((there if allowed is None else there & allowed).any())

    def node_for(self, demand: Floats, priority: int, allowed: Mask | None) -> int | None:
        """Return the node for a pod of this demand [R] that may go to the `allowed` [N] (None: all), its victims noted.

        None where it would fit nowhere, whoever of lower priority ends.
        """
        columns = self._columns
        # 1. Where it would fit without all pods that are less important.
        lower = np.flatnonzero(self._there & (self._priority < priority))
        if not len(lower):
            return None
        room = self._free.copy()
        np.add.at(room, self._running.node[lower], self._held[lower])
        could = fits(room[:, columns], demand[columns])
        if allowed is not None:
            could &= allowed
        # 2. Who would have to go on each, and where that does the least harm.
        best: tuple[tuple[float, ...], int, list[int]] | None = None
        for node in np.unique(self._running.node[lower]).tolist():
            if not could[node]:
                continue
            victims = self._victims((room[node] - demand)[columns], lower[self._running.node[lower] == node])
            key = self._harm(victims)
            if victims and (best is None or key < best[0]) and self._helps(victims, node, demand):
                best = key, node, victims
        if best is None:
            return None
        # 3. They go, and the pod has its room.
        _, node, victims = best
        self._there[victims] = False
        self._free[node] += self._held[victims].sum(axis=0) - demand
        self.victims += victims
        return node

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
    """Return for whom running pods are preempted: the name of its class and its node.

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
