"""A Snapshot, what waits, and a time in; which waiting tasks go where, and why others are held, out.

Joins `cluster` (what there is) and `policy` (what is good). Pure: the control loops and the simulator call this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from extender.cluster.resources import DIMENSIONS
from extender.cluster.snapshot import Snapshot
from extender.cluster.waiting import Blocks, Running, Spread, Waiting
from extender.errors import SettingsError
from extender.policy import matching, shares
from extender.policy.alignment import TASK_RULES
from extender.policy.barrier import last_before_barrier
from extender.policy.locality import remote_factor

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

_MEMORY, _DISK_READ, _NETWORK_IN, _NETWORK_OUT = (
    DIMENSIONS.index(name) for name in ("memory", "disk-read", "network-in", "network-out")
)
_MACHINE, _PAIR = "machine", "pair"
_MATCHINGS = MappingProxyType({_MACHINE: matching.machine_at_a_time, _PAIR: matching.best_pair})
_DRF, _SLOTS, _DEFICIT = "drf", "slots", "deficit"
_SOURCES_TRIED = 16
_NOBODY = (-1, -np.inf)


@dataclass(frozen=True, slots=True)
class Assignments:
    """Decisions in the order in which they were taken [A].

    `task_class` is a row of `Waiting`, `node` a row of the snapshot. `task` is the index into `Blocks` of the task that
    goes, -1 where any will do; `source` the node that it reads its block from (`node` itself if that has a copy; -1
    where the class has no blocks).
    """

    task_class: Rows
    node: Rows
    task: Rows
    source: Rows

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.task_class)


@dataclass(frozen=True, slots=True)
class Terms:
    """What made each assignment the best there and then [A].

    `score` = `alignment` (already times `remote`, the penalty's factor) - eps x `work` (the job's remaining work).
    `owed` is how far its job was below its fair share (1: had nothing); `barrier` says that it went first as one of the
    last tasks of its stage, `starved` that it had waited too long.
    """

    score: Floats
    alignment: Floats
    remote: Floats
    work: Floats
    owed: Floats
    barrier: Mask
    starved: Mask


@dataclass(frozen=True, slots=True)
class Carried:
    """What one plan hands to the next: reserved nodes by class name, deficits by job name. Losing it loses no task."""

    reserved: Mapping[str, str] = field(default_factory=dict)
    deficits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now. `held` [C] says in words why tasks of a class still wait, by row; only where it was asked for."""

    assignments: Assignments
    terms: Terms | None = None
    held: Mapping[int, str] = field(default_factory=dict)
    carried: Carried = field(default_factory=Carried)


class Scheduler(Protocol):
    """Decides what goes where; the planner, and in the simulator those that it is compared with."""

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now, at `now` seconds. Never mutates its arguments."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The tuning of the planner; the papers' defaults (Tetris 3.2 to 3.5, Graphene 5.1) but for `matching`, measured.

    `matching`: `machine` (fill one at a time) or `pair` (the best of all). `rule`: of alignment.TASK_RULES.
    `srtf` m: how much remaining work counts against alignment (eps = m x mean alignment / mean work), 0 not at all;
    `packing` False: nothing but remaining work counts. `sharing`: `drf`, `slots` (by memory) or `deficit`, which serves
    the group that is owed most once that is `kappa` of the cluster; `fairness` f in [0, 1) is for the other two.
    `barrier` b; 1 prefers no one. `headroom`: the part of a disk and of a link that tasks reading on their
    own leave to shuffles that wait: without it one full node of many holds up every shuffle that reads there as well.
    `starved_after` seconds without a start a class gets its next task first, or a node reserved; at most
    `reservable` of all nodes at once.
    """

    matching: str = _MACHINE
    rule: str = "dot"
    remote_penalty: float = 0.1
    srtf: float = 1.0
    packing: bool = True
    sharing: str = _DRF
    fairness: float = 0.25
    kappa: float = 0.1
    barrier: float = 0.9
    headroom: float = 0.2
    starved_after: float = 600.0
    reservable: float = 0.05

    def __post_init__(self) -> None:
        for name, accepted in (
            ("matching", _MATCHINGS),
            ("rule", TASK_RULES),
            ("sharing", (_DRF, _SLOTS, _DEFICIT)),
        ):
            if getattr(self, name) not in accepted:
                raise SettingsError(f"{name}: {getattr(self, name)!r}; accepted: {', '.join(accepted)}")
        for name, below in (("fairness", 1.0), ("remote_penalty", 1.0), ("headroom", 1.0)):
            if not 0 <= getattr(self, name) < below:
                raise SettingsError(f"{name}: {getattr(self, name)!r}; accepted: at least 0, below {below:g}")
        if not (self.srtf >= 0 and self.kappa > 0 and 0 < self.reservable <= 1 and 0 <= self.barrier <= 1):
            raise SettingsError("srtf: 0 or more; kappa: above 0; reservable: above 0, at most 1; barrier: 0 to 1")


class Planner:
    """Plans by one policy and keeps what one plan hands to the next; `plan` is `plan_once` with that."""

    def __init__(self, policy: Policy | None = None, *, explain: bool = False) -> None:
        self.policy = policy or Policy()
        self.carried = Carried()
        self._explain = explain

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        plan = plan_once(self.policy, snapshot, waiting, now, self.carried, explain=self._explain)
        self.carried = plan.carried
        return plan


def plan_once(
    policy: Policy, snapshot: Snapshot, waiting: Waiting, now: float, carried: Carried, *, explain: bool = False
) -> Plan:
    """Return what to start at `now` seconds; `carried` is what the last plan returned as such."""
    board = _Board(policy, snapshot, waiting, carried)
    reserved = _serve_starved(board, now, carried)
    for board.patient in (True, False):
        if board.patient or board.spared.any():
            _MATCHINGS[policy.matching](board)
    return Plan(
        assignments=board.assignments(),
        terms=board.terms(),
        held=_held(board) if explain else {},
        carried=Carried(reserved, dict(zip(waiting.jobs.names, board.deficit.tolist(), strict=True)))
        if policy.sharing == _DEFICIT
        else Carried(reserved),
    )


class _Board:
    """Free resources and waiting classes while a plan is made; a `matching.Table`. Its own arrays, nobody else's."""

    def __init__(self, policy: Policy, snapshot: Snapshot, waiting: Waiting, carried: Carried) -> None:
        self.policy, self.snapshot, self.waiting = policy, snapshot, waiting
        self.capacity = snapshot.layout.capacity
        self.free = self.capacity - snapshot.allocated - snapshot.in_flight
        nominated = snapshot.nominations.load(self.free.shape, priority=-(2**31), uid="")
        if nominated is not None:
            self.free -= nominated
        has = np.isfinite(self.capacity) & (self.capacity > 0)
        self.per_unit = np.divide(1.0, self.capacity, out=np.zeros_like(self.capacity), where=has)
        self._classes()
        self._inputs()
        self._sharing(carried)
        self.closed = np.zeros(len(self.free), dtype=np.bool_)
        self.patient = False
        self.spared = np.zeros(len(self.rows), dtype=np.bool_)
        self.starving = False
        self.touched = np.zeros(len(self.free), dtype=np.bool_)
        self._latest = (0.0, 0.0)
        self._taken: list[tuple[int, int, int, int]] = []
        self._terms: list[tuple[float, float, float, float, float, bool, bool]] = []

    def _classes(self) -> None:
        """Keep the classes that wait [K]; `rows` are their rows in `waiting`."""
        waiting = self.waiting
        self.rows = np.flatnonzero(waiting.count > 0)
        self.left = waiting.count[self.rows].copy()
        self.job = waiting.job[self.rows]
        self.reading = waiting.reading[self.rows]
        self.work = waiting.jobs.work[self.job]
        self.last = last_before_barrier(waiting.finished[self.rows], barrier=self.policy.barrier)
        self.any_last = bool(self.last.any())
        self.here = waiting.demand[self.rows].copy()
        self.here[:, _DISK_READ] += self.reading
        self.away = waiting.demand[self.rows].copy()
        self.away[:, _NETWORK_IN] += self.reading
        self.here_needs = np.where(self.here > 0, self.here, -np.inf)
        self.away_needs = np.where(self.away > 0, self.away, -np.inf)
        self.alive = np.ones(len(self.rows), dtype=np.bool_)
        self.dead = np.zeros(len(self.rows), dtype=np.bool_)

    def _inputs(self) -> None:
        """Sort classes by where they read, and keep back what shuffles will need of disks and links."""
        count, nodes = len(self.rows), len(self.free)
        self.inputs = [self.waiting.inputs[row] for row in self.rows.tolist()]
        self.local = np.zeros((nodes, count), dtype=np.int64)
        self.own = np.ones(count, dtype=np.bool_)
        wanted = np.zeros(nodes)
        for index, inputs in enumerate(self.inputs):
            if isinstance(inputs, Blocks):
                self.local[:, index] = inputs.local
                self.own[index] = False
            elif isinstance(inputs, Spread):
                self.own[index] = False
                wanted[inputs.nodes] += inputs.rates * self.left[index]
        self.waits: dict[int, Mask] = {}
        self.spread = np.array([isinstance(inputs, Spread) for inputs in self.inputs], dtype=np.bool_)
        rates = self.capacity[:, (_DISK_READ, _NETWORK_OUT)]
        kept = np.minimum(wanted[:, np.newaxis], self.policy.headroom * np.where(np.isfinite(rates), rates, 0.0))
        self.kept = np.floor(kept)

    def _sharing(self, carried: Carried) -> None:
        jobs, policy = self.waiting.jobs, self.policy
        limited = np.where(np.isfinite(self.capacity), self.capacity, 0.0)
        self.total = limited.sum(axis=0)
        self.total_per_unit = np.divide(1.0, self.total, out=np.zeros_like(self.total), where=self.total > 0)
        if policy.sharing == _SLOTS:
            memory = np.zeros_like(self.total)
            memory[_MEMORY] = self.total[_MEMORY]
            self.share = shares.dominant_shares(jobs.allocated, memory)
            self.total_per_unit = np.divide(1.0, memory, out=np.zeros_like(memory), where=memory > 0)
        else:
            self.share = shares.dominant_shares(jobs.allocated, self.total)
        self.used = jobs.allocated * self.total_per_unit
        self.wanting = np.bincount(self.job, weights=self.left, minlength=len(jobs.names))
        running = np.asarray((jobs.allocated > 0).any(axis=1))
        self.fair = shares.fair_shares(jobs.queue, jobs.weight, jobs.queue_weight, (self.wanting > 0) | running)
        self.deficit = np.array([carried.deficits.get(name, 0.0) for name in jobs.names])
        self.owed = shares.owed(self.share, self.fair)
        self._elect()

    def _elect(self) -> None:
        """Settle which jobs may be served now, and how little owed a job may be to stay among them."""
        self.least = -np.inf
        if self.policy.sharing == _DEFICIT:
            self.turn = shares.most_owed(self.deficit, self.wanting > 0, kappa=self.policy.kappa)
        elif self.policy.fairness > 0:
            self.turn = shares.first_in_line(self.owed, self.wanting > 0, fairness=self.policy.fairness)
            self.least = float(self.owed[self.turn].min(initial=np.inf))
        else:
            self.turn = self.wanting > 0

    # What matching asks for

    def nodes(self) -> Rows:
        """Return the open nodes where something fits, those with the most room first."""
        self.fits = self.rough_fits()
        some = np.flatnonzero(self.fits.any(axis=1) & ~self.closed)
        room = self.room()[some]
        return some[np.argsort(-room, kind="stable")]

    def best(self, node: int) -> tuple[int, float]:
        """Return the class [K] that scores highest on the node, and its score."""
        rows = self._fitting(node)
        if not len(rows):
            return _NOBODY
        turn = self.turn[self.job[rows]]
        if turn.any():  # else whoever fits: no room stays empty for those whose tasks do not fit there
            rows = rows[turn]
        if self.any_last and (last := self.last[rows]).any():
            rows = rows[last]
        aligned = self._aligned(node, rows)
        scores = self._combined(aligned, rows)
        place = int(scores.argmax())
        self._latest = float(scores[place]), float(aligned[place])
        return int(rows[place]), self._latest[0]

    def take(self, task_class: int, node: int) -> bool:
        """Place one task of the class [K] on the node."""
        inputs, task, source = self.inputs[task_class], -1, -1
        if isinstance(inputs, Blocks):
            task, source = self._block(inputs, task_class, node)
            possible = source >= 0
        else:
            possible = not isinstance(inputs, Spread) or self._spread(inputs, node)
        if not possible:
            self.dead[task_class], self.alive[task_class] = True, False
            return False
        if isinstance(inputs, Blocks):
            self._read_block(inputs, task_class, node, task, source)
        elif inputs is None:
            self.free[node, _DISK_READ] -= self.reading[task_class]
        row = int(self.rows[task_class])
        self.free[node] -= self.waiting.demand[row]
        self.touched[node] = True
        self._note(task_class, node, source)
        self._taken.append((row, node, task, source))
        self._count(task_class)
        return True

    def room(self) -> Floats:
        """Return how much each node has free [N], its dimensions added up as parts of its capacity."""
        free = np.where(self.per_unit > 0, self.free, 0.0) * self.per_unit
        return np.asarray(free.sum(axis=1))

    # Scores

    def rough_fits(self) -> Mask:
        """Return which classes fit on which nodes [N, K], reading there or, where they may, from elsewhere."""
        demand = self.waiting.demand[self.rows]
        fits = np.broadcast_to(self.alive, (len(self.free), len(self.rows))).copy()
        for dimension in np.flatnonzero((demand > 0).any(axis=0)).tolist():
            asked = demand[:, dimension]
            fits &= self.free[:, dimension, np.newaxis] >= np.where(asked > 0, asked, -np.inf)
        asked = np.where(self.here[:, _DISK_READ] > 0, self.here[:, _DISK_READ], -np.inf)
        near = (self.free[:, _DISK_READ] - self.kept[:, 0])[:, np.newaxis] >= asked
        near &= self.own | (self.local > 0)
        asked = np.where(self.away[:, _NETWORK_IN] > 0, self.away[:, _NETWORK_IN], -np.inf)
        lent = np.where(self.local > 0, self._lending()[:, np.newaxis], -np.inf).max(axis=0, initial=-np.inf)
        able = self.spread | (~self.own & (lent >= self.reading))
        if self.patient:  # nobody reads from elsewhere what could start beside its block now
            self.spared = ~self.own & ~self.spread & (fits & near).any(axis=0) & (self.reading > 0)
            able &= ~self.spared
        far = (self.free[:, _NETWORK_IN][:, np.newaxis] >= asked) & able
        self.near = near
        self.touched[:] = False
        return np.asarray(fits & (near | far))

    def _fitting(self, node: int) -> Rows:
        """Return the classes that fit on the node now; on one that something was taken of they are looked at again."""
        fits = self.fits[node]
        rows: Rows = (fits & self.alive).nonzero()[0]
        if not self.touched[node] or not len(rows):
            return rows
        self.touched[node] = False
        free = self.free[node]
        here = self.here_needs[rows]
        near = (self.own[rows] | (self.local[node, rows] > 0)) & (
            self.here[rows, _DISK_READ] <= max(free[_DISK_READ] - self.kept[node, 0], 0.0)
        )
        fit = (here <= free).all(axis=1) & near
        far = ~near & ~self.own[rows]
        if self.patient:
            far &= ~self.spared[rows]
        if far.any():
            fit |= far & (self.away_needs[rows] <= free).all(axis=1)
        self.near[node, rows] = near
        fits[rows] = fit
        still: Rows = rows[fit]
        return still

    def _aligned(self, node: int, rows: Rows) -> Floats:
        per_unit = self.per_unit[node]
        near = self.near[node, rows]
        takes = self.here[rows] if near.all() else np.where(near[:, np.newaxis], self.here[rows], self.away[rows])
        has = np.maximum(np.where(per_unit > 0, self.free[node], 0.0), 0.0) * per_unit
        scores = TASK_RULES[self.policy.rule](takes * per_unit, has)
        factor = remote_factor(~near & (self.reading[rows] > 0), penalty=self.policy.remote_penalty)
        return np.where(scores >= 0, scores * factor, scores / factor)

    def _combined(self, aligned: Floats, rows: Rows) -> Floats:
        """Return alignment - eps x remaining work, eps = m x mean(alignment) / mean(work) (Tetris, 3.3.2)."""
        policy, work = self.policy, self.work[rows]
        if not policy.packing:
            return -work
        if self.last[rows[0]] or policy.srtf == 0:
            return aligned
        mean = work.mean()
        return aligned if mean <= 0 else aligned - (policy.srtf * np.abs(aligned).mean() / mean) * work

    # Inputs

    def _block(self, inputs: Blocks, task_class: int, node: int) -> tuple[int, int]:
        """Return a waiting task and the node it reads from: this one if it can, else one with room; else (-1, -1)."""
        rate = self.reading[task_class]
        waits = self.waits.get(task_class, inputs.waiting)
        if self.local[node, task_class] > 0 and self.free[node, _DISK_READ] - self.kept[node, 0] >= rate:
            tasks = inputs.at(node)
            return int(tasks[waits[tasks].argmax()]), node
        room = np.where(self.local[:, task_class] > 0, self._lending(), -np.inf)
        room[node] = -np.inf
        source = int(room.argmax())
        if room[source] < rate or self.free[node, _NETWORK_IN] < rate:
            return -1, -1
        tasks = inputs.at(source)
        return int(tasks[waits[tasks].argmax()]), source

    def _lending(self) -> Floats:
        """Return how fast each node could still be read from elsewhere [N], leaving shuffles their part."""
        return np.asarray((self.free[:, (_DISK_READ, _NETWORK_OUT)] - self.kept).min(axis=1))

    def _read_block(self, inputs: Blocks, task_class: int, node: int, task: int, source: int) -> None:
        rate = self.reading[task_class]
        self.free[source, _DISK_READ] -= rate
        self.touched[source] = True
        if source != node:
            self.free[source, _NETWORK_OUT] -= rate
            self.free[node, _NETWORK_IN] -= rate
        if task_class not in self.waits:
            self.waits[task_class] = inputs.waiting.copy()
        self.waits[task_class][task] = False
        copies = inputs.copies[task]
        copies = copies[copies >= 0]
        self.local[copies, task_class] -= 1
        self.touched[copies] = True

    def _spread(self, inputs: Spread, node: int) -> bool:
        """Take a shuffle's rates at every source and its own link; False, and nothing taken, if one has no room."""
        nodes, rates = inputs.nodes, inputs.rates
        read, out = self.free[nodes, _DISK_READ], self.free[nodes, _NETWORK_OUT]
        sent, received = rates, float(rates.sum())
        place = int(np.searchsorted(nodes, node))
        if place < len(nodes) and nodes[place] == node:
            sent = rates.copy()
            received -= float(rates[place])
            sent[place] = 0.0
            out[place] = max(out[place], 0.0)
        if (read < rates).any() or (out < sent).any() or self.free[node, _NETWORK_IN] < received:
            return False
        self.free[nodes, _DISK_READ] -= rates
        self.free[nodes, _NETWORK_OUT] -= sent
        self.touched[nodes] = True
        self.free[node, _NETWORK_IN] -= received
        self.kept[nodes] = np.maximum(self.kept[nodes] - rates[:, np.newaxis], 0.0)
        return True

    # Accounts

    def _note(self, task_class: int, node: int, source: int) -> None:
        """Write down what made it the best; a starved one went without comparison."""
        remote = self.spread[task_class] or (source >= 0 and source != node)
        factor = 1.0 - self.policy.remote_penalty if remote else 1.0
        score, alignment = (0.0, 0.0) if self.starving else self._latest
        owed = float(self.owed[self.job[task_class]])
        last = bool(self.last[task_class])
        self._terms.append((score, alignment, factor, float(self.work[task_class]), owed, last, self.starving))

    def _count(self, task_class: int) -> None:
        """Count the task as given: to its class, to its job's share, to its deficit."""
        self.left[task_class] -= 1
        self.alive[task_class] = self.left[task_class] > 0
        job = int(self.job[task_class])
        self.wanting[job] -= 1
        taken = (self.away if self.spread[task_class] else self.here)[task_class] * self.total_per_unit
        self.used[job] += taken
        self.share[job] = self.used[job].max()
        if self.fair[job] > 0:
            self.owed[job] = (self.fair[job] - self.share[job]) / self.fair[job]
        if self.policy.sharing == _DEFICIT:
            self.deficit = shares.serve(self.deficit, self.fair, job, float(taken.max()))
            self._elect()
        elif self.owed[job] < self.least or self.wanting[job] <= 0:
            self._elect()

    def assignments(self) -> Assignments:
        """Return what was taken."""
        taken = np.array(self._taken, dtype=np.intp).reshape(-1, 4)
        return Assignments(taken[:, 0], taken[:, 1], taken[:, 2], taken[:, 3])

    def terms(self) -> Terms:
        """Return why."""
        terms = np.array(self._terms, dtype=np.float64).reshape(-1, 7)
        score, alignment, remote, work, owed, last, starved = terms.T
        return Terms(score, alignment, remote, work, owed, last > 0, starved > 0)


def _serve_starved(board: _Board, now: float, carried: Carried) -> dict[str, str]:
    """Give one task of each starved class a node at once, or reserve one; returns class name -> node name."""
    waiting, layout = board.waiting, board.snapshot.layout
    waited = now - waiting.since[board.rows]
    starved = np.flatnonzero(waited >= board.policy.starved_after)
    if not len(starved):
        return {}
    board.fits = board.rough_fits()
    most = max(1, int(board.policy.reservable * len(board.free)))
    reserved: dict[str, str] = {}
    for index in starved[np.argsort(-waited[starved], kind="stable")].tolist():
        name = waiting.names[int(board.rows[index])]
        node = layout.rows.get(carried.reserved.get(name, ""), -1)
        if _start_starved(board, index, node):
            continue
        if len(reserved) < most:
            node = node if node >= 0 and not board.closed[node] else _soonest(board, index, waiting.running)
            if node >= 0:
                board.closed[node] = True
                reserved[name] = layout.names[node]
    return reserved


def _start_starved(board: _Board, index: int, preferred: int) -> bool:
    """Place one task where it fits: on its reserved node, else on an open one with its block or the most room."""
    fits = np.flatnonzero(board.fits[:, index] & ~board.closed)
    room = board.room()[fits] + board.local[fits, index]
    order = fits[np.argsort(-room, kind="stable")].tolist()
    order = [node for node in (preferred,) if node in order] + [node for node in order if node != preferred]
    board.starving = True
    took = any(board.take(index, node) for node in order[:_SOURCES_TRIED])
    board.starving = False
    board.dead[index], board.alive[index] = False, board.left[index] > 0
    board.fits = board.rough_fits()
    return took


def _soonest(board: _Board, index: int, running: Running | None) -> int:
    """Return the open node that will have room for the class soonest, by the ends of what runs; -1 if none will."""
    demand = np.where(board.own[index], board.here[index], board.away[index])
    able = ((board.capacity >= demand) | (demand <= 0)).all(axis=1) & ~board.closed
    if running is None or not able.any():
        return int(able.argmax()) if able.any() else -1
    order = np.lexsort((running.ends_at, running.node))
    node, ends = running.node[order], running.ends_at[order]
    freed = np.cumsum(running.demand[order], axis=0)
    first = np.searchsorted(node, node, side="left")
    before = np.vstack((np.zeros(freed.shape[1]), freed))[first]
    enough = (board.free[node] + freed - before >= demand) | (demand <= 0)
    free_at = np.full(len(board.free), np.inf)
    then = np.flatnonzero(enough.all(axis=1))
    np.minimum.at(free_at, node[then], ends[then])
    free_at[~able] = np.inf
    return int(free_at.argmin()) if np.isfinite(free_at).any() else int(able.argmax())


def _held(board: _Board) -> dict[int, str]:
    """Return why tasks of a class still wait, by its row in `waiting`."""
    axis = board.snapshot.layout.axis
    return {int(board.rows[index]): _reason(board, index, axis) for index in np.flatnonzero(board.left > 0).tolist()}


def _reason(board: _Board, index: int, axis: Sequence[str]) -> str:
    demand = np.where(board.own[index], board.here[index], board.waiting.demand[board.rows[index]])
    if not len(board.free):
        return "there are no nodes"
    asks = demand > 0
    if not ((board.capacity >= demand) | ~asks).all(axis=1).any():
        short = (board.capacity < demand) & asks
        return f"no node is large enough: too little {axis[int(short.sum(axis=0).argmax())]} on every node"
    if board.dead[index]:
        return "the nodes that hold its input have no disk read or network out to spare"
    short = (board.free < demand) & asks
    if short.any(axis=1).all():
        return f"no node has enough free: mostly {axis[int(short.sum(axis=0).argmax())]} is short"
    if (short.any(axis=1) | board.closed).all():
        return "nodes with room are reserved for tasks that have waited too long"
    return "reading its input needs more disk read or network in than nodes with room have free"
