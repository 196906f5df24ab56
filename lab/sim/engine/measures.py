"""What is measured while a run goes on: how full machines are, how much is waste, who gets what.

Symbols: P points in time, N machines, R dimensions, C classes, J jobs, Q queues. A load is demand over capacity; demand
is what running tasks want at their peaks, of what they still use, so that a load can be above 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.policy.shares import dominant_shares

HIGH_LOADS = (0.75, 0.9, 1.0)
"""Tetris, table 6: how probable is a machine's load above each of these."""

_WASTE_EVERY = 8
_HELD_AT_MOST = 64


class Moment(Protocol):
    """The state of a run, as it is between two steps.

    `demand`, `allocated` [N, R]; `held` [J, R] what jobs hold; `active` [J] the rows of those that have arrived and not
    ended; `waiting` [C] tasks of each class, of which each would take `wanted` [C, R] of its machine.
    """

    @property
    def running(self) -> int: ...  # noqa: D102
    @property
    def demand(self) -> Floats: ...  # noqa: D102
    @property
    def allocated(self) -> Floats: ...  # noqa: D102
    @property
    def held(self) -> Floats: ...  # noqa: D102
    @property
    def active(self) -> Rows: ...  # noqa: D102
    @property
    def waiting(self) -> Counts: ...  # noqa: D102
    @property
    def wanted(self) -> Floats: ...  # noqa: D102

    def used(self) -> Floats:
        """Return what tasks really use of the cluster [R]."""


@dataclass(frozen=True, slots=True)
class Waste:
    """What is free but of no use to what waits, because it lies in pieces.

    `fragmentation` in [0, 1]: of what would fit into one machine made of all that is free, the part that fits into no
    single machine; 0 where nothing would fit either way. A scheduler that starts all that fits leaves nothing that
    does, so its is nearly 1 as soon as anything would fit at all. `stranded` in [0, 1] says how much that is, as a part
    of the cluster: of the classes, each on its own, the most that fits into the one machine and into no single one.
    """

    fragmentation: float = 0.0
    stranded: float = 0.0


def waste(free: Floats, wanted: Floats, count: Counts, total: Floats) -> Waste:
    """Return what the pieces cost, given what is free [N, R] and waits: `count` [C] tasks, of `wanted` [C, R] each.

    Each class on its own, as if it were the only one; a task counts by its dominant share of `total` [R]. Negative free
    (over-allocated) counts as none.
    """
    classes = np.flatnonzero((count > 0) & (wanted > 0).any(axis=1))
    if not len(classes):
        return Waste()
    wanted, left = wanted[classes], np.maximum(free, 0.0)
    pieces = np.full((len(classes), len(free)), np.inf)
    whole = np.full(len(classes), np.inf)
    for column in np.flatnonzero((wanted > 0).any(axis=0)):
        asks = np.flatnonzero(wanted[:, column] > 0)
        per_task = wanted[asks, column]
        pieces[asks] = np.minimum(pieces[asks], left[:, column] / per_task[:, None])
        whole[asks] = np.minimum(whole[asks], left[:, column].sum() / per_task)
    single = np.minimum(np.floor(pieces).sum(axis=1), count[classes])
    at_once = np.minimum(np.floor(whole), count[classes])
    share = dominant_shares(wanted, total)
    best = float(at_once @ share)
    if best <= 0:
        return Waste()
    return Waste(1.0 - float(single @ share) / best, float(((at_once - single) * share).max()))


@dataclass(frozen=True, slots=True)
class Series:
    """How a run went, at points in time `at` [P], evenly apart.

    `running`, `waiting` [P] tasks; `used`, `allocated`, `demanded` [P, R] as parts of the cluster: what tasks really
    use (never above 1), were promised, and want; `queues` [P, Q] the dominant share of each queue's promises. Those of
    each job are `job_share` [K], at point `job_point` [K] for the job `job_row` [K], for active jobs only.
    """

    at: Floats
    running: Counts
    waiting: Counts
    used: Floats
    allocated: Floats
    demanded: Floats
    queues: Floats
    job_point: Rows
    job_row: Rows
    job_share: Floats


@dataclass(frozen=True, slots=True)
class Fullness:
    """How full machines were from the first start to the last, over machines and time.

    `high` [3, R]: the part of the time that a machine's load is above each of HIGH_LOADS (Tetris, table 6).
    `over_allocated` [R]: the part that it is above 1, and `excess` [R] how far it is then, in the mean (0.5: one and a
    half times its capacity). `fragmentation` and `stranded`: the means of Waste.
    """

    high: Floats
    over_allocated: Floats
    excess: Floats
    fragmentation: float
    stranded: float


@dataclass(frozen=True, slots=True)
class _Point:
    running: int
    waiting: int
    used: Floats
    allocated: Floats
    demanded: Floats
    high: Floats
    excess: Floats
    queues: Floats
    job_row: Rows
    job_share: Floats
    waste: Waste


@dataclass(slots=True)
class SeriesRecorder:
    """Looks at a run between its steps: at evenly spaced points, of which it keeps `points` at most.

    When there would be more it forgets every other one and looks half as often from then on. Unfairness is added up
    over every moment instead.
    """

    capacity: Floats
    queue: Rows
    queues: int
    every: float
    points: int
    begin: float = 0.0
    _next: int = 0
    _seen: list[_Point] = field(default_factory=list)
    _held: list[tuple[float, Rows, Floats]] = field(default_factory=list)
    _unfair: Floats = field(init=False)
    _lived: Floats = field(init=False)
    _total: Floats = field(init=False)
    _each: Floats = field(init=False)
    _levels: Floats = field(init=False)
    _per_capacity: Floats = field(init=False)

    def __post_init__(self) -> None:
        self._unfair, self._lived = np.zeros(len(self.queue)), np.zeros(len(self.queue))
        self._total, self._each = self.capacity.sum(axis=0), np.ones(len(self.capacity))
        self._levels = np.array(HIGH_LOADS)[:, None, None] * self.capacity
        self._per_capacity = np.divide(1.0, self.capacity, out=np.zeros(self.capacity.shape), where=self.capacity > 0)

    def between(self, begin: float, end: float, moment: Moment) -> None:
        """Take note of a time in which nothing changed."""
        self._add_unfairness(end - begin, moment)
        while (end - self.begin) / self.every > self.points:
            self._seen = self._seen[::2]
            self._next = (self._next + 1) // 2
            self.every *= 2
        until = math.ceil((end - self.begin) / self.every)
        if until > self._next:
            measured = until > -(-self._next // _WASTE_EVERY) * _WASTE_EVERY
            self._seen += [self._look(moment, pieces=measured)] * (until - self._next)
            self._next = until

    def series(self) -> Series:
        """Return how the run went."""
        seen = self._seen
        return Series(
            at=self.begin + self.every * np.arange(len(seen), dtype=np.float64),
            running=np.array([point.running for point in seen], dtype=np.int64),
            waiting=np.array([point.waiting for point in seen], dtype=np.int64),
            used=_stacked([point.used for point in seen], len(self._total)),
            allocated=_stacked([point.allocated for point in seen], len(self._total)),
            demanded=_stacked([point.demanded for point in seen], len(self._total)),
            queues=_stacked([point.queues for point in seen], self.queues),
            job_point=np.repeat(np.arange(len(seen)), [len(point.job_row) for point in seen]),
            job_row=np.concatenate([point.job_row for point in seen] or [np.empty(0, dtype=np.intp)]),
            job_share=np.concatenate([point.job_share for point in seen] or [np.empty(0)]),
        )

    def fullness(self, first_start: float, last_start: float) -> Fullness:
        """Return how full machines were between these times; all zeros where no point is in between."""
        at = self.begin + self.every * np.arange(len(self._seen))
        inside = (at >= first_start) & (at <= last_start)
        chosen = [point for point, counts in zip(self._seen, inside.tolist(), strict=True) if counts]
        width = len(self._total)
        if not chosen:
            return Fullness(np.zeros((len(HIGH_LOADS), width)), np.zeros(width), np.zeros(width), 0.0, 0.0)
        high = np.mean([point.high for point in chosen], axis=0)
        over, excess = high[-1], np.mean([point.excess for point in chosen], axis=0)
        wastes = [self._seen[index].waste for index in range(0, len(at), _WASTE_EVERY) if inside[index]]
        return Fullness(
            high=high,
            over_allocated=over,
            excess=np.divide(excess, over, out=np.zeros(width), where=over > 0),
            fragmentation=_mean([waste.fragmentation for waste in wastes]),
            stranded=_mean([waste.stranded for waste in wastes]),
        )

    def unfairness(self) -> Floats:
        """Return each job's relative integral unfairness per second of its life [J] (Tetris, 5.3.2).

        The mean of (a - f) / f over the time from its arrival to its end: a is its dominant share of the cluster, by
        promises in all dimensions, f one part of as many as there are active jobs. Below 0: had less than that.
        """
        self._add_up_shares()
        return np.divide(self._unfair, self._lived, out=np.zeros(len(self._lived)), where=self._lived > 0)

    def _add_unfairness(self, seconds: float, moment: Moment) -> None:
        active = moment.active
        if seconds > 0 and len(active):
            self._held.append((seconds, active, moment.held[active]))
            if len(self._held) == _HELD_AT_MOST:
                self._add_up_shares()

    def _add_up_shares(self) -> None:
        """Add up what was noted since the last time; many moments at once cost little more than one."""
        if not self._held:
            return
        counts = [len(active) for _, active, _ in self._held]
        seconds, active = (np.repeat(values, counts) for values in ([seconds for seconds, *_ in self._held], counts))
        rows = np.concatenate([rows for _, rows, _ in self._held])
        share = dominant_shares(np.concatenate([held for *_, held in self._held]), self._total)
        np.add.at(self._unfair, rows, (share * active - 1.0) * seconds)
        np.add.at(self._lived, rows, seconds)
        self._held.clear()

    def _look(self, moment: Moment, *, pieces: bool) -> _Point:
        demand, active = moment.demand, moment.active
        held = moment.held[active]
        of_queue = np.zeros((self.queues, len(self._total)))
        np.add.at(of_queue, self.queue[active], held)
        return _Point(
            running=moment.running,
            waiting=int(moment.waiting.sum()),
            used=self._part(moment.used()),
            allocated=self._part(self._each @ moment.allocated),
            demanded=self._part(self._each @ demand),
            high=self._each @ (demand > self._levels).astype(np.float64) / len(demand),
            excess=self._each @ (np.maximum(demand - self.capacity, 0.0) * self._per_capacity) / len(demand),
            queues=dominant_shares(of_queue, self._total),
            job_row=active,
            job_share=dominant_shares(held, self._total),
            waste=self._waste(moment) if pieces else Waste(),
        )

    def _part(self, amounts: Floats) -> Floats:
        """Return amounts [R] as parts of the cluster; 0 of what it has none of."""
        return np.divide(amounts, self._total, out=np.zeros(len(amounts)), where=self._total > 0)

    def _waste(self, moment: Moment) -> Waste:
        return waste(self.capacity - moment.allocated, moment.wanted, moment.waiting, self._total)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _stacked(rows: Sequence[Floats], width: int) -> Floats:
    return np.array(rows).reshape(len(rows), width)
