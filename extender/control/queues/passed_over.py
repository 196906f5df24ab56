"""Which queues wait below their share while room that they could have used goes to queues above theirs.

By the promise of docs/guide/queues.md there are none. Each plan is checked for it here, from outside the planner. Pods
of gangs and pods with inputs are not checked: it is not simple to say which room these could have used. What is
reserved nobody else could have used.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats, Mask, Rows, fits
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Jobs, Waiting
from extender.planner import Plan
from extender.planner.plan import Reservation
from extender.policy.shares import dominant_shares

FORGOTTEN_SECONDS = 60.0
"""A queue is not passed over any more when nothing was given away before it for so long."""

_MOST_STARTS = 100
"""Of a plan with many starts, the first ones tell enough."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class PassedOverNow:
    """What one plan shows, by queue: which were `passed` over, and which wait `below` their share at all."""

    passed: Collection[str] = ()
    below: Collection[str] = ()


def passed_over_in(waiting: Waiting, plan: Plan, snapshot: Snapshot) -> PassedOverNow:
    """Return which queues a plan passes over, and which wait below their share after it.

    A queue waits below its share when it has a class with one more task of which it would still be within its share.
    Between queues of different parents it is the parents' shares that count.
    """
    queue, levels = waiting.jobs.queue[waiting.job], _Levels(waiting.jobs, snapshot.layout.total)
    assignments, free = plan.assignments, snapshot.free() - _reserved(waiting, plan.carried.reserved, snapshot.layout)
    # 1. Follow the plan start by start; note those by which a queue, or one above it, gets more than its share.
    starts_above_share: list[tuple[int, int, Mask]] = []
    for row, node in zip(assignments.task_class.tolist(), assignments.node.tolist(), strict=True):
        full = levels.full(int(queue[row]))
        if full.any() and len(starts_above_share) < _MOST_STARTS:
            starts_above_share.append((row, node, full))
        levels.give(int(queue[row]), waiting.demand[row])
        free[node] -= waiting.demand[row]
    # 2. After the plan, find the classes that wait and whose queues are below their shares.
    within = levels.within(queue, waiting.demand)
    started = np.bincount(assignments.task_class, minlength=len(queue))
    below = within[:, -1] & _alone(waiting) & (waiting.count > started)
    # 3. Of those, find the ones that could have used the room of a start that was noted.
    passed = np.zeros(len(queue), dtype=np.bool_)
    for row, node, full in starts_above_share:
        level = levels.part_from(int(queue[row]))[queue]
        first = below & (level >= 0) & full[level] & within[np.arange(len(queue)), level]
        passed |= first & _could(waiting, row, node, free[node] + waiting.demand[row])
    names = waiting.jobs.queue_names
    return PassedOverNow({names[row] for row in queue[passed].tolist()}, {names[row] for row in queue[below].tolist()})


class _Levels:
    """What is committed to queues [Q] and those above them, level by level [D]: the highest first, the queue last."""

    def __init__(self, jobs: Jobs, total: Floats) -> None:
        parent = np.full(len(jobs.queue_weight), -1) if jobs.groups is None else jobs.groups.parent
        leaf = np.arange(len(jobs.queue_weight)) if jobs.groups is None else jobs.groups.leaf
        paths = [_path(row, parent) for row in leaf.tolist()]
        deepest = max(map(len, paths), default=1)
        self._chains = np.array([path + [path[-1]] * (deepest - len(path)) for path in paths], dtype=np.intp)
        self._paths, self._total = paths, total
        committed = np.zeros((len(paths), len(total)))
        np.add.at(committed, jobs.queue, jobs.allocated)
        self._committed = np.zeros((len(parent), len(total)))
        self._fair = np.zeros(len(parent))
        for queue, (path, fair) in enumerate(zip(paths, jobs.queue_weight.tolist(), strict=True)):
            self.give(queue, committed[queue])
            self._fair[path] += fair

    def give(self, queue: int, amount: Floats) -> None:
        """Count as committed to a queue, and to those above it [R]."""
        self._committed[self._paths[queue]] += amount

    def full(self, queue: int) -> Mask:
        """Return at which levels, on the way down to it, a queue has its share [D]."""
        chain = self._chains[queue]
        return np.asarray(dominant_shares(self._committed[chain], self._total) >= self._fair[chain] - _ROUNDING)

    def within(self, queue: Rows, demand: Floats) -> Mask:
        """Return at which levels classes of these queues would be within their shares with one more task [C, D]."""
        chains = self._chains[queue]
        after = dominant_shares(self._committed[chains] + demand[:, np.newaxis], self._total)
        return np.asarray(after <= self._fair[chains] + _ROUNDING)

    def part_from(self, queue: int) -> Rows:
        """Return the first level at which the way to each queue is another than to this one [Q]; -1 for itself."""
        differs = self._chains != self._chains[queue]
        return np.where(differs.any(axis=1), differs.argmax(axis=1), -1)


def _path(row: int, parent: Rows) -> list[int]:
    """Return the rows from the highest queue above a row down to it."""
    path = [row]
    while parent[path[0]] >= 0:
        path.insert(0, int(parent[path[0]]))
    return path


def _reserved(waiting: Waiting, reserved: Mapping[str, Reservation], layout: Layout) -> Floats:
    """Return what is kept on each node for classes that wait [N, R]."""
    rows = {name: row for row, name in enumerate(waiting.names)}
    kept = np.zeros(layout.capacity.shape)
    for reservation in reserved.values():
        for name, node, tasks in reservation.room:
            if name in rows and node in layout.rows:
                kept[layout.rows[node]] += tasks * waiting.demand[rows[name]]
    return kept


def _alone(waiting: Waiting) -> Mask:
    """Return the classes whose pods start alone and read no input [C]."""
    alone = np.array([inputs is None for inputs in waiting.inputs], dtype=np.bool_)
    return alone if waiting.gang is None else np.asarray(alone & (waiting.gang < 0))


def _could(waiting: Waiting, taker: int, node: int, room: Floats) -> Mask:
    """Return which classes could have used this room of a node [R] that the class `taker` got [C]."""
    could = fits(room, waiting.demand)
    if waiting.barred is not None:
        could &= ~waiting.barred[:, node]
    if waiting.priority is not None:
        could &= waiting.priority >= waiting.priority[taker]
    if waiting.preferred is not None:  # such a class may wait for a node that it prefers
        could &= ~(waiting.preferred > 0).any(axis=1)
    return np.asarray(could)


@dataclass(slots=True)
class PassedOver:
    """For how long queues have been passed over, from the first time to the latest."""

    _first: dict[str, float] = field(default_factory=dict)
    _latest: dict[str, float] = field(default_factory=dict)

    def note(self, plan: PassedOverNow, now: float) -> None:
        """Take in what a plan shows, at `now` seconds of any clock."""
        for name in list(self._first):
            if name not in plan.below or not 0 <= now - self._latest[name] <= FORGOTTEN_SECONDS:
                del self._first[name], self._latest[name]
        for name in plan.passed:
            self._first.setdefault(name, now)
            self._latest[name] = now

    def seconds(self) -> Mapping[str, float]:
        """Return for how long each queue that is passed over has been so."""
        return {name: self._latest.get(name, first) - first for name, first in list(self._first.items())}
