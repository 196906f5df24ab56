"""Orders that take more of a machine than it has, as others do in the paper's table 7 (Graphene, 8.1 and 8.3).

What is overbooked degrades gracefully: all of it is used, and each task that demands it takes longer in proportion. A
task runs as fast as what it gets least of lets it. Network and disk only; CPU and memory are never overbooked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats
from extender.graph import Dag, Machines, orders

_STRICT = 2
"""CPU and memory are the first two resources of the family."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Rule:
    """How much of network and disk may be taken, in machines, and by which of `orders.BASELINES` tasks start."""

    most: float
    order: str = orders.LONGEST_PATH


TEZ = "breadth-first, CPU and memory"
"""What the paper compares with: Tez goes breadth-first and knows what tasks take of CPU and memory alone (7.1)."""
RULES: Mapping[str, Rule] = {
    TEZ: Rule(np.inf, orders.BREADTH_FIRST),
    "random, CPU and memory": Rule(np.inf, orders.RANDOM),
    "longest path, CPU and memory": Rule(np.inf),
    "longest path, overbooked": Rule(1.25),
    "Tetris, overbooked": Rule(1.25, orders.TETRIS),
}
"""A quarter more: chosen, before any was run. The paper does not say how much its baselines overbook."""


def span(dag: Dag, machines: Machines, rule: Rule, seed: int = 0) -> float:
    """Return how long the DAG takes; an order at random is drawn by the seed."""
    return _Run(dag, machines, rule, seed).through()


@dataclass(slots=True)
class _Machine:
    """What runs on it: for each task its stage, its number and how many seconds it would take alone."""

    load: list[float]
    tasks: list[tuple[int, int]] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    speed: list[float] = field(default_factory=list)
    since: float = 0.0

    def until(self, now: float) -> None:
        """Let its tasks run until now."""
        passed, self.since = now - self.since, now
        self.left = [left - passed * speed for left, speed in zip(self.left, self.speed, strict=True)]

    @property
    def ends(self) -> float:
        """When the next of its tasks ends."""
        runs = (left / speed for left, speed in zip(self.left, self.speed, strict=True))
        return self.since + max(min(runs, default=np.inf), 0.0)


class _Run:
    def __init__(self, dag: Dag, machines: Machines, rule: Rule, seed: int) -> None:
        self._dag = dag
        self._demand = (dag.demand / machines.capacity).tolist()
        strict = np.arange(dag.demand.shape[1]) < _STRICT
        self._most = (np.where(strict, 1.0, rule.most) + _ROUNDING).tolist()
        self._machines = [_Machine([0.0] * dag.demand.shape[1]) for _ in range(machines.count)]
        ranks = orders.baseline(rule.order, dag, np.random.default_rng(seed))
        self._rank = None if ranks is None else [float(stage[0]) for stage in ranks]
        self._missing = [sum(not edge.one_to_one for edge in edges) for edges in dag.parents]
        self._each = [
            [sum(edge.one_to_one for edge in edges)] * count
            for edges, count in zip(dag.parents, dag.count.tolist(), strict=True)
        ]
        self._left = dag.count.tolist()
        self._ready: dict[int, list[int]] = {}

    def through(self) -> float:
        """Run to the end, and return when that is."""
        for row, missing in enumerate(self._missing):
            if not missing:
                self._open(row, range(self._left[row]))
        changed, now = set(range(len(self._machines))), 0.0
        ends = [np.inf] * len(self._machines)
        while True:
            for number in sorted(changed):
                self._fill(self._machines[number], now)
                ends[number] = self._machines[number].ends
            now = min(ends)
            if now == np.inf:
                return max(machine.since for machine in self._machines)
            together = now + _ROUNDING * max(now, 1.0)
            changed = {number for number, end in enumerate(ends) if end <= together}
            before = sum(len(tasks) for tasks in self._ready.values())
            for number in sorted(changed):
                self._end(self._machines[number], now)
            if sum(len(tasks) for tasks in self._ready.values()) > before:
                changed = set(range(len(self._machines)))

    def _open(self, row: int, tasks: range | list[int]) -> None:
        ready = [task for task in tasks if not self._each[row][task]]
        if ready:
            self._ready.setdefault(row, []).extend(ready)

    def _fill(self, machine: _Machine, now: float) -> None:
        """Start tasks on it while any fits."""
        started = False
        while (row := self._next(machine)) is not None:
            if not started:
                machine.until(now)
                started = True
            task = self._ready[row].pop(0)
            if not self._ready[row]:
                del self._ready[row]
            machine.tasks.append((row, task))
            machine.left.append(float(self._dag.stages[row].seconds[task]))
            machine.speed.append(1.0)
            machine.load = [load + part for load, part in zip(machine.load, self._demand[row], strict=True)]
        if started:
            self._set_speeds(machine)

    def _next(self, machine: _Machine) -> int | None:
        """Return the stage whose task starts next on it; None where none fits."""
        fit = [row for row in self._ready if self._fits(machine.load, self._demand[row])]
        rank = self._rank
        if rank is not None:
            return min(fit, key=lambda row: (rank[row], row), default=None)
        free = [max(1.0 - load, 0.0) for load in machine.load]
        return max(fit, key=lambda row: (_dot(free, self._demand[row]), -row), default=None)

    def _fits(self, load: list[float], demand: list[float]) -> bool:
        return all(not part or taken + part <= most for taken, part, most in zip(load, demand, self._most, strict=True))

    def _set_speeds(self, machine: _Machine) -> None:
        over = [max(load, 1.0) for load in machine.load]
        machine.speed = [
            1 / max((much for much, part in zip(over, self._demand[row], strict=True) if part), default=1.0)
            for row, _ in machine.tasks
        ]

    def _end(self, machine: _Machine, now: float) -> None:
        """End what has nothing left, give its room back and let its children wait for room."""
        machine.until(now)
        kept = [place for place, left in enumerate(machine.left) if left > _ROUNDING * max(now, 1.0) * 10]
        ended = [task for place, task in enumerate(machine.tasks) if place not in set(kept)]
        machine.tasks = [machine.tasks[place] for place in kept]
        machine.left = [machine.left[place] for place in kept]
        loads: Floats = np.zeros(len(machine.load))
        for row, _ in machine.tasks:
            loads += self._demand[row]
        machine.load = loads.tolist()
        self._set_speeds(machine)
        for row, task in ended:
            self._left[row] -= 1
            for edge in self._dag.children[row]:
                if edge.one_to_one:
                    self._each[edge.row][task] -= 1
                    if not self._missing[edge.row]:
                        self._open(edge.row, [task])
                elif not self._left[row]:
                    self._missing[edge.row] -= 1
                    if not self._missing[edge.row]:
                        self._open(edge.row, range(self._left[edge.row]))


def _dot(free: list[float], demand: list[float]) -> float:
    return sum(part * much for part, much in zip(free, demand, strict=True))
