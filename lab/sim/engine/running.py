"""The tasks that run: what they were promised, what they use, how fast they progress and when they end.

Everything is in dense arrays over the running tasks [P]; their order has no meaning. A task has three terms (computing,
writing, reading; see contention.py), and ends when its last term is done. The life of a task:

1. `start` gives it a place in the arrays, allocates what it takes on every node, and sets each term's end as if
   nothing were over-allocated.
2. `share` recomputes the rates of all terms where a machine is over-allocated, now or at the last step. A term whose
   rate changes gets a new end. While nothing is over-allocated there is nothing to compute.
3. `end_due` looks at the tasks of which a term is done. A task that goes on stops using what that term took; its
   allocation stays.
4. `end_due` takes away the tasks whose last term is done, and fills their places with the last tasks of the arrays.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import (
    CPU_INDEX,
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    NETWORK_OUT_INDEX,
)
from extender.cluster.waiting import Running
from lab.sim.engine.contention import SHARED, TERM_COLUMNS, TERMS, carried, factors, spread_part, term_rates, wide
from lab.sim.engine.outputs import add_copies, add_on_all_nodes, copying_rate

DONE_SECONDS = 1e-6
"""What ends this soon after a moment ends in that moment: the same end, reached by other roundings."""

_T = len(TERMS)
_CPU, _READ, _WRITE, _OUT = (
    CPU_INDEX,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    NETWORK_OUT_INDEX,
)
# Rows of the floats: for each term the seconds left at its peak, its rate, its end, and when it was last settled.
_LEFT, _RATES, _ENDS, _SETTLED = (slice(first, first + _T) for first in range(0, 4 * _T, _T))
# Then for each task its end, the next end of one of its terms, its expected end, its remote bytes per second, its
# expected duration, and, for each dimension, its demand on its own node.
_END, _NEXT, _EXPECTED, _ELSEWHERE = range(4 * _T, 4 * _T + 4)
_SECONDS = _ELSEWHERE + 1
_DEMAND = slice(_SECONDS + 1, None)
_STAGE, _TASK, _NODE, _SOURCE, _RATES_ROW = range(5)
_COPIES = slice(_RATES_ROW + 1, None)  # the machines that hold copies of the output
_BEYOND = slice(len(DIMENSIONS), None)
# Flags: which terms are done, and whether a term was done before the task.
_DONE, _EARLY = slice(0, _T), _T


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """Tasks that start now [A]: their stage, which task, on which node, and from where they read.

    `node_demand` [R, A] is what they take of their own node, `elsewhere` [A] the bytes per second that they read from
    other nodes. `source` is the node that they read from: their own where they read there alone, N where they read from
    many. `rates_row` is the row of a shuffle in the rates, else -1. `copies` [K, A] are the machines that their output
    is copied to, N for none (outputs.py). `seconds` is their duration at their peaks, `expected` the duration that the
    scheduler expects. `promised` is an estimate of both (None: they are promised what they declare).
    """

    stage: Rows
    task: Rows
    node: Rows
    source: Rows
    rates_row: Rows
    node_demand: Floats
    elsewhere: Floats
    copies: Rows
    seconds: Floats
    expected: Floats
    promised: "Promised | None" = None


@dataclass(frozen=True, slots=True)
class Promised:
    """What tasks [A] are promised where that is an estimate: of their own node [R, A], and read from others [A]."""

    demand: Floats
    elsewhere: Floats


@dataclass(frozen=True, slots=True)
class Ends:
    """Tasks that have ended [E], when exactly, and what their jobs were allocated for them on all nodes [R, E].

    `opportunistic` [E] says which were (None: there are none). `peak` [R, E] is what they were measured to use at their
    peak (None: nobody measured).
    """

    stage: Rows
    task: Rows
    at: Floats
    job_demand: Floats
    opportunistic: Mask | None = None
    peak: Floats | None = None


class RunningTasks:
    """The running tasks on machines of this `capacity` [N, R]; `rates` [., N] are what shuffles read (inputs.Pool).

    An output has at most this many `copies` on other machines. `taken` [T] says what each task takes, contention
    included (None: contention slows tasks down).
    """

    def __init__(self, capacity: Floats, *, loss: float, copies: int = 0, taken: Floats | None = None) -> None:
        self.capacity = capacity
        self._taken = taken
        self.allocated = np.zeros_like(capacity)
        self.count = 0
        self.rates = np.zeros((0, len(capacity)))
        self._released = np.zeros_like(capacity)
        self._loss = loss
        self._terms = wide(TERM_COLUMNS, capacity.shape[1])
        self._whole = np.flatnonzero(~self._terms.any(axis=0))  # held to the end: memory, and what is beyond the six
        self._columns = np.arange(capacity.shape[1])[:, None]
        self._copies = copies
        self._floats, self._rows, self._flags = _room(1024, capacity.shape[1], copies)
        self._part = np.ones((len(capacity) + 1, capacity.shape[1]))
        self._slowed = self._uneven = False

    @property
    def demand(self) -> Floats:
        """What tasks want of each machine now [N, R]: their allocation without what they no longer use."""
        return self.allocated - self._released if self._uneven else self.allocated

    @property
    def tasks(self) -> Rows:
        """The running tasks; their order has no meaning."""
        return self._rows[_TASK, : self.count].copy()

    @property
    def next_at(self) -> float:
        """When the next term of a task is done if nothing else happens; infinite if none ever is."""
        return float(self._floats[_NEXT, : self.count].min(initial=np.inf))

    @property
    def regular_stages(self) -> Rows:
        """The stage of each task of `for_reservations`."""
        return self._rows[_STAGE, : self.count].copy()

    def nodes_of(self, places: Rows) -> Rows:
        """Return on which nodes these running tasks are."""
        return np.asarray(self._rows[_NODE, places])

    def for_reservations(self) -> Running:
        """Return where tasks run, when they are expected to end, and what they take: views, valid for this step."""
        running = slice(0, self.count)
        rows, floats = self._rows, self._floats
        views = (
            rows[_NODE, running],
            floats[_EXPECTED, running],
            floats[_DEMAND, running].T,
            floats[_SECONDS, running],
        )
        for view in views:
            view.setflags(write=False)
        return Running(*views)

    def use(self) -> Floats:
        """Return what the tasks really use of the whole cluster [R], each term at its rate.

        Those that are held use their memory, and nothing of what is beyond the six dimensions.
        """
        running = slice(0, self.count)
        if self._taken is not None:
            return np.asarray(carried(self.demand, self.capacity, loss=self._loss).sum(axis=0)) - self._idle()
        if not (self._slowed or self._uneven):
            return np.asarray(self.allocated.sum(axis=0))
        speed = np.where(self._flags[_DONE, running], 0.0, self._floats[_RATES, running])
        used: Floats = ((speed @ self._floats[_DEMAND, running].T) * self._terms).sum(axis=0)
        used[[_READ, _OUT]] += float(speed[2] @ self._floats[_ELSEWHERE, running])
        copied = np.zeros((len(used), self.count))
        add_on_all_nodes(
            copied, self._rows[_COPIES, running], len(self.capacity), self._floats[_DEMAND, running][_WRITE] * speed[1]
        )
        used += copied.sum(axis=1)
        used[self._whole] = self.allocated[:, self._whole].sum(axis=0)
        return used - self._idle()

    def _idle(self) -> Floats:
        """Return what held tasks take beyond the six dimensions [R]."""
        idle = np.zeros(self.capacity.shape[1])
        held = self._held()
        if len(held):
            idle[_BEYOND] = self._floats[_DEMAND, held][_BEYOND].sum(axis=1)
        return idle

    def _held(self) -> Rows:
        """Return the places of the tasks that are held."""
        waits = np.isinf(self._floats[_END, : self.count]) & self._flags[_DONE, : self.count].all(axis=0)
        return _where(waits)

    def start(self, starts: Starts, now: float) -> Floats:
        """Run these tasks from now on; return what that allocates to their jobs on all nodes [R, A]."""
        # 1. Places at the end of the arrays.
        amount, demand = len(starts.stage), starts.node_demand
        self._make_room(self.count + amount)
        new = slice(self.count, self.count + amount)
        self.count += amount
        floats, rows, flags = self._floats[:, new], self._rows[:, new], self._flags[:, new]
        # 2. Where they run and read, and their ends if every term goes at its peak.
        rows[_STAGE], rows[_TASK], rows[_NODE] = starts.stage, starts.task, starts.node
        rows[_SOURCE], rows[_RATES_ROW], rows[_COPIES] = starts.source, starts.rates_row, starts.copies
        seconds = starts.seconds if self._taken is None else self._taken[starts.task]
        floats[_LEFT], floats[_RATES], floats[_SETTLED] = seconds, 1.0, now
        floats[_ENDS] = floats[_END] = floats[_NEXT] = now + seconds
        floats[_EXPECTED], floats[_SECONDS] = now + starts.expected, starts.expected
        floats[_ELSEWHERE], floats[_DEMAND] = starts.elsewhere, demand
        # 3. A term that a task lacks is done from the beginning.
        flags[_EARLY] = False
        flags[_DONE] = _lacking(demand, starts.elsewhere)
        # 4. Allocate what they take.
        self._add(self.allocated, rows, demand, starts.elsewhere, 1)
        return self._on_all_nodes(rows, demand, starts.elsewhere)

    def hold(self, tasks: Rows) -> None:
        """Let these tasks keep what they were promised, and use and do nothing but keep their memory, until `begin`."""
        held = _where(np.isin(self._rows[_TASK, : self.count], tasks))
        for rows in (_END, _NEXT, *range(_ENDS.start, _ENDS.stop)):
            self._floats[rows, held] = np.inf
        self._flags[_DONE, held] = True
        self._flags[_EARLY, held] = self._uneven = True
        self._count_released(held, self._flags[_DONE, held], 1)

    def begin(self, stages: Rows, now: float) -> None:
        """Let those of these stages that are held do their work from now on."""
        held = self._held()
        held = held[np.isin(self._rows[_STAGE, held], stages)]
        if not len(held):
            return
        self._count_released(held, self._flags[_DONE, held], -1)
        floats, demand = self._floats, self._floats[_DEMAND, held]
        floats[_SETTLED, held] = now
        floats[_ENDS, held] = floats[_END, held] = floats[_NEXT, held] = now + floats[_LEFT, held][0]
        floats[_EXPECTED, held] = now + floats[_SECONDS, held]
        self._flags[_EARLY, held] = False
        self._flags[_DONE, held] = _lacking(demand, floats[_ELSEWHERE, held])

    def end_due(self, now: float) -> Ends | None:
        """Take away the tasks that have ended by now, and free what the others no longer use."""
        # 1. Tasks of which a term is done by now.
        soon = now + DONE_SECONDS
        due = _where(self._floats[_NEXT, : self.count] <= soon)
        # 2. Of those, the tasks that go on with another term free what the done term took.
        if self._uneven and len(due):
            due = self._release(due, soon)
        if not len(due):
            return None
        # 3. The others have ended.
        return self._take_away(due, now)

    def lose(self, node: int, now: float) -> Ends | None:
        """Take away all tasks of a node that is gone; their work is lost."""
        return self.take_away(_where(self._rows[_NODE, : self.count] == node), now)

    def take_away(self, lost: Rows, now: float) -> Ends | None:
        """Take away these running tasks, places in ascending order; their work is lost."""
        if not len(lost):
            return None
        early = lost[self._flags[_EARLY, lost]]
        if len(early):
            self._count_released(early, self._flags[_DONE, early], -1)
        return self._take_away(lost, now)

    def share(self, now: float) -> None:
        """Set the rate of every task from now on, in proportion where machines are over-allocated."""
        if self._taken is not None:
            return
        # 1. The part of its demand that every task gets on each machine; 1 everywhere: nothing to compute.
        part = self._part
        part[:-1] = factors(self.demand, self.capacity, loss=self._loss, shared=SHARED)
        scarce = bool((part < 1.0).any())
        if not (scarce or self._slowed):
            return
        # 2. The rate of each term; terms that are not done and change their rate get a new end.
        running = slice(0, self.count)
        floats, rows, done = self._floats[:, running], self._rows[:, running], self._flags[_DONE, running]
        rates = term_rates(part, rows[_NODE], rows[_SOURCE], floats[_DEMAND], self._shuffle_parts(part))
        if self._copies:
            np.minimum(rates[1], copying_rate(part, rows[_NODE], rows[_COPIES]), out=rates[1])
        changed = (rates != floats[_RATES]) & ~done
        for term in range(_T):
            self._settle(term, _where(changed[term]), rates[term], now)
        # 3. The end of each task is that of its last term; the next event is the end of its next term.
        end, next_at = floats[_END], floats[_NEXT]
        np.max(floats[_ENDS], axis=0, out=end)
        np.min(np.where(done, end, floats[_ENDS]), axis=0, out=next_at)
        # 4. Whether any term is slower than its peak, and whether any term ends before its task.
        self._slowed = scarce or bool(((floats[_RATES] < 1.0) & ~done).any())
        self._uneven = bool((next_at < end).any() or self._flags[_EARLY, running].any())

    def _take_away(self, tasks: Rows, now: float) -> Ends:
        """Take off the allocation of tasks, and close the gaps that they leave; `tasks` is ascending."""
        rows, floats = self._rows.take(tasks, axis=1), self._floats.take(tasks, axis=1)
        demand, elsewhere = floats[_DEMAND], floats[_ELSEWHERE]
        self._add(self.allocated, rows, demand, elsewhere, -1)
        self._close(tasks)
        whole = self._on_all_nodes(rows, demand, elsewhere)
        return Ends(rows[_STAGE], rows[_TASK], np.minimum(floats[_END], now), whole)

    def _on_all_nodes(self, rows: Rows, demand: Floats, elsewhere: Floats) -> Floats:
        """Return what tasks take of all nodes together [R, A]."""
        whole = demand.copy()
        whole[_READ] += elsewhere
        whole[_OUT] += elsewhere
        add_on_all_nodes(whole, rows[_COPIES], len(self.capacity), demand[_WRITE])
        return whole

    def _make_room(self, count: int) -> None:
        """Make room for this many tasks in all."""
        if count <= self._floats.shape[1]:
            return
        running = slice(0, self.count)
        floats, rows, flags = _room(2 * count, self.capacity.shape[1], self._copies)
        floats[:, running], rows[:, running] = self._floats[:, running], self._rows[:, running]
        flags[:, running] = self._flags[:, running]
        self._floats, self._rows, self._flags = floats, rows, flags

    def _shuffle_parts(self, part: Floats) -> tuple[Rows, Floats] | None:
        """Return which tasks shuffle, and the part of its reading that its sources give each."""
        rows = self._rows[_RATES_ROW, : self.count]
        tasks = _where(rows >= 0)
        if not len(tasks):
            return None
        return tasks, spread_part(self.rates, rows[tasks], self._rows[_NODE, tasks], part[:-1])

    def _settle(self, term: int, tasks: Rows, rates: Floats, now: float) -> None:
        """Take off the work that these tasks have done on a term by now; from now on the term goes at `rates` [P]."""
        if not len(tasks):
            return
        work, rate, ends, settled = (self._floats[rows][term] for rows in (_LEFT, _RATES, _ENDS, _SETTLED))
        remaining = np.maximum(work[tasks] - rate[tasks] * (now - settled[tasks]), 0.0)
        new_rate = rates[tasks]
        work[tasks], rate[tasks], settled[tasks] = remaining, new_rate, now
        ends[tasks] = now + np.divide(remaining, new_rate, out=np.full(len(tasks), np.inf), where=new_rate > 0)

    def _release(self, due: Rows, soon: float) -> Rows:
        """Free what tasks that go on took for terms that are done; return the tasks that have ended."""
        floats, flags = self._floats, self._flags
        over = floats[_END, due] <= soon
        going: Rows = due[~over]
        ended: Rows = due[over]
        # 1. What an ended task released earlier is no longer part of any allocation.
        early = ended[flags[_EARLY, ended]]
        if len(early):
            self._count_released(early, flags[_DONE, early], -1)
        # 2. What a task that goes on took for a term that is done now, is released; its next event is another term.
        if len(going):
            newly = (floats[_ENDS, going] <= soon) & ~flags[_DONE, going]
            self._count_released(going, newly, 1)
            flags[_DONE, going] |= newly
            flags[_EARLY, going] = True
            ends = np.where(flags[_DONE, going], floats[_END, going], floats[_ENDS, going])
            floats[_NEXT, going] = ends.min(axis=0)
        return ended

    def _count_released(self, tasks: Rows, terms: Mask, sign: int) -> None:
        """Add what these terms [3, tasks] took to what is released, or subtract it with `sign` -1."""
        rows, floats = self._rows.take(tasks, axis=1), self._floats.take(tasks, axis=1)
        rows[_RATES_ROW, ~terms[2]] = -1
        demand = floats[_DEMAND] * (self._terms.T @ terms)
        self._add(self._released, rows, demand, floats[_ELSEWHERE] * terms[2], sign)

    def _add(self, total: Floats, rows: Rows, demand: Floats, elsewhere: Floats, sign: int) -> None:
        """Add what tasks take of every node to `total` [N, R], or subtract it with `sign` -1."""
        # 1. Of their own nodes.
        node = rows[_NODE]
        change = np.add.at if sign > 0 else np.subtract.at
        change(total.reshape(-1), (node * total.shape[1] + self._columns).ravel(), demand.ravel())
        add_copies(total, node, rows[_COPIES], demand[_WRITE], sign)
        if not elsewhere.any():
            return
        # 2. Of the one node that they read from; the row after the last node is for tasks that read from many.
        sent = _summed(rows[_SOURCE], elsewhere, len(total) + 1)[:-1]
        # 3. Of the many nodes that shuffles read from, without the part that each task reads on its own node.
        shuffling = _where(rows[_RATES_ROW] >= 0)
        if len(shuffling):
            readers = np.bincount(rows[_RATES_ROW, shuffling])
            used = _where(readers)
            sent = sent + readers[used].astype(np.float64) @ self.rates[used]
            sent -= _summed(node[shuffling], demand[_READ, shuffling], len(total))
        total[:, _READ] += sign * sent
        total[:, _OUT] += sign * sent

    def _close(self, ended: Rows) -> None:
        """Fill the gaps that ended tasks leave with the last of the tasks that go on; `ended` is ascending."""
        # 1. This many go on. Gaps are the ended places below that number.
        count = self.count - len(ended)
        first = int(np.searchsorted(ended, count))
        gaps = ended[:first]
        if len(gaps):
            # 2. At or above that number, the places that did not end move into the gaps: there are as many.
            stays = np.ones(len(ended), dtype=np.bool_)
            stays[ended[first:] - count] = False
            last = _where(stays) + count
            self._floats[:, gaps] = self._floats.take(last, axis=1)
            self._rows[:, gaps] = self._rows.take(last, axis=1)
            self._flags[:, gaps] = self._flags.take(last, axis=1)
        self.count = count


def _where(mask: Mask | Rows) -> Rows:
    """Return the rows at which a mask is true; np.flatnonzero takes several times as long for a short one."""
    rows: Rows = mask.nonzero()[0]
    return rows


def _summed(rows: Rows, amounts: Floats, count: int) -> Floats:
    """Return the sum of the amounts by row [count]."""
    return np.asarray(np.bincount(rows, weights=amounts, minlength=count), dtype=np.float64)


def _lacking(demand: Floats, elsewhere: Floats) -> Mask:
    """Return which terms tasks lack that demand so much of their node [R, A], and read so much from others [A]."""
    return np.asarray([demand[_CPU] == 0.0, demand[_WRITE] == 0.0, demand[_READ] + elsewhere == 0.0])


def _room(count: int, width: int, copies: int) -> tuple[Floats, Rows, Mask]:
    """Return floats, rows and flags for this many tasks; `width` is the number of dimensions."""
    floats, rows = np.zeros((_DEMAND.start + width, count)), np.zeros((_COPIES.start + copies, count), dtype=np.intp)
    return floats, rows, np.zeros((_EARLY + 1, count), dtype=np.bool_)
