"""Free resources and waiting classes while a plan is made: what fits where, what it scores, what taking it changes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.cluster.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner.plan import Assignments, Carried, Terms
from extender.planner.sources import DISK_READ, NETWORK_IN, Sources
from extender.planner.tuning import DEFICIT, Policy
from extender.planner.turns import Turns
from extender.policy.alignment import TASK_RULES
from extender.policy.barrier import last_before_barrier
from extender.policy.critical import critical, small
from extender.policy.locality import remote_factor

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

_NOBODY = (-1, -np.inf)
_UNLIMITED = -(2**31)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Which classes [K] are of jobs that decide when everything is done, which of small jobs, and their jobs' path."""

    critical: Mask
    small: Mask
    path: Floats


class _Visit:
    """The classes that fit on one node, looked at closely [k].

    What they take of it is in `needs` [k, R], minus infinity for nothing, and in `takes` [k, R] as parts of its
    capacity. `fits` [k] follows what is taken there.
    """

    __slots__ = ("factor", "fits", "fresh", "last", "near", "needs", "node", "picked", "pull", "rows", "takes")

    def __init__(self, node: int, rows: Rows, near: Mask, needs: Floats, takes: Floats) -> None:
        self.node, self.rows, self.near, self.needs, self.takes = node, rows, near, needs, takes
        self.fits = np.ones(len(rows), dtype=np.bool_)
        self.factor: Floats | None = None
        self.last: Mask | None = None
        self.pull: Floats | None = None
        self.picked, self.fresh = -1, True


class Board:
    """One plan on its way; a `matching.Table`. Its own arrays, nobody else's: [R, N] resources, [K, N] classes."""

    def __init__(self, policy: Policy, snapshot: Snapshot, waiting: Waiting, carried: Carried) -> None:
        self.policy, self.snapshot, self.waiting = policy, snapshot, waiting
        self.capacity = np.ascontiguousarray(snapshot.layout.capacity.T)
        self.free = self.capacity - snapshot.allocated.T - snapshot.in_flight.T
        nominated = snapshot.nominations.load(snapshot.allocated.shape, priority=_UNLIMITED, uid="")
        if nominated is not None:
            self.free -= nominated.T
        has = np.isfinite(self.capacity) & (self.capacity > 0)
        self.per_unit = np.divide(1.0, self.capacity, out=np.zeros_like(self.capacity), where=has)
        self.rows = waiting.count.nonzero()[0]
        self.left = waiting.count[self.rows]
        self._classes()
        self.sources = Sources(
            [waiting.inputs[row] for row in self.rows.tolist()],
            self.reading,
            self.left,
            self.capacity,
            self.free,
            headroom=policy.headroom,
        )
        self.turns = Turns(policy, waiting.jobs, snapshot.layout.capacity, waiting.job[self.rows], self.left)
        if policy.sharing == DEFICIT:
            self.turns.carry(np.array([carried.deficits.get(name, 0.0) for name in waiting.jobs.names]))
        self.closed = np.zeros(self.free.shape[1], dtype=np.bool_)
        self.spared = np.zeros(len(self.rows), dtype=np.bool_)
        self.patient = True
        self._fits = np.zeros(self.sources.local.shape, dtype=np.bool_)
        self._candidates = np.zeros(len(self.closed), dtype=np.int64)
        self._visit: _Visit | None = None
        self._latest = (0.0, 0.0)
        self._taken: list[tuple[int, int, int, int]] = []
        self._terms: list[tuple[float, float, float, float, float, bool, bool]] = []

    def _classes(self) -> None:
        """Keep the classes that wait [K]; `rows` are their rows in `waiting`. Needs are minus infinity for nothing."""
        waiting, rows = self.waiting, self.rows
        self.job = waiting.job[rows]
        self.reading = waiting.reading[rows]
        self.work = waiting.jobs.work[self.job]
        last: Mask = last_before_barrier(waiting.finished[rows], barrier=self.policy.barrier)
        self.last = last if bool(np.any(last)) else None
        self.ends = self._ends()
        demand = waiting.demand[rows]
        self.here, self.away = demand.copy(), demand.copy()
        self.here[:, DISK_READ] += self.reading
        self.away[:, NETWORK_IN] += self.reading
        self.here_needs = np.where(self.here > 0, self.here, -np.inf)
        self.away_needs = np.where(self.away > 0, self.away, -np.inf)
        self._asked = np.flatnonzero((demand > 0).any(axis=0)).tolist()
        self._demand_needs = np.where(demand > 0, demand, -np.inf).T
        self.alive = np.ones(len(rows), dtype=np.bool_)

    def _ends(self) -> _Ends | None:
        """Return who decides when everything is done; None where nobody does, or nobody knows."""
        jobs, left, policy = self.waiting.jobs, self.waiting.left_seconds, self.policy
        if jobs.path is None or not np.isfinite(left):
            return None
        decides = critical(jobs.path, left, tail=policy.tail)
        if not decides.any():
            return None
        return _Ends(decides[self.job], small(jobs.work, part=policy.small)[self.job], jobs.path[self.job])

    # What matching asks for

    def nodes(self) -> Iterator[int]:
        """Yield the open nodes where something fits, those with the most room first.

        While patient, nobody reads from elsewhere what could start beside its block; afterwards it is only about them.
        """
        self._visit = None
        if self.patient:
            near, far = self.fits(np.arange(len(self.rows)))
            blocks = self.sources.blocks & (self.reading > 0)
            self.spared = blocks & near.any(axis=1)
            self._fits = near | (far & ~self.spared[:, np.newaxis])
        else:
            rows = (self.spared & self.alive).nonzero()[0]
            self._fits[:] = False
            self._fits[rows] = np.logical_or(*self.fits(rows))
        self._candidates = self._fits.sum(axis=0)
        some = ((self._candidates > 0) & ~self.closed).nonzero()[0]
        room = self.room()[some]
        for node in some[np.argsort(-room, kind="stable")].tolist():
            if self._candidates[node]:
                yield node

    def best(self, node: int) -> tuple[int, float]:
        """Return the class [K] that scores highest on the node, and its score."""
        visit = self._visit
        if visit is None or visit.node != node:
            visit = self._visit = self._look(node)
        score = self._pick(visit)
        if visit.picked < 0 and not (visit.fresh or self.patient):  # who could read here may still read from elsewhere
            visit = self._visit = self._look(node)
            score = self._pick(visit)
        return (int(visit.rows[visit.picked]), score) if visit.picked >= 0 else _NOBODY

    def take(self, task_class: int, node: int) -> bool:
        """Place one task of the class [K] on the node."""
        visit = self._visit
        if visit is not None and visit.node == node and visit.picked >= 0 and visit.rows[visit.picked] == task_class:
            near = bool(visit.near[visit.picked])
            taken = self._place(task_class, node, near=near, starved=False)
            if taken and self.left[task_class] > 0:
                visit.fits &= (visit.needs <= self._limit(node)).all(axis=1)
                if near and self.sources.blocks[task_class] and self.sources.local[task_class, node] <= 0:
                    visit.fits[visit.picked] = False
            else:
                visit.fits[visit.picked] = False
                if taken:
                    visit.fits &= (visit.needs <= self._limit(node)).all(axis=1)
            visit.fresh = False
            return taken
        self._visit = None
        return self._place(task_class, node, near=self._near(task_class, node), starved=False)

    def start(self, task_class: int, node: int) -> bool:
        """Place one task of a class that has waited too long, without comparing it with others."""
        self._visit = None
        return self._place(task_class, node, near=self._near(task_class, node), starved=True)

    def room(self) -> Floats:
        """Return how much each node has free [N], its dimensions added up as parts of its capacity."""
        return np.asarray((np.where(self.per_unit > 0, self.free, 0.0) * self.per_unit).sum(axis=0))

    def fits(self, rows: Rows) -> tuple[Mask, Mask]:
        """Return where these classes fit reading there, and where reading from elsewhere [rows, N] each."""
        free, sources = self.free, self.sources
        fits = np.repeat(self.alive[rows, np.newaxis], free.shape[1], axis=1)
        for dimension in self._asked:
            fits &= free[dimension] >= self._demand_needs[dimension, rows, np.newaxis]
        near = fits & (free[DISK_READ] - sources.kept >= self.here_needs[rows, DISK_READ, np.newaxis])
        near &= sources.own[rows, np.newaxis] | (sources.local[rows] > 0)
        far = np.zeros_like(near)
        others = (~sources.own[rows]).nonzero()[0]
        if len(others):
            of = rows[others]
            far[others] = fits[others] & (free[NETWORK_IN] >= self.away_needs[of, NETWORK_IN, np.newaxis])
            far[others] &= sources.able(of)
        return near, far

    # One node

    def _look(self, node: int) -> _Visit:
        """Return the classes that fit on the node now."""
        rows: Rows = (self._fits[:, node] & self.alive).nonzero()[0]
        sources, limit = self.sources, self._limit(node)
        here = self.here_needs[rows]
        own = sources.own[rows]
        near = (here <= limit).all(axis=1) & (own | (sources.local[rows, node] > 0))
        if not (near | own).all():
            away = self.away_needs[rows]
            far = ~(near | own) & (away <= limit).all(axis=1)
            if self.patient:
                far &= ~self.spared[rows]
            rows, near, here, away = (found[near | far] for found in (rows, near, here, away))
            needs = np.where(near[:, np.newaxis], here, away)
        else:
            rows, needs, near = rows[near], here[near], near[near]
        visit = _Visit(node, rows, near, needs, np.maximum(needs, 0.0) * self.per_unit[:, node])
        if not near.all():
            remote = ~near & (self.reading[rows] > 0)
            visit.factor = remote_factor(remote, penalty=self.policy.remote_penalty)
        if self.last is not None and (last := self.last[rows]).any():
            visit.last = last
        return visit

    def _pick(self, visit: _Visit) -> float:
        """Settle which class goes next, and return its score: the highest of those whose turn it is."""
        visit.picked = -1
        mask = visit.fits
        if not mask.any():
            return -np.inf
        turn = mask & self.turns.classes[visit.rows]
        if turn.any():  # else whoever fits: no room stays empty for those whose tasks do not fit there
            mask = turn
        per_unit = self.per_unit[:, visit.node]
        has = np.maximum(np.where(per_unit > 0, self.free[:, visit.node], 0.0), 0.0) * per_unit
        aligned = TASK_RULES[self.policy.rule](visit.takes, has)
        if visit.factor is not None:
            aligned = np.where(aligned >= 0, aligned * visit.factor, aligned / visit.factor)
        scores = aligned
        if visit.last is not None and (last := mask & visit.last).any():
            mask = last
            if not self.policy.packing:
                scores = -self.work[visit.rows]
        elif self.ends is not None and (decides := mask & self.ends.critical[visit.rows]).any():
            if (first := mask & self.ends.small[visit.rows]).any():
                mask, scores = first, self._combined(visit, aligned)
            else:
                mask, scores = decides, self.ends.path[visit.rows]
        else:
            scores = self._combined(visit, aligned)
        picked = int(np.where(mask, scores, -np.inf).argmax())
        visit.picked = picked
        self._latest = float(scores[picked]), float(aligned[picked])
        return self._latest[0]

    def _combined(self, visit: _Visit, aligned: Floats) -> Floats:
        """Return alignment - eps x remaining work, eps = m x mean(alignment) / mean(work) (Tetris, 3.3.2).

        The means are over the classes that fitted when the node was looked at.
        """
        policy = self.policy
        if policy.packing and policy.srtf == 0:
            return aligned
        if visit.pull is None:
            work = self.work[visit.rows]
            mean = float(work.sum()) / len(work)
            eps = policy.srtf * float(np.abs(aligned).sum()) / len(work) / mean if mean > 0 else 0.0
            visit.pull = eps * work if policy.packing else work
        return aligned - visit.pull if policy.packing else -visit.pull

    def _limit(self, node: int) -> Floats:
        """Return what a task may take of the node [R]: what is free, but for the disk read kept for shuffles."""
        limit = self.free[:, node].copy()
        limit[DISK_READ] -= self.sources.kept[node]
        return limit

    def _near(self, task_class: int, node: int) -> bool:
        """Whether a task of the class would read there."""
        if self.sources.own[task_class]:
            return True
        if self.sources.local[task_class, node] <= 0:
            return False
        return bool((self.here_needs[task_class] <= self._limit(node)).all())

    # Accounts

    def _place(self, task_class: int, node: int, *, near: bool, starved: bool) -> bool:
        """Take a task's demand of the node, and of its sources; False, and its class is out, if they have no room."""
        spread = bool(self.sources.spread[task_class])
        if not (near or spread) and self.free[NETWORK_IN, node] < self.reading[task_class]:
            found = None
        else:
            found = self.sources.take(task_class, node, near=near)
        if found is None:
            self.sources.dead[task_class] = True
            self._out(task_class)
            return False
        task, source = found
        takes = self.here[task_class] if near else self.away[task_class]
        self.free[:, node] -= takes
        if spread:
            self.free[NETWORK_IN, node] += self.reading[task_class]  # its links were taken with its sources
        self.left[task_class] -= 1
        if self.left[task_class] <= 0:
            self._out(task_class)
        factor = 1.0 if near else 1.0 - self.policy.remote_penalty
        score, alignment = (0.0, 0.0) if starved else self._latest
        owed = float(self.turns.owed[self.job[task_class]])
        last = self.last is not None and bool(self.last[task_class])
        self._terms.append((score, alignment, factor, float(self.work[task_class]), owed, last, starved))
        self._taken.append((int(self.rows[task_class]), node, task, source))
        self.turns.count(task_class, self.away[task_class] if spread else self.here[task_class])
        return True

    def _out(self, task_class: int) -> None:
        """Leave a class out from now on."""
        self.alive[task_class] = False
        self._candidates -= self._fits[task_class]

    def assignments(self) -> Assignments:
        """Return what was taken."""
        taken = np.array(self._taken, dtype=np.intp).reshape(-1, 4)
        return Assignments(taken[:, 0], taken[:, 1], taken[:, 2], taken[:, 3])

    def terms(self) -> Terms:
        """Return why."""
        terms = np.array(self._terms, dtype=np.float64).reshape(-1, 7)
        score, alignment, remote, work, owed, last, starved = terms.T
        return Terms(score, alignment, remote, work, owed, last > 0, starved > 0)
