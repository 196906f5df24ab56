"""What becomes of a DAG if its tasks start in a given order, whenever there is room: no machine idles on purpose."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.graph.dag import Dag, Machines

Ranks = Sequence[Floats]
"""For each stage a rank of each of its tasks [T]: of those that could start the smallest starts first.

Where all are equal the tasks are taken by their alignment with what is free.
"""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Replayed:
    """When the last task ended, and when each began: for each stage [T]."""

    span: float
    begins: Sequence[Floats]


@dataclass(frozen=True, slots=True)
class _Line:
    """The tasks of a stage that could start: their `ranks`, ascending, and which they are, [W] both."""

    ranks: Floats
    tasks: np.ndarray


class Replay:
    """One run. Tasks of a stage that start together on machines are one event when they take equally long."""

    def __init__(self, dag: Dag, machines: Machines, ranks: Ranks | None) -> None:
        """Take ranks; None, or all equal: the task starts next that is best aligned with what is free (Tetris, 3.2)."""
        self._dag, self._ranks = dag, None if ranks is None or _say_nothing(ranks) else ranks
        # What is free [M, R], and a little more: sums of what is taken and given back are not exact.
        self._room = np.tile(machines.capacity + _ROUNDING * machines.capacity, (machines.count, 1))
        self._scale = np.where(machines.capacity > 0, 1 / np.where(machines.capacity > 0, machines.capacity, 1.0), 0.0)
        self._demanded = [np.flatnonzero(row > 0) for row in dag.demand]
        self._amounts = [row[columns] for row, columns in zip(dag.demand, self._demanded, strict=True)]
        self._missing = [sum(not edge.one_to_one for edge in edges) for edges in dag.parents]
        self._missing_each: list[Counts | None] = []
        for row, edges in enumerate(dag.parents):
            ones = sum(edge.one_to_one for edge in edges)
            self._missing_each.append(np.full(dag.count[row], ones) if ones else None)
        self._left = dag.count.copy()
        self._waiting: dict[int, _Line] = {}
        # Since tasks were started last, when nothing that waited fitted: which machines got room, and who came to wait.
        self._freed = np.zeros(machines.count, dtype=np.bool_)
        self._opened: set[int] = set()
        self._ends: list[tuple[float, int, int, Counts, np.ndarray]] = []
        self._sequence = 0
        self._next = np.zeros(len(dag))
        self._begins = [np.zeros(count) for count in dag.count]

    @property
    def effort(self) -> int:
        """What the run cost: how many times tasks were started together, more on many machines."""
        return 1 + self._sequence * (20 + len(self._room)) // 40

    def run(self, most: float = np.inf) -> Replayed:
        """Run to the end; once that would come later than `most`, stop with a span of infinity."""
        for row in range(len(self._dag)):
            if not self._missing[row]:
                self._open(row, np.arange(self._dag.count[row]), all_of_it=self._missing_each[row] is None)
        now = 0.0
        while True:
            self._start(now)
            if not self._ends:
                return Replayed(now, self._begins)
            now = self._ends[0][0]
            if now > most:
                return Replayed(np.inf, self._begins)
            while self._ends and self._ends[0][0] <= now + _ROUNDING * max(now, 1.0):
                self._end(heapq.heappop(self._ends))

    def _open(self, row: int, tasks: np.ndarray, *, all_of_it: bool) -> None:
        """Let tasks wait for room; unless it is all of the stage, only those whose own parents have ended."""
        each = self._missing_each[row]
        if not all_of_it and each is not None:
            tasks = tasks[each[tasks] == 0]
        if not len(tasks):
            return
        if (line := self._waiting.get(row)) is not None:
            tasks = np.sort(np.concatenate((line.tasks, tasks)))
        else:
            self._opened.add(row)
        ranks = np.zeros(len(tasks)) if self._ranks is None else self._ranks[row][tasks]
        by_rank = np.argsort(ranks, kind="stable")
        self._waiting[row] = _Line(ranks[by_rank], tasks[by_rank])
        self._next[row] = ranks[by_rank[0]]

    def _start(self, now: float) -> None:
        if self._ranks is None:
            self._start_by_alignment(now)
            return
        rows = self._that_may_start()
        ranks = self._next[rows]
        while len(rows):
            best = int(ranks.argmin())
            row = rows.item(best)
            if np.isinf(ranks.item(best)):
                return
            ranks[best] = np.inf
            count = max(int(np.searchsorted(self._waiting[row].ranks, ranks.min(), side="right")), 1)
            each = self._fitting(row, count)
            placed = int(each.sum())
            if placed:
                self._launch(row, each, placed, now)
            if placed == count and row in self._waiting:  # else no more of it fits: room only shrinks here
                ranks[best] = self._next[row]

    def _that_may_start(self) -> Rows:
        """Return the stages of which a task fits: of those that waited before, on machines that got room since."""
        rows = np.array(list(self._waiting), dtype=np.intp)
        opened = np.array([row in self._opened for row in rows.tolist()], dtype=np.bool_)
        fit = opened.copy()
        fit[opened] = self._fit(rows[opened], self._room)
        fit[~opened] = self._fit(rows[~opened], self._room[self._freed])
        self._opened.clear()
        self._freed[:] = False
        return rows[fit]

    def _fit(self, rows: Rows, room: Floats) -> Mask:
        """Return of which of these stages [W] a task fits on some machine with this room [M, R]."""
        if not len(rows):
            return np.empty(0, dtype=np.bool_)
        demand = self._dag.demand[rows]
        room = room[(room >= demand.min(axis=0)).all(axis=1)]
        fit = np.asarray((room[np.newaxis] >= demand[:, np.newaxis]).all(axis=2))
        return np.asarray(fit.any(axis=1))

    def _fitting(self, row: int, most: int) -> Counts:
        """Return how many tasks of the stage each machine takes [M], so many at most."""
        columns, amounts = self._demanded[row], self._amounts[row]
        if not len(columns):
            each = np.zeros(len(self._room), dtype=np.int64)
            each[0] = most
            return each
        times = (self._room[:, columns] / amounts).min(axis=1)
        each = np.minimum(times + _ROUNDING, most).astype(np.int64)
        before = np.cumsum(each) - each
        return np.asarray(np.maximum(np.minimum(most - before, each), 0))

    def _start_by_alignment(self, now: float) -> None:
        """Start the task that is best aligned with what is free of a machine, until nothing fits."""
        rows = list(self._waiting)
        machines = np.arange(len(self._room)) if self._opened else np.flatnonzero(self._freed)
        self._opened.clear()
        self._freed[:] = False
        if not rows or not len(machines):
            return
        demand = self._dag.demand[rows]
        scores = self._aligned(demand, self._room[machines])
        while True:
            best = int(scores.argmax())
            if scores.flat[best] == -np.inf:
                return
            stage, column = divmod(best, len(machines))
            machine = machines.item(column)
            each = np.zeros(len(self._room), dtype=np.int64)
            each[machine] = 1
            self._launch(rows[stage], each, 1, now)
            scores[:, column] = self._aligned(demand, self._room[machine : machine + 1])[:, 0]
            if rows[stage] not in self._waiting:
                scores[stage] = -np.inf
                demand[stage] = np.inf

    def _aligned(self, demand: Floats, room: Floats) -> Floats:
        """Return the alignment of each demand [W, R] with the room of each machine [M, R], -inf where none [W, M]."""
        fit = (room[np.newaxis] >= demand[:, np.newaxis]).all(axis=2)
        amounts = np.where(np.isfinite(demand), demand, 0.0) * self._scale
        return np.where(fit, amounts @ (room * self._scale).T, -np.inf)

    def _launch(self, row: int, each: Counts, placed: int, now: float) -> None:
        line = self._waiting[row]
        tasks = line.tasks[:placed]
        if placed == len(line.tasks):
            del self._waiting[row]
        else:
            self._waiting[row] = _Line(line.ranks[placed:], line.tasks[placed:])
            self._next[row] = line.ranks[placed]
        self._room -= each[:, np.newaxis] * self._dag.demand[row]
        self._begins[row][tasks] = now
        seconds = self._dag.stages[row].seconds[tasks]
        if placed == 1 or (seconds == seconds[0]).all():
            self._push(now + seconds.item(0), row, each, tasks)
            return
        machine_of = np.repeat(np.arange(len(each)), each)
        for task, machine, lasts in zip(tasks.tolist(), machine_of.tolist(), seconds.tolist(), strict=True):
            alone = np.zeros(len(each), dtype=np.int64)
            alone[machine] = 1
            self._push(now + lasts, row, alone, np.array([task]))

    def _push(self, at: float, row: int, each: Counts, tasks: np.ndarray) -> None:
        self._sequence += 1
        heapq.heappush(self._ends, (at, self._sequence, row, each, tasks))

    def _end(self, event: tuple[float, int, int, Counts, np.ndarray]) -> None:
        """Give room back, and let children wait whose last parent this was."""
        _, _, row, each, tasks = event
        self._room += each[:, np.newaxis] * self._dag.demand[row]
        self._freed |= each > 0
        self._left[row] -= len(tasks)
        for edge in self._dag.children[row]:
            missing_each = self._missing_each[edge.row]
            if edge.one_to_one and missing_each is not None:
                missing_each[tasks] -= 1
                if not self._missing[edge.row]:
                    self._open(edge.row, tasks, all_of_it=False)
            elif not edge.one_to_one and not self._left[row]:
                self._missing[edge.row] -= 1
                if not self._missing[edge.row]:
                    everything = np.arange(self._dag.count[edge.row])
                    self._open(edge.row, everything, all_of_it=missing_each is None)


def _say_nothing(ranks: Ranks) -> bool:
    first = ranks[0].item(0)
    return all(bool((those == first).all()) for those in ranks)


def replay(dag: Dag, machines: Machines, ranks: Ranks | None) -> Replayed:
    """Return what becomes of the DAG by these ranks; without ranks, by alignment."""
    return Replay(dag, machines, ranks).run()
