"""What becomes of a DAG if its tasks start in a given order, whenever there is room: no machine idles on purpose.

A search replays thousands of orders, and at one moment few machines get room: so it is lists, not arrays.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask
from extender.graph.dag import Dag, Machines

Ranks = Sequence[Floats]
"""For each stage a rank of each of its tasks [T]: of those that could start the smallest starts first.

Where all are equal the tasks are taken by their alignment with what is free (Tetris, 3.2).
"""
_ROUNDING = 1e-9
_LOOKS_PER_EFFORT = 100
_MOVES_PER_LOOK = 1_000
"""So many places in a list are moved in the time of a look."""
_MANY = 20
"""So many demands that wait are looked at together, by arrays, for what can fit."""


_Place = tuple[float, int]
"""What a stage that waits goes by, the smallest first, and its row."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """When the last task ended, and when each began: for each stage [T]; and what it cost, in units of effort.

    A run that was given up has a span of infinity, and no beginnings.
    """

    span: float
    begins: Sequence[Floats]
    effort: int


@dataclass(slots=True)
class _Line:
    """The tasks of a stage that could start, from place `at` on: by `ranks`, or all of one rank."""

    rank: float
    ranks: list[float] | None
    tasks: list[int]
    at: int = 0

    def count(self, rank: float) -> int:
        """Return how many of them come no later than this rank, at least one."""
        if self.ranks is None:
            return len(self.tasks) - self.at
        return max(bisect_right(self.ranks, rank, self.at) - self.at, 1)

    def take(self, count: int) -> list[int]:
        """Take the first, and return them."""
        begin, self.at = self.at, self.at + count
        if self.ranks is not None and self.at < len(self.tasks):
            self.rank = self.ranks[self.at]
        return self.tasks[begin : self.at]

    def put(self, task: int, ranks: Floats | None) -> int:
        """Put a task in its place, by these ranks of its stage, then by number; return how many come after it."""
        if self.ranks is None or ranks is None:
            place = bisect_left(self.tasks, task, self.at)
        else:
            rank = ranks.item(task)
            first, last = bisect_left(self.ranks, rank, self.at), bisect_right(self.ranks, rank, self.at)
            place = bisect_left(self.tasks, task, first, last)
            self.ranks.insert(place, rank)
            self.rank = self.ranks[self.at]
        self.tasks.insert(place, task)
        return len(self.tasks) - 1 - place


class Replay:
    """Replays of one DAG on one share of machines."""

    def __init__(
        self,
        dag: Dag,
        machines: Machines,
        behind: Floats | None = None,
        *,
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take how long it takes at least from the start of any task of each stage to the end of all [S], if known.

        Once the search has `ended` a run is given up: of 100,000 tasks one takes many seconds.
        """
        self.dag, self.machines, self.ended = dag, machines, ended
        self.behind: list[float] = dag.shortest.tolist() if behind is None else behind.tolist()
        self.needs = [
            [(column, amount) for column, amount in enumerate(row) if amount > 0] for row in dag.demand.tolist()
        ]
        demands: dict[tuple[float, ...], int] = {}
        self.demand_of = [demands.setdefault(tuple(row), len(demands)) for row in dag.demand.tolist()]
        self.least = np.array(list(demands)) * (1 - 10 * _ROUNDING)  # what is smaller than this does not hold a task
        alike = (dag.longest == dag.shortest).tolist()
        self.lasts = [length if same else None for length, same in zip(dag.longest.tolist(), alike, strict=True)]
        self.missing = [sum(not edge.one_to_one for edge in edges) for edges in dag.parents]
        self.ones = [sum(edge.one_to_one for edge in edges) for edges in dag.parents]
        self._lines: list[tuple[Floats, _Line] | None] = [None] * len(dag)

    def run(self, ranks: Ranks, most: float = np.inf) -> Replayed:
        """Return what becomes of the DAG by these ranks; a run that must end later than `most` is given up."""
        return _Run(self, ranks, [self._line(row, of_stage) for row, of_stage in enumerate(ranks)], most).through()

    def by_alignment(self, most: float = np.inf) -> Replayed:
        """Return what becomes of the DAG if the task starts next that is best aligned with what is free."""
        return _Aligned(self, most).through()

    def _line(self, row: int, ranks: Floats) -> _Line:
        """Return all tasks of the stage in their order; what is known of the same array is used again."""
        known = self._lines[row]
        if known is None or known[0] is not ranks:
            first = float(ranks[0])
            if (ranks == first).all():
                line = _Line(first, None, list(range(len(ranks))))
            else:
                order = np.argsort(ranks, kind="stable")
                by_rank = ranks[order].tolist()
                line = _Line(by_rank[0], by_rank, order.tolist())
            known = self._lines[row] = ranks, line
        return known[1]


class _Run:
    """One run. Tasks of a stage that start together are one event when they take equally long.

    Stages of one demand wait in one queue: where its first finds no room, none of them does. What is out of date in a
    queue stays there until it comes first.
    """

    def __init__(self, replay: Replay, ranks: Ranks, lines: list[_Line], most: float) -> None:
        self._replay, self._ranks, self._lines, self._most = replay, ranks, lines, most
        dag, machines = replay.dag, replay.machines
        # What is free, and a little more: sums of what is taken and given back are not exact.
        full = (machines.capacity * (1 + _ROUNDING)).tolist()
        self._room = [full.copy() for _ in range(machines.count)]
        self._missing = replay.missing.copy()
        self._each = [
            [ones] * count if ones else None for ones, count in zip(replay.ones, dag.count.tolist(), strict=True)
        ]
        self._left: list[int] = dag.count.tolist()
        self._waiting: dict[int, _Line] = {}
        self._queues: dict[int, list[_Place]] = {}
        self._places: dict[int, _Place] = {}
        self._behind: list[_Place] = []
        # Since tasks were started last, when nothing that waited fitted: which machines got room, and who came to wait.
        self._freed: set[int] = set()
        self._opened: set[int] = set()
        self._ends: list[tuple[float, int, int, list[tuple[int, int]], list[int]]] = []
        self._launches: list[tuple[int, list[int], float]] = []
        self._looks = self._sequence = 0

    def through(self) -> Replayed:
        """Run to the end, or until it must end too late."""
        for row, missing in enumerate(self._missing):
            if not missing:
                self._open_all(row)
        now, ends, ended = 0.0, self._ends, self._replay.ended
        while self._start(now) and now <= self._most and not ended():
            if not ends:
                return Replayed(now, self._begins(), self._effort())
            now = ends[0][0]
            together = now + _ROUNDING * max(now, 1.0)
            while ends and ends[0][0] <= together:
                self._end(*heapq.heappop(ends)[2:])
        return Replayed(np.inf, (), self._effort())

    def _effort(self) -> int:
        return 2 + (self._looks + self._sequence + 10 * len(self._left)) // _LOOKS_PER_EFFORT

    def _begins(self) -> list[Floats]:
        begins = [np.zeros(count) for count in self._replay.dag.count]
        for row, tasks, now in self._launches:
            begins[row][tasks] = now
        return begins

    def _open_all(self, row: int) -> None:
        """Let all tasks of a stage wait for room for whose one parents nobody waits."""
        each, line = self._each[row], self._lines[row]
        if each is None:
            self._wait(row, _Line(line.rank, line.ranks, line.tasks))
        else:
            self._open(row, [task for task, missing in enumerate(each) if not missing])

    def _open(self, row: int, tasks: list[int]) -> None:
        """Let some tasks of a stage wait for room."""
        if not tasks:
            return
        line = self._waiting.get(row)
        if line is None:
            self._wait(row, self._line_of(row, sorted(tasks)))
            return
        ranks = None if line.ranks is None else self._ranks[row]
        for task in tasks:
            self._looks += line.put(task, ranks) // _MOVES_PER_LOOK
        self._queue(row, line.rank)

    def _line_of(self, row: int, tasks: list[int]) -> _Line:
        """Return these tasks of the stage, which are sorted, in their order."""
        everything = self._lines[row]
        if everything.ranks is None:
            return _Line(everything.rank, None, tasks)
        by_rank = sorted(zip(self._ranks[row][tasks].tolist(), tasks, strict=True))
        return _Line(by_rank[0][0], [rank for rank, _ in by_rank], [task for _, task in by_rank])

    def _wait(self, row: int, line: _Line) -> None:
        """Let a stage wait of which no task did."""
        self._opened.add(row)
        self._waiting[row] = line
        self._places.pop(row, None)
        self._queue(row, line.rank)
        heapq.heappush(self._behind, (-self._replay.behind[row], row))

    def _queue(self, row: int, rank: float) -> None:
        """Give a stage that waits the place of this rank among those of its demand."""
        known = self._places.get(row)
        if known is None or known[0] != rank:
            place = self._places[row] = rank, row
            heapq.heappush(self._queues.setdefault(self._replay.demand_of[row], []), place)

    def _first(self, demand: int) -> _Place | None:
        """Return the place of the first stage of a demand."""
        queue = self._queues[demand]
        while queue and self._places.get(queue[0][1]) is not queue[0]:
            heapq.heappop(queue)
        if queue:
            return queue[0]
        del self._queues[demand]
        return None

    def _second(self, demand: int) -> float:
        """Return the rank of the second stage of a demand, infinity if there is none."""
        queue = self._queues[demand]
        if len(queue) == 1:
            return np.inf
        place = heapq.heappop(queue)
        while queue and self._places.get(queue[0][1]) is not queue[0]:
            heapq.heappop(queue)
        rank = queue[0][0] if queue else np.inf
        heapq.heappush(queue, place)
        return rank

    def _late(self, latest: float) -> bool:
        """Return whether behind a stage that waits more must follow than there is time."""
        behind = self._behind
        while behind and behind[0][1] not in self._waiting:
            heapq.heappop(behind)
        return bool(behind) and -behind[0][0] > latest

    def _start(self, now: float) -> bool:
        """Start what fits, in the order of the ranks; return whether the end can still be in time."""
        waiting, behind, latest = self._waiting, self._replay.behind, self._most - now
        if not self._freed and not self._opened:
            return True
        freed, everywhere = sorted(self._freed), range(len(self._room))
        if len(waiting) > _MANY and self._late(latest):
            return False
        firsts = [place for demand in self._candidates(freed) if (place := self._first(demand))]
        heapq.heapify(firsts)
        while firsts:
            _, row = heapq.heappop(firsts)
            line, demand = waiting[row], self._replay.demand_of[row]
            if behind[row] > latest:
                return False
            count = line.count(min(self._second(demand), firsts[0][0] if firsts else np.inf))
            placed, left = self._place(row, count, everywhere if row in self._opened else freed)
            if placed:
                self._launch(row, placed, line.take(count - left), now)
            if line.at == len(line.tasks):
                del waiting[row], self._places[row]
            else:
                self._queue(row, line.rank)
            # Where some are left no more of the demand fits: room only shrinks here.
            if not left and (place := self._first(demand)):
                heapq.heappush(firsts, place)
        self._freed.clear()
        self._opened.clear()
        return True

    def _candidates(self, freed: list[int]) -> Iterable[int]:
        """Return the demands that wait, of many without those of which certainly no task fits."""
        demands = list(self._queues)
        if len(demands) <= _MANY or not freed:
            return demands
        room = np.array([self._room[machine] for machine in freed])
        self._looks += 10 + len(demands) * len(freed) // 20
        fit: Mask = np.any(np.all(self._replay.least[demands][:, np.newaxis] <= room, axis=2), axis=1)
        opened = {self._replay.demand_of[row] for row in self._opened}
        return {demand for demand, fits in zip(demands, fit.tolist(), strict=True) if fits} | opened

    def _place(self, row: int, count: int, machines: Iterable[int]) -> tuple[list[tuple[int, int]], int]:
        """Take room for so many tasks, the first machines before others; return how many where, and how many not."""
        needs, room, placed = self._replay.needs[row], self._room, []
        for machine in machines:
            free, times = room[machine], count
            self._looks += 1
            for column, amount in needs:
                if free[column] < amount * times:
                    times = int(free[column] / amount + _ROUNDING)
                    if not times:
                        break
            if times:
                for column, amount in needs:
                    free[column] -= amount * times
                placed.append((machine, times))
                count -= times
                if not count:
                    break
        return placed, count

    def _launch(self, row: int, placed: list[tuple[int, int]], tasks: list[int], now: float) -> None:
        self._launches.append((row, tasks, now))
        lasts = self._replay.lasts[row]
        if lasts is not None:
            self._sequence += 1
            heapq.heappush(self._ends, (now + lasts, self._sequence, row, placed, tasks))
            return
        seconds = self._replay.dag.stages[row].seconds
        machines = [machine for machine, times in placed for _ in range(times)]
        for machine, task in zip(machines, tasks, strict=True):
            self._sequence += 1
            heapq.heappush(self._ends, (now + float(seconds[task]), self._sequence, row, [(machine, 1)], [task]))

    def _end(self, row: int, placed: list[tuple[int, int]], tasks: list[int]) -> None:
        """Give room back, and let children wait whose last parent this was."""
        needs, room = self._replay.needs[row], self._room
        for machine, times in placed:
            free = room[machine]
            for column, amount in needs:
                free[column] += amount * times
            self._freed.add(machine)
        self._looks += len(placed)
        self._left[row] -= len(tasks)
        for edge in self._replay.dag.children[row]:
            each = self._each[edge.row]
            if edge.one_to_one and each is not None:
                for task in tasks:
                    each[task] -= 1
                if not self._missing[edge.row]:
                    self._open(edge.row, [task for task in tasks if not each[task]])
            elif not edge.one_to_one and not self._left[row]:
                self._missing[edge.row] -= 1
                if not self._missing[edge.row]:
                    self._open_all(edge.row)


class _Aligned(_Run):
    """A run by no order: the task starts next that is best aligned with what is free of a machine (Tetris, 3.2)."""

    def __init__(self, replay: Replay, most: float) -> None:
        super().__init__(
            replay, [], [_Line(0.0, None, list(range(count))) for count in replay.dag.count.tolist()], most
        )
        capacity = replay.machines.capacity
        self._scale = np.where(capacity > 0, 1 / np.where(capacity > 0, capacity, 1.0), 0.0)

    def _start(self, now: float) -> bool:
        rows = list(self._waiting)
        machines = list(range(len(self._room))) if self._opened else sorted(self._freed)
        self._freed.clear()
        self._opened.clear()
        if not rows or not machines:
            return True
        demand = self._replay.dag.demand[rows]
        scores = self._aligned(demand, machines)
        while scores.flat[best := int(scores.argmax())] > -np.inf:
            place, column = divmod(best, len(machines))
            row, machine = rows[place], machines[column]
            line = self._waiting[row]
            if self._replay.behind[row] > self._most - now:
                return False
            placed, _ = self._place(row, 1, (machine,))
            self._launch(row, placed, line.take(1), now)
            scores[:, column] = self._aligned(demand, (machine,))[:, 0]
            if line.at == len(line.tasks):
                del self._waiting[row]
                scores[place] = -np.inf
                demand[place] = np.inf
        return True

    def _aligned(self, demand: Floats, machines: Sequence[int]) -> Floats:
        """Return how each demand [W, R] is aligned with the room of each machine [W, M], -inf where it does not fit."""
        self._looks += _LOOKS_PER_EFFORT // 10
        room = np.array([self._room[machine] for machine in machines])
        fit = (room[np.newaxis] >= demand[:, np.newaxis]).all(axis=2)
        amounts = np.where(np.isfinite(demand), demand, 0.0) * self._scale
        return np.where(fit, amounts @ (room * self._scale).T, -np.inf)


def replay(dag: Dag, machines: Machines, ranks: Ranks | None) -> Replayed:
    """Return what becomes of the DAG by these ranks; without, or where all are equal, by alignment."""
    if ranks is None or say_nothing(ranks):
        return Replay(dag, machines).by_alignment()
    return Replay(dag, machines).run(ranks)


def say_nothing(ranks: Ranks) -> bool:
    """Return whether all ranks are equal."""
    first = ranks[0].item(0)
    return all(bool((of_stage == first).all()) for of_stage in ranks)
