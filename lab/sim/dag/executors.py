"""Queries that arrive over time on executors, each of which runs a task at a time and takes time to change jobs.

A rule says what an executor that is free does next. With `stays` it stays with its stage while that has tasks left, as
in Spark, and the rule is only asked afterwards.
"""

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.graph.orders import path_to_end
from lab.sim.dag.tpch import Arrival
from lab.sim.workloads.waves import FIRST, FRESH, REST

MOVE_SECONDS = 2.0
"""What an executor takes to come from one job to another, before its first task there."""
NOWHERE = -1
_ROUNDING = 1e-9

Choice = tuple[int, int]
"""An executor, and the stage of which it takes a task next."""
Rule = Callable[["Executors", Sequence[int]], Choice | None]
"""Says which of the executors that are free takes what next; None: all of them wait for the next event.

It is asked only where some stage has tasks to take.
"""


class Executors:
    """One run: J jobs of in all S stages on E executors.

    Fixed: `job` [S], `tasks` [S], `seconds` [S, 3, E], and `path` [S] from a stage to its job's end. As time goes by:
    `left` [S] tasks that have not begun, `unended` [S], `open` [S] stages with tasks to take; and by executor [E] `at`,
    the job that it is with, and `stage`, both NOWHERE at first. `held` and `busy` [J]: the executors that are with a
    job, and that run its tasks. `moves`: how often one changed jobs. `ends` [E]: when each executor's task ends,
    infinite where it runs none; `now`: the time.
    """

    def __init__(self, arrivals: Sequence[Arrival], executors: int) -> None:
        self.arrives = np.array([arrival.seconds for arrival in arrivals])
        queries = [arrival.query for arrival in arrivals]
        sizes = [len(query.tasks) for query in queries]
        first = np.cumsum([0, *sizes]).tolist()
        self.job: Rows = np.repeat(np.arange(len(queries)), sizes)
        self.tasks: Counts = np.concatenate([query.tasks for query in queries])
        self.seconds: Floats = np.concatenate([query.seconds for query in queries])
        dags = [query.dag(executors) for query in queries]
        self.path: Floats = np.concatenate([path_to_end(dag, dag.longest) for dag in dags])
        self._stages_of = [range(begin, begin + size) for begin, size in zip(first, sizes, strict=False)]
        self._children = [
            [begin + edge.row for edge in edges]
            for begin, dag in zip(first, dags, strict=False)
            for edges in dag.children
        ]
        self._missing = [len(parents) for query in queries for parents in query.parents]
        self.left, self.unended = self.tasks.copy(), self.tasks.copy()
        self.open: Mask = np.zeros(len(self.tasks), dtype=np.bool_)
        self._job_unended = np.bincount(self.job, weights=self.tasks).astype(np.int64)
        self.at, self.stage = np.full(executors, NOWHERE), np.full(executors, NOWHERE)
        self.held, self.busy = np.zeros(len(queries), dtype=np.int64), np.zeros(len(queries), dtype=np.int64)
        self.moves = 0
        self.now, self.ends = 0.0, np.full(executors, np.inf)
        self._ended = np.full(len(queries), np.nan)
        self._events: list[tuple[float, int, int, int]] = []

    def run(self, rule: Rule, *, stays: bool = True) -> Floats:
        """Return how long each job took from its arrival on [J], in seconds."""
        # (when, arrivals before ends, which in order, job or executor)
        self._events = [(at, 0, job, job) for job, at in enumerate(self.arrives.tolist())]
        heapq.heapify(self._events)
        free = set(range(len(self.at)))
        begun = 0
        while self._events:
            self.now = now = self._events[0][0]
            while self._events and self._events[0][0] <= now + _ROUNDING:
                _, is_end, _, number = heapq.heappop(self._events)
                if is_end:
                    self._end(number, now)
                    free.add(number)
                else:
                    self._arrive(number)
            while free and (choice := self._next(rule, sorted(free), stays=stays)):
                executor, row = choice
                free.discard(executor)
                begun += 1
                heapq.heappush(self._events, (now + self._begin(executor, row), 1, begun, executor))
        return np.asarray(self._ended - self.arrives)

    def own_stage(self, executor: int) -> int:
        """Return the stage of which it took a task last if that has tasks left, else NOWHERE."""
        row = int(self.stage[executor])
        return row if row != NOWHERE and self.left[row] else NOWHERE

    def first_stage(self, job: int) -> int:
        """Return the row of its first stage."""
        return self._stages_of[job].start

    def opens_soon(self, seconds: float) -> set[int]:
        """Return the jobs of which a stage opens within so many seconds: the last tasks that it waits for run."""
        jobs, runs = set(), np.isfinite(self.ends)
        for row in np.unique(self.stage[runs]).tolist():
            if not self.left[row] and any(self._missing[child] == 1 for child in self._children[row]):
                last = self.ends[runs & (self.stage == row)].max()
                if last <= self.now + seconds:
                    jobs.add(int(self.job[row]))
        return jobs

    def _next(self, rule: Rule, free: Sequence[int], *, stays: bool) -> Choice | None:
        if stays:
            for executor in free:
                if (row := self.own_stage(executor)) != NOWHERE:
                    return executor, row
        return rule(self, free) if self.open.any() else None

    def _arrive(self, job: int) -> None:
        for row in self._stages_of[job]:
            self.open[row] = not self._missing[row]

    def _begin(self, executor: int, row: int) -> float:
        """Have the executor take a task of the stage, and return the seconds until that ends."""
        job, before = int(self.job[row]), int(self.at[executor])
        wave = REST if self.stage[executor] == row else FIRST
        moving = 0.0
        if before != job:
            if before != NOWHERE:
                self.held[before] -= 1
            self.held[job] += 1
            self.moves += 1
            wave, moving = FRESH, MOVE_SECONDS
        self.at[executor], self.stage[executor] = job, row
        self.busy[job] += 1
        self.left[row] -= 1
        self.open[row] = self.left[row] > 0
        seconds = moving + float(self.seconds[row, wave, self.held[job] - 1])
        self.ends[executor] = self.now + seconds
        return seconds

    def _end(self, executor: int, now: float) -> None:
        row = int(self.stage[executor])
        job = int(self.job[row])
        self.ends[executor] = np.inf
        self.busy[job] -= 1
        self.unended[row] -= 1
        self._job_unended[job] -= 1
        if not self.unended[row]:
            for child in self._children[row]:
                self._missing[child] -= 1
                self.open[child] = not self._missing[child]
        if not self._job_unended[job]:
            self._ended[job] = now
