"""The tasks that run: what they were promised, what they use, how fast they progress and when they end.

All in arrays over the running tasks [P], dense, in no order that means anything. While nothing is over-allocated a
task's end is known when it starts and nothing is computed again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Running
from extender.sim.contention import SHARED, TERM_COLUMNS, TERMS, factors, spread_part, term_rates

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

DONE_SECONDS = 1e-6
"""What ends this soon after a moment ends in that moment: the same end, reached by other roundings."""

_R, _T = len(DIMENSIONS), len(TERMS)
_MEMORY, _READ, _IN, _OUT = (DIMENSIONS.index(name) for name in ("memory", "disk-read", "network-in", "network-out"))
_COLUMNS = np.arange(_R)
_LEFT, _RATES, _ENDS, _SEEN = (slice(first, first + _T) for first in range(0, 4 * _T, _T))
_END, _NEXT, _EXPECTED, _ELSEWHERE = range(4 * _T, 4 * _T + 4)
_STAGE, _TASK, _NODE, _SOURCE, _SPREAD = range(5)
_DONE, _EARLY = slice(0, _T), _T


@dataclass(frozen=True, slots=True)
class Starts:
    """Tasks that start now [A]: their stage, which task, on which node, and from where they read.

    `held` [A, R] is what they take of their node and `elsewhere` [A] the bytes per second that they read from others.
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
    """Tasks that have ended [E], when exactly, and what their jobs held of all nodes [E, R]."""

    stage: Rows
    task: Rows
    at: Floats
    held: Floats


class RunningTasks:
    """The running tasks on machines of this `capacity` [N, R]; `rates` [., N] are the shuffles' (inputs.Shuffles)."""

    def __init__(self, capacity: Floats, *, loss: float) -> None:
        self.capacity = capacity
        self.allocated = np.zeros_like(capacity)
        self.count = 0
        self.rates = np.zeros((0, len(capacity)))
        self._released = np.zeros_like(capacity)
        self._loss = loss
        self._floats, self._rows, self._flags, self._held = _room(1024)
        self._part = np.ones((len(capacity) + 1, _R))
        self._slowed = self._uneven = False

    @property
    def demand(self) -> Floats:
        """What tasks want of each machine now [N, R]: their promises, but for what they no longer use."""
        return self.allocated - self._released if self._uneven else self.allocated

    @property
    def next_at(self) -> float:
        """When the next task ends, or the next term of one, if nothing else happens; infinite if none does."""
        return float(self._floats[_NEXT, : self.count].min(initial=np.inf))

    @property
    def nodes(self) -> Rows:
        """Where the tasks run [P]."""
        return self._rows[_NODE, : self.count]

    def for_reservations(self) -> Running:
        """Return where tasks run, until when they are expected to, and what they hold: views, valid for this step."""
        now = slice(0, self.count)
        views = (self._rows[_NODE, now], self._floats[_EXPECTED, now], self._held[now])
        for view in views:
            view.setflags(write=False)
        return Running(*views)

    def use(self) -> Floats:
        """Return what the tasks really use of the whole cluster [R], each term at its rate."""
        now = slice(0, self.count)
        if not (self._slowed or self._uneven):
            return np.asarray(self.allocated.sum(axis=0))
        speed = np.where(self._flags[_DONE, now], 0.0, self._floats[_RATES, now])
        used: Floats = ((speed @ self._held[now]) * TERM_COLUMNS).sum(axis=0)
        elsewhere = float(speed[2] @ self._floats[_ELSEWHERE, now])
        used[[_READ, _OUT]] += elsewhere
        used[_MEMORY] = self.allocated[:, _MEMORY].sum()
        return used

    def start(self, starts: Starts, now: float) -> Floats:
        """Run these tasks from now on; return what their jobs hold of all nodes by that [A, R]."""
        amount = len(starts.stage)
        self._make_room(self.count + amount)
        new = slice(self.count, self.count + amount)
        self.count += amount
        floats, rows, flags = self._floats, self._rows, self._flags
        for row, values in ((_STAGE, starts.stage), (_TASK, starts.task), (_NODE, starts.node)):
            rows[row, new] = values
        rows[_SOURCE, new], rows[_SPREAD, new] = starts.source, starts.spread
        floats[_LEFT, new], floats[_RATES, new], floats[_SEEN, new] = starts.seconds, 1.0, now
        floats[_ENDS, new] = floats[_END, new] = floats[_NEXT, new] = now + starts.seconds
        floats[_EXPECTED, new] = now + starts.expected
        floats[_ELSEWHERE, new] = starts.elsewhere
        self._held[new] = starts.held
        flags[:, new] = False
        flags[_DONE, new] = self._lacking(starts.held, starts.elsewhere)
        self.allocated += self._promised(starts.node, starts.source, starts.spread, starts.held, starts.elsewhere)
        return _of_job(starts.held, starts.elsewhere)

    def end_due(self, now: float) -> Ends | None:
        """Take away the tasks that have ended by now, and free what those no longer use which go on."""
        due = self._floats[_NEXT, : self.count] <= now + DONE_SECONDS
        found = _where(due)
        if not len(found):
            return None
        if self._uneven:
            self._release(found, now)
            found = found[self._floats[_END, found] <= now + DONE_SECONDS]
            if not len(found):
                return None
            early = found[self._flags[_EARLY, found]]
            if len(early):
                self._released -= self._promised_by(early, self._flags[_DONE, early])
        self.allocated -= self._promised_by(found)
        rows, held = self._rows.take(found, axis=1), self._held.take(found, axis=0)
        at = np.minimum(self._floats[_END, found], now)
        ends = Ends(rows[_STAGE], rows[_TASK], at, _of_job(held, self._floats[_ELSEWHERE, found]))
        self._close(found)
        return ends

    def share(self, now: float) -> None:
        """Give every task its rates from now on, in proportion where machines are over-allocated."""
        part = self._part
        part[:-1] = factors(self.demand, self.capacity, loss=self._loss, shared=SHARED)
        scarce = bool((part < 1.0).any())
        if not (scarce or self._slowed):
            return
        present = slice(0, self.count)
        floats, rows, done = self._floats, self._rows, self._flags[_DONE, present]
        rates = term_rates(part, rows[_NODE, present], rows[_SOURCE, present], self._held[present], self._spread(part))
        changed = (rates != floats[_RATES, present]) & ~done
        for term in range(_T):
            self._settle(term, _where(changed[term]), rates[term], now)
        end, next_at = floats[_END, present], floats[_NEXT, present]
        np.max(floats[_ENDS, present], axis=0, out=end)
        np.min(np.where(done, end, floats[_ENDS, present]), axis=0, out=next_at)
        self._slowed = scarce or bool(((floats[_RATES, present] < 1.0) & ~done).any())
        self._uneven = bool((next_at < end).any() or self._flags[_EARLY, present].any())

    def _make_room(self, count: int) -> None:
        """Make room for this many tasks in all."""
        if count <= self._floats.shape[1]:
            return
        now = slice(0, self.count)
        floats, rows, flags, held = _room(2 * count)
        floats[:, now], rows[:, now] = self._floats[:, now], self._rows[:, now]
        flags[:, now], held[now] = self._flags[:, now], self._held[now]
        self._floats, self._rows, self._flags, self._held = floats, rows, flags, held

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

    def _release(self, due: Rows, now: float) -> None:
        """Free what tasks used for terms that are done, while the tasks go on."""
        floats, flags = self._floats, self._flags
        going = due[floats[_END, due] > now + DONE_SECONDS]
        newly = (floats[_ENDS, going] <= now + DONE_SECONDS) & ~flags[_DONE, going]
        self._released += self._promised_by(going, newly)
        flags[_DONE, going] |= newly
        flags[_EARLY, going] = True
        floats[_NEXT, going] = np.where(flags[_DONE, going], floats[_END, going], floats[_ENDS, going]).min(axis=0)

    def _promised_by(self, tasks: Rows, terms: Mask | None = None) -> Floats:
        """Return what running tasks were promised on every node [N, R], all of it or for some `terms` [3, tasks]."""
        rows = self._rows.take(tasks, axis=1)
        held, elsewhere = self._held.take(tasks, axis=0), self._floats[_ELSEWHERE, tasks]
        if terms is None:
            return self._promised(rows[_NODE], rows[_SOURCE], rows[_SPREAD], held, elsewhere)
        spread = np.where(terms[2], rows[_SPREAD], -1)
        return self._promised(rows[_NODE], rows[_SOURCE], spread, held * (terms.T @ TERM_COLUMNS), elsewhere * terms[2])

    def _promised(self, node: Rows, source: Rows, spread: Rows, held: Floats, elsewhere: Floats) -> Floats:
        """Return what tasks take of every node [N, R]: of their own, and disk-read and network-out where they read."""
        count = len(self.capacity)
        cells = (node[:, None] * _R + _COLUMNS).ravel()
        total = _summed(cells, held.ravel(), count * _R).reshape(count, _R)
        sent = self._sent(node, source, spread, held, elsewhere)
        if sent is not None:
            total[:, _READ] += sent
            total[:, _OUT] += sent
        return total

    def _sent(self, node: Rows, source: Rows, spread: Rows, held: Floats, elsewhere: Floats) -> Floats | None:
        """Return the bytes per second that each node reads for tasks on others [N]; None where none does."""
        count = len(self.capacity)
        if not elsewhere.any():
            return None
        one = _where((spread < 0) & (elsewhere > 0))
        sent = _summed(source[one], elsewhere[one], count + 1)[:-1]
        many = _where(spread >= 0)
        if len(many):
            readers = np.bincount(spread[many], minlength=len(self.rates)).astype(np.float64)
            sent = sent + readers @ self.rates - _summed(node[many], held[many, _READ], count)
        return sent

    def _lacking(self, held: Floats, elsewhere: Floats) -> Mask:
        """Return which terms tasks lack [3, A]: they have nothing to do for them and use nothing."""
        wants = held @ TERM_COLUMNS.T
        wants[:, 2] += elsewhere
        return np.asarray(wants.T <= 0)

    def _close(self, ended: Rows) -> None:
        """Fill the gaps that ended tasks leave with the last of those that go on."""
        left = self.count - len(ended)
        stays = np.ones(len(ended), dtype=np.bool_)
        stays[ended[ended >= left] - left] = False
        gaps, last = ended[ended < left], _where(stays) + left
        if len(gaps):
            self._floats[:, gaps] = self._floats.take(last, axis=1)
            self._rows[:, gaps] = self._rows.take(last, axis=1)
            self._flags[:, gaps] = self._flags.take(last, axis=1)
            self._held[gaps] = self._held.take(last, axis=0)
        self.count = left


def _room(count: int) -> tuple[Floats, Rows, Mask, Floats]:
    """Return floats, rows, flags, and what is held of the own node, for this many tasks."""
    floats, rows = np.zeros((_ELSEWHERE + 1, count)), np.zeros((_SPREAD + 1, count), dtype=np.intp)
    return floats, rows, np.zeros((_EARLY + 1, count), dtype=np.bool_), np.zeros((count, _R))


def _where(mask: Mask) -> Rows:
    """Return the rows at which a mask is true; numpy's own function takes several times as long for a short one."""
    return mask.nonzero()[0]


def _summed(rows: Rows, amounts: Floats, count: int) -> Floats:
    """Return the sum of the amounts of each of so many rows."""
    return np.asarray(np.bincount(rows, weights=amounts, minlength=count), dtype=np.float64)


def _of_job(held: Floats, elsewhere: Floats) -> Floats:
    """Return what tasks hold of all nodes together [A, R]."""
    whole = held.copy()
    whole[:, _READ] += elsewhere
    whole[:, _OUT] += elsewhere
    return whole
