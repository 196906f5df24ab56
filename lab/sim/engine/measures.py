"""What is measured while a run goes on: the load of machines, waste, the shares of queues and jobs.

Symbols: P points in time, N machines, R dimensions, C classes, J jobs, Q queues. A load is demand over capacity. Demand
is what running tasks would use at their peaks, for the terms that they have not done yet, so a load can be above 1. The
promised load counts all terms of a task until it ends, as a scheduler does that knows peaks only. The carried load is
the demand, but no more than what contention leaves of each disk and link.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.policy.shares import dominant_shares
from lab.sim.engine.contention import SHARED, carried, wide

HIGH_LOADS = (0.75, 0.9, 0.95, 1.0)
"""Tetris, tables 3 and 6: the probability that a machine's load is above each of these."""

_WASTE_EVERY = 8
_MOST_INTERVALS = 64


class RunState(Protocol):
    """The state of a run between two steps.

    `demand`, `allocated` [N, R]; `job_allocated` [J, R] is allocated to each job. `active_jobs` are the rows of the
    jobs that have arrived and not ended. `waiting` [C] tasks of each class wait, and each would take `task_demand`
    [C, R] of its machine.
    """

    @property
    def running(self) -> int: ...  # noqa: D102
    @property
    def demand(self) -> Floats: ...  # noqa: D102
    @property
    def allocated(self) -> Floats: ...  # noqa: D102
    @property
    def job_allocated(self) -> Floats: ...  # noqa: D102
    @property
    def active_jobs(self) -> Rows: ...  # noqa: D102
    @property
    def waiting(self) -> Counts: ...  # noqa: D102
    @property
    def task_demand(self) -> Floats: ...  # noqa: D102

    def used(self) -> Floats:
        """Return what tasks really use of the cluster [R]."""


@dataclass(frozen=True, slots=True)
class Waste:
    """Room that is free but that no waiting task can use, because it lies in pieces on many machines.

    Both values compare the machines with one machine that has all their free room. `fragmentation` in [0, 1] is the
    part of the tasks that fit into the one machine but into no single machine; 0 if none fit into either. A scheduler
    that starts all tasks that fit leaves none that does, so its fragmentation is nearly 1 as soon as anything would fit
    into the one machine. `stranded` in [0, 1] is the size of that room as a part of the cluster: the largest over the
    classes.
    """

    fragmentation: float = 0.0
    stranded: float = 0.0


def waste(free: Floats, task_demand: Floats, count: Counts, total: Floats) -> Waste:
    """Return the waste, given `free` room [N, R] and `count` [C] waiting tasks of `task_demand` [C, R] each.

    Each class counts as if it were the only one; a task counts by its dominant share of `total` [R]. Negative free room
    (over-allocated) counts as none.
    """
    classes = np.flatnonzero((count > 0) & (task_demand > 0).any(axis=1))
    if not len(classes):
        return Waste()
    # 1. How many tasks of each class fit into each machine [C, N], and into all free room together [C].
    demand, room = task_demand[classes], np.maximum(free, 0.0)
    pieces = np.full((len(classes), len(free)), np.inf)
    whole = np.full(len(classes), np.inf)
    for column in np.flatnonzero((demand > 0).any(axis=0)):
        rows = np.flatnonzero(demand[:, column] > 0)
        per_task = demand[rows, column]
        pieces[rows] = np.minimum(pieces[rows], room[:, column] / per_task[:, None])
        whole[rows] = np.minimum(whole[rows], room[:, column].sum() / per_task)
    # 2. Whole tasks, and no more than wait.
    in_pieces = np.minimum(np.floor(pieces).sum(axis=1), count[classes])
    in_one = np.minimum(np.floor(whole), count[classes])
    # 3. What the pieces lose, by the dominant share of a task.
    share = dominant_shares(demand, total)
    best = float(in_one @ share)
    if best <= 0:
        return Waste()
    return Waste(1.0 - float(in_pieces @ share) / best, float(((in_one - in_pieces) * share).max()))


def while_starting(at: Floats, first_start: float, last_start: float) -> Mask:
    """Return which points in time [P] lie between the first start and the last; if none does, the next one."""
    after = at >= first_start
    inside = after & (at <= last_start)
    if not inside.any():
        inside[np.flatnonzero(after)[:1]] = True
    return inside


@dataclass(frozen=True, slots=True)
class Series:
    """The state of a run at points in time `at` [P], evenly apart.

    `running`, `waiting` [P] tasks. `used`, `allocated`, `demanded` [P, R] are parts of the cluster: what tasks really
    use (never above 1), were promised, and would use at their peaks. `queues` [P, Q] is the dominant share that is
    allocated to each queue.
    """

    at: Floats
    running: Counts
    waiting: Counts
    used: Floats
    allocated: Floats
    demanded: Floats
    queues: Floats


@dataclass(frozen=True, slots=True)
class Fullness:
    """The load of machines from the first start to the last, as means over machines and time.

    `high` [4, R]: the part of the time in which a machine's load is above each of HIGH_LOADS; loads below 1 are of all
    that it has (Machines.whole), 1 is all that it offers.
    `over_allocated` [R]: the part in which it is above 1. `excess` [R]: by how much it is above 1 then (0.5: one and a
    half times the capacity). `fragmentation` and `stranded`: the means of Waste. `promised` and `carried` [4, R]: as
    `high`, of the promised and the carried load.
    """

    high: Floats
    over_allocated: Floats
    excess: Floats
    fragmentation: float
    stranded: float
    promised: Floats
    carried: Floats


@dataclass(frozen=True, slots=True)
class _Point:
    running: int
    waiting: int
    used: Floats
    allocated: Floats
    demanded: Floats
    high: Floats
    promised: Floats
    carried: Floats
    excess: Floats
    queues: Floats
    waste: Waste


@dataclass(slots=True)
class SeriesRecorder:
    """Measures a run between its steps, at points `every` seconds apart; it keeps `points` of them at most.

    When there would be more, it drops every other point and measures half as often from then on. Unfairness is summed
    over all time instead. `queue` [J] is the row of each job's queue. `whole` [N, R] is what machines have (None: what
    they offer, their `capacity`), `shared` [R] what shares are of (None: all that they offer), `loss` as in
    contention.efficiency.
    """

    capacity: Floats
    queue: Rows
    queues: int
    every: float
    points: int
    begin: float = 0.0
    whole: Floats | None = None
    shared: Floats | None = None
    loss: float = 0.0
    _next: int = 0
    _points: list[_Point] = field(default_factory=list)
    _intervals: list[tuple[float, Rows, Floats]] = field(default_factory=list)
    _unfair: Floats = field(init=False)
    _lived: Floats = field(init=False)
    _total: Floats = field(init=False)
    _shared: Floats = field(init=False)
    _ones: Floats = field(init=False)
    _levels: Floats = field(init=False)
    _per_capacity: Floats = field(init=False)

    def __post_init__(self) -> None:
        self._unfair, self._lived = np.zeros(len(self.queue)), np.zeros(len(self.queue))
        self._total, self._ones = self.capacity.sum(axis=0), np.ones(len(self.capacity))
        self._shared = self._total if self.shared is None else self.shared
        self._levels = self._high_levels()
        self._per_capacity = np.divide(1.0, self.capacity, out=np.zeros(self.capacity.shape), where=self.capacity > 0)

    def between(self, begin: float, end: float, moment: RunState) -> None:
        """Measure a time in which nothing changed."""
        # 1. Unfairness is summed over all time.
        self._add_unfairness(end - begin, moment)
        # 2. Too many points: drop every other one.
        while (end - self.begin) / self.every > self.points:
            self._points = self._points[::2]
            self._next = (self._next + 1) // 2
            self.every *= 2
        # 3. All points of this time have the same measurements. Waste is measured at every eighth point only.
        until = math.ceil((end - self.begin) / self.every)
        if until > self._next:
            with_waste = until > -(-self._next // _WASTE_EVERY) * _WASTE_EVERY
            self._points += [self._measure(moment, with_waste=with_waste)] * (until - self._next)
            self._next = until

    def series(self) -> Series:
        """Return all points."""
        points = self._points
        return Series(
            at=self.begin + self.every * np.arange(len(points), dtype=np.float64),
            running=np.array([point.running for point in points], dtype=np.int64),
            waiting=np.array([point.waiting for point in points], dtype=np.int64),
            used=_stacked([point.used for point in points], len(self._total)),
            allocated=_stacked([point.allocated for point in points], len(self._total)),
            demanded=_stacked([point.demanded for point in points], len(self._total)),
            queues=_stacked([point.queues for point in points], self.queues),
        )

    def fullness(self, first_start: float, last_start: float) -> Fullness:
        """Return the load of machines while tasks start (`while_starting`); all zeros if there is no point."""
        at = self.begin + self.every * np.arange(len(self._points), dtype=np.float64)
        inside = while_starting(at, first_start, last_start)
        chosen = [point for point, is_inside in zip(self._points, inside.tolist(), strict=True) if is_inside]
        width = len(self._total)
        if not chosen:
            none = np.zeros((len(HIGH_LOADS), width))
            return Fullness(none, np.zeros(width), np.zeros(width), 0.0, 0.0, none, none)
        high = np.mean([point.high for point in chosen], axis=0)
        over, excess = high[-1], np.mean([point.excess for point in chosen], axis=0)
        wastes = [self._points[index].waste for index in range(0, len(at), _WASTE_EVERY) if inside[index]]
        return Fullness(
            high=high,
            over_allocated=over,
            excess=np.divide(excess, over, out=np.zeros(width), where=over > 0),
            fragmentation=_mean([waste.fragmentation for waste in wastes]),
            stranded=_mean([waste.stranded for waste in wastes]),
            promised=np.mean([point.promised for point in chosen], axis=0),
            carried=np.mean([point.carried for point in chosen], axis=0),
        )

    def unfairness(self) -> Floats:
        """Return each job's relative integral unfairness per second of its life [J] (Tetris, 5.3.2).

        The mean of (a - f) / f over the time from its arrival to its end. a is the dominant share allocated to it, f is
        1 / (number of active jobs). Below 0: the job had less than an equal share.
        """
        self._add_up_shares()
        return np.divide(self._unfair, self._lived, out=np.zeros(len(self._lived)), where=self._lived > 0)

    def _add_unfairness(self, seconds: float, moment: RunState) -> None:
        active = moment.active_jobs
        if seconds > 0 and len(active):
            self._intervals.append((seconds, active, moment.job_allocated[active]))
            if len(self._intervals) == _MOST_INTERVALS:
                self._add_up_shares()

    def _add_up_shares(self) -> None:
        """Sum the intervals since the last call; many at once cost little more than one."""
        if not self._intervals:
            return
        counts = [len(rows) for _, rows, _ in self._intervals]
        seconds = np.repeat([seconds for seconds, *_ in self._intervals], counts)
        active = np.repeat(counts, counts)
        rows = np.concatenate([rows for _, rows, _ in self._intervals])
        share = dominant_shares(np.concatenate([allocated for *_, allocated in self._intervals]), self._shared)
        np.add.at(self._unfair, rows, (share * active - 1.0) * seconds)
        np.add.at(self._lived, rows, seconds)
        self._intervals.clear()

    def _measure(self, moment: RunState, *, with_waste: bool) -> _Point:
        demand, active = moment.demand, moment.active_jobs
        queue_allocated = np.zeros((self.queues, len(self._total)))
        np.add.at(queue_allocated, self.queue[active], moment.job_allocated[active])
        return _Point(
            running=moment.running,
            waiting=int(moment.waiting.sum()),
            used=self._part(moment.used()),
            allocated=self._part(self._ones @ moment.allocated),
            demanded=self._part(self._ones @ demand),
            high=self._above(demand),
            promised=self._above(moment.allocated),
            carried=self._above(carried(demand, self.capacity, loss=self.loss)),
            excess=self._ones @ (np.maximum(demand - self.capacity, 0.0) * self._per_capacity) / len(demand),
            queues=dominant_shares(queue_allocated, self._shared),
            waste=self._waste(moment) if with_waste else Waste(),
        )

    def _high_levels(self) -> Floats:
        """Return how much tasks demand of each machine at each of HIGH_LOADS [4, N, R]."""
        loads = np.array(HIGH_LOADS)[:, None, None]
        if self.whole is None:
            return loads * self.capacity
        system = np.where(wide(SHARED, self.capacity.shape[1]), 0.0, self.whole - self.capacity)
        levels: Floats = loads * self.whole - system
        levels[-1] = self.capacity
        return levels

    def _above(self, amounts: Floats) -> Floats:
        """Return the part of the machines on which amounts [N, R] are above each level [4, R]."""
        return np.asarray(self._ones @ (amounts > self._levels).astype(np.float64) / len(amounts))

    def _part(self, amounts: Floats) -> Floats:
        """Return amounts [R] as parts of the cluster; 0 of what it has none of."""
        return np.divide(amounts, self._total, out=np.zeros(len(amounts)), where=self._total > 0)

    def _waste(self, moment: RunState) -> Waste:
        return waste(self.capacity - moment.allocated, moment.task_demand, moment.waiting, self._shared)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _stacked(rows: Sequence[Floats], width: int) -> Floats:
    return np.array(rows).reshape(len(rows), width)
