"""The tasks that run: what they were promised, what they use, how fast they progress and when they end.

All in arrays over the running tasks [P], dense, in no order that means anything. While nothing is over-allocated a
task's end is known when it starts and nothing is computed again.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import (
    CPU_INDEX,
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    MEMORY_INDEX,
    NETWORK_OUT_INDEX,
)
from extender.cluster.waiting import Running
from lab.sim.engine.contention import SHARED, TERM_COLUMNS, TERMS, factors, spread_part, term_rates

DONE_SECONDS = 1e-6
"""What ends this soon after a moment ends in that moment: the same end, reached by other roundings."""

_R, _T = len(DIMENSIONS), len(TERMS)
_CPU, _MEMORY, _READ, _WRITE, _OUT = (
    CPU_INDEX,
    MEMORY_INDEX,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    NETWORK_OUT_INDEX,
)
_COLUMNS = np.arange(_R)[:, None]
_LEFT, _RATES, _ENDS, _SEEN = (slice(first, first + _T) for first in range(0, 4 * _T, _T))
_END, _NEXT, _EXPECTED, _ELSEWHERE = range(4 * _T, 4 * _T + 4)
_HELD = slice(_ELSEWHERE + 1, _ELSEWHERE + 1 + _R)
_SECONDS = _HELD.stop
_STAGE, _TASK, _NODE, _SOURCE, _SPREAD = range(5)
_DONE, _EARLY = slice(0, _T), _T


@dataclass(frozen=True, slots=True)
class Starts:
    """Tasks that start now [A]: their stage, which task, on which node, and from where they read.

    `held` [R, A] is what they take of their node and `elsewhere` [A] the bytes per second that they read from others.
    `source` is the one node that they read from, else their own where they read there alone, N where there are many;
    `spread` their row of the shuffles' rates, else -1. `seconds` is their duration at their peaks, `expected` that
    which the scheduler expects.
    """

    stage: Rows
    task: Rows
    node: Rows
    source: Rows
    spread: Rows
    held: Floats
    elsewhere: Floats
    seconds: Floats
    expected: Floats


@dataclass(frozen=True, slots=True)
class Ends:
    """Tasks that have ended [E], when exactly, and what their jobs held of all nodes for them [R, E]."""

    stage: Rows
    task: Rows
    at: Floats
    held: Floats


class RunningTasks:
    """The running tasks on machines of this `capacity` [N, R]; `rates` [., N] are what shuffles read (inputs.Pool)."""

    def __init__(self, capacity: Floats, *, loss: float) -> None:
        self.capacity = capacity
        self.allocated = np.zeros_like(capacity)
        self.count = 0
        self.rates = np.zeros((0, len(capacity)))
        self._released = np.zeros_like(capacity)
        self._loss = loss
        self._floats, self._rows, self._flags = _room(1024)
        self._part = np.ones((len(capacity) + 1, _R))
        self._slowed = self._uneven = False

    @property
    def demand(self) -> Floats:
        """What tasks want of each machine now [N, R]: their promises, but for what they no longer use."""
        return self.allocated - self._released if self._uneven else self.allocated

    @property
    def tasks(self) -> Rows:
        """The running tasks, in no order that means anything."""
        return self._rows[_TASK, : self.count].copy()

    @property
    def next_at(self) -> float:
        """When the next task ends, or the next term of one, if nothing else happens; infinite if none does."""
        return float(self._floats[_NEXT, : self.count].min(initial=np.inf))

    def for_reservations(self) -> Running:
        """Return where tasks run, until when they are expected to, and what they hold: views, valid for this step."""
        now = slice(0, self.count)
        floats = self._floats
        views = (self._rows[_NODE, now], floats[_EXPECTED, now], floats[_HELD, now].T, floats[_SECONDS, now])
        for view in views:
            view.setflags(write=False)
        return Running(*views)

    def use(self) -> Floats:
        """Return what the tasks really use of the whole cluster [R], each term at its rate."""
        now = slice(0, self.count)
        if not (self._slowed or self._uneven):
            return np.asarray(self.allocated.sum(axis=0))
        speed = np.where(self._flags[_DONE, now], 0.0, self._floats[_RATES, now])
        used: Floats = ((speed @ self._floats[_HELD, now].T) * TERM_COLUMNS).sum(axis=0)
        used[[_READ, _OUT]] += float(speed[2] @ self._floats[_ELSEWHERE, now])
        used[_MEMORY] = self.allocated[:, _MEMORY].sum()
        return used

    def start(self, starts: Starts, now: float) -> Floats:
        """Run these tasks from now on; return what their jobs hold of all nodes by that [R, A]."""
        amount, held = len(starts.stage), starts.held
        self._make_room(self.count + amount)
        new = slice(self.count, self.count + amount)
        self.count += amount
        floats, rows, flags = self._floats[:, new], self._rows[:, new], self._flags[:, new]
        rows[_STAGE], rows[_TASK], rows[_NODE] = starts.stage, starts.task, starts.node
        rows[_SOURCE], rows[_SPREAD] = starts.source, starts.spread
        floats[_LEFT], floats[_RATES], floats[_SEEN] = starts.seconds, 1.0, now
        floats[_ENDS] = floats[_END] = floats[_NEXT] = now + starts.seconds
        floats[_EXPECTED], floats[_SECONDS] = now + starts.expected, starts.expected
        floats[_ELSEWHERE], floats[_HELD] = starts.elsewhere, held
        flags[_EARLY] = False
        np.equal(held[_CPU], 0.0, out=flags[0])  # a term that a task lacks is done from the beginning
        np.equal(held[_WRITE], 0.0, out=flags[1])
        np.equal(held[_READ] + starts.elsewhere, 0.0, out=flags[2])
        self._promise(self.allocated, rows, held, starts.elsewhere, 1)
        return _of_job(held, starts.elsewhere)

    def end_due(self, now: float) -> Ends | None:
        """Take away the tasks that have ended by now, and free what those no longer use which go on."""
        soon = now + DONE_SECONDS
        found = _where(self._floats[_NEXT, : self.count] <= soon)
        if self._uneven and len(found):
            found = self._release(found, soon)
        if not len(found):
            return None
        rows, floats = self._rows.take(found, axis=1), self._floats.take(found, axis=1)
        held, elsewhere = floats[_HELD], floats[_ELSEWHERE]
        self._promise(self.allocated, rows, held, elsewhere, -1)
        self._close(found)
        return Ends(rows[_STAGE], rows[_TASK], np.minimum(floats[_END], now), _of_job(held, elsewhere))

    def share(self, now: float) -> None:
        """Give every task its rates from now on, in proportion where machines are over-allocated."""
        part = self._part
        part[:-1] = factors(self.demand, self.capacity, loss=self._loss, shared=SHARED)
        scarce = bool((part < 1.0).any())
        if not (scarce or self._slowed):
            return
        present = slice(0, self.count)
        floats, rows, done = self._floats[:, present], self._rows[:, present], self._flags[_DONE, present]
        rates = term_rates(part, rows[_NODE], rows[_SOURCE], floats[_HELD], self._spread(part))
        changed = (rates != floats[_RATES]) & ~done
        for term in range(_T):
            self._settle(term, _where(changed[term]), rates[term], now)
        end, next_at = floats[_END], floats[_NEXT]
        np.max(floats[_ENDS], axis=0, out=end)
        np.min(np.where(done, end, floats[_ENDS]), axis=0, out=next_at)
        self._slowed = scarce or bool(((floats[_RATES] < 1.0) & ~done).any())
        self._uneven = bool((next_at < end).any() or self._flags[_EARLY, present].any())

    def _make_room(self, count: int) -> None:
        """Make room for this many tasks in all."""
        if count <= self._floats.shape[1]:
            return
        now = slice(0, self.count)
        floats, rows, flags = _room(2 * count)
        floats[:, now], rows[:, now], flags[:, now] = self._floats[:, now], self._rows[:, now], self._flags[:, now]
        self._floats, self._rows, self._flags = floats, rows, flags

    def _spread(self, part: Floats) -> tuple[Rows, Floats] | None:
        """Return which tasks shuffle, and the part of their rates that their sources leave them."""
        rows = self._rows[_SPREAD, : self.count]
        tasks = _where(rows >= 0)
        if not len(tasks):
            return None
        return tasks, spread_part(self.rates, rows[tasks], self._rows[_NODE, tasks], part[:-1])

    def _settle(self, term: int, tasks: Rows, rates: Floats, now: float) -> None:
        """Take off what these tasks have done of a term by now; from now on it goes at `rates` [P]."""
        if not len(tasks):
            return
        left, rate, ends, seen = (self._floats[rows][term] for rows in (_LEFT, _RATES, _ENDS, _SEEN))
        to_do = np.maximum(left[tasks] - rate[tasks] * (now - seen[tasks]), 0.0)
        new = rates[tasks]
        left[tasks], rate[tasks], seen[tasks] = to_do, new, now
        ends[tasks] = now + np.divide(to_do, new, out=np.full(len(tasks), np.inf), where=new > 0)

    def _release(self, due: Rows, soon: float) -> Rows:
        """Free what tasks used for terms that are done, while the tasks go on; return those that do not."""
        floats, flags = self._floats, self._flags
        over = floats[_END, due] <= soon
        going: Rows = due[~over]
        ended: Rows = due[over]
        early = ended[flags[_EARLY, ended]]
        if len(early):
            self._unuse(early, flags[_DONE, early], -1)
        if len(going):
            newly = (floats[_ENDS, going] <= soon) & ~flags[_DONE, going]
            self._unuse(going, newly, 1)
            flags[_DONE, going] |= newly
            flags[_EARLY, going] = True
            ends = np.where(flags[_DONE, going], floats[_END, going], floats[_ENDS, going])
            floats[_NEXT, going] = ends.min(axis=0)
        return ended

    def _unuse(self, tasks: Rows, terms: Mask, sign: int) -> None:
        """Count what these terms [3, tasks] of running tasks took as released, or, with `sign` -1, no longer so."""
        rows, floats = self._rows.take(tasks, axis=1), self._floats.take(tasks, axis=1)
        rows[_SPREAD, ~terms[2]] = -1
        held = floats[_HELD] * (TERM_COLUMNS.T @ terms)
        self._promise(self._released, rows, held, floats[_ELSEWHERE] * terms[2], sign)

    def _promise(self, total: Floats, rows: Rows, held: Floats, elsewhere: Floats, sign: int) -> None:
        """Add to `total` [N, R] what tasks take of every node, or take it off: of their own, and where they read."""
        node = rows[_NODE]
        change = np.add.at if sign > 0 else np.subtract.at
        change(total.reshape(-1), (node * _R + _COLUMNS).ravel(), held.ravel())
        if not elsewhere.any():
            return
        sent = _summed(rows[_SOURCE], elsewhere, len(total) + 1)[:-1]
        many = _where(rows[_SPREAD] >= 0)
        if len(many):
            readers = np.bincount(rows[_SPREAD, many])
            used = _where(readers)
            sent = sent + readers[used].astype(np.float64) @ self.rates[used]
            sent -= _summed(node[many], held[_READ, many], len(total))
        total[:, _READ] += sign * sent
        total[:, _OUT] += sign * sent

    def _close(self, ended: Rows) -> None:
        """Fill the gaps that ended tasks leave with the last of those that go on."""
        left = self.count - len(ended)
        first = int(np.searchsorted(ended, left))
        gaps = ended[:first]
        if len(gaps):
            stays = np.ones(len(ended), dtype=np.bool_)
            stays[ended[first:] - left] = False
            last = _where(stays) + left
            self._floats[:, gaps] = self._floats.take(last, axis=1)
            self._rows[:, gaps] = self._rows.take(last, axis=1)
            self._flags[:, gaps] = self._flags.take(last, axis=1)
        self.count = left


def _where(mask: Mask | Rows) -> Rows:
    """Return the rows at which a mask is true; numpy's own function takes several times as long for a short one."""
    rows: Rows = mask.nonzero()[0]
    return rows


def _summed(rows: Rows, amounts: Floats, count: int) -> Floats:
    """Return the sum of the amounts of each of so many rows."""
    return np.asarray(np.bincount(rows, weights=amounts, minlength=count), dtype=np.float64)


def _room(count: int) -> tuple[Floats, Rows, Mask]:
    """Return floats, rows and flags for this many tasks."""
    floats, rows = np.zeros((_SECONDS + 1, count)), np.zeros((_SPREAD + 1, count), dtype=np.intp)
    return floats, rows, np.zeros((_EARLY + 1, count), dtype=np.bool_)


def _of_job(held: Floats, elsewhere: Floats) -> Floats:
    """Return what tasks hold of all nodes together [R, A]."""
    whole = held.copy()
    whole[_READ] += elsewhere
    whole[_OUT] += elsewhere
    return whole
