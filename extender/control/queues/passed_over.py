"""Which queues wait below their share while room that they could have used goes to queues above theirs.

By the promise of docs/guide/queues.md there is none. Whether it is kept is looked at from outside the planner, plan by
plan.
Not looked at are pods of gangs and pods with inputs: whether these could have used some room takes more to say.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Jobs, Waiting
from extender.planner import Assignments

FORGOTTEN_SECONDS = 60.0
"""A queue that nothing was given away before for so long is not passed over any more."""

_MOST_LOOKED_AT = 100
"""Of a plan that goes on for long, its first starts say enough."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class PassedOverNow:
    """What one plan shows, by queue: who was `passed` over, and who waits `below` its share at all."""

    passed: Collection[str] = ()
    below: Collection[str] = ()


def seen_in(waiting: Waiting, assignments: Assignments, snapshot: Snapshot) -> PassedOverNow:
    """Return which queues a plan passes over, and which wait below their share after it.

    One that waits below its share has a class with one more task of which it would still be within that. Between queues
    of different parents it is their parents' shares that count.
    """
    total = snapshot.layout.total
    takes = waiting.demand / np.where((total > 0) & np.isfinite(total), total, np.inf)
    queue, levels = waiting.jobs.queue[waiting.job], _Levels(waiting.jobs, total)
    free = _free(snapshot)
    given: list[tuple[int, int, Mask]] = []
    for row, node in zip(assignments.task_class.tolist(), assignments.node.tolist(), strict=True):
        full = levels.full(int(queue[row]))
        if full.any() and len(given) < _MOST_LOOKED_AT:
            given.append((row, node, full))
        levels.give(int(queue[row]), takes[row])
        free[node] -= waiting.demand[row]
    within = levels.within(queue, takes)
    started = np.bincount(assignments.task_class, minlength=len(queue))
    rows = within[:, -1] & _alone(waiting) & (waiting.count > started)
    passed = np.zeros(len(queue), dtype=np.bool_)
    for row, node, full in given:
        parts = levels.part_from(int(queue[row]))[queue]
        first = rows & (parts >= 0) & full[parts] & within[np.arange(len(queue)), parts]
        passed |= first & _could(waiting, row, node, free[node] + waiting.demand[row])
    names = waiting.jobs.queue_names
    return PassedOverNow({names[it] for it in queue[passed].tolist()}, {names[it] for it in queue[rows].tolist()})


class _Levels:
    """What queues [Q] and those above them hold, level by level [D], the highest first, the queue itself last."""

    def __init__(self, jobs: Jobs, total: Floats) -> None:
        parent = np.full(len(jobs.queue_weight), -1) if jobs.groups is None else jobs.groups.parent
        leaf = np.arange(len(jobs.queue_weight)) if jobs.groups is None else jobs.groups.leaf
        paths = [_path(row, parent) for row in leaf.tolist()]
        deepest = max(map(len, paths), default=1)
        self._chains = np.array([path + [path[-1]] * (deepest - len(path)) for path in paths], dtype=np.intp)
        self._paths = paths
        held = np.zeros((len(paths), len(total)))
        np.add.at(held, jobs.queue, jobs.allocated / np.where((total > 0) & np.isfinite(total), total, np.inf))
        self._held = np.zeros((len(parent), len(total)))
        self._fair = np.zeros(len(parent))
        for queue, (path, fair) in enumerate(zip(paths, jobs.queue_weight.tolist(), strict=True)):
            self.give(queue, held[queue])
            self._fair[path] += fair

    def give(self, queue: int, amount: Floats) -> None:
        """Count as held by a queue, and by those above it [R]."""
        self._held[self._paths[queue]] += amount

    def full(self, queue: int) -> Mask:
        """Return where on its way down to it a queue has its share [D]."""
        chain = self._chains[queue]
        return np.asarray(self._held[chain].max(axis=1) >= self._fair[chain] - _ROUNDING)

    def within(self, queue: Rows, takes: Floats) -> Mask:
        """Return where classes of these queues would be within their shares with one more task [C, D]."""
        chains = self._chains[queue]
        return np.asarray((self._held[chains] + takes[:, np.newaxis]).max(axis=2) <= self._fair[chains] + _ROUNDING)

    def part_from(self, queue: int) -> Rows:
        """Return at which level each queue is another than this one's [Q]; -1 for itself."""
        differs = self._chains != self._chains[queue]
        return np.where(differs.any(axis=1), differs.argmax(axis=1), -1)


def _path(row: int, parent: Rows) -> list[int]:
    path = [row]
    while parent[path[0]] >= 0:
        path.insert(0, int(parent[path[0]]))
    return path


def _free(snapshot: Snapshot) -> Floats:
    """Return what nodes have free, without what is on its way to them [N, R]."""
    free = snapshot.layout.capacity - snapshot.allocated - snapshot.in_flight
    nominated = snapshot.nominations.load(snapshot.allocated.shape, priority=-(2**31), uid="")
    return np.array(free if nominated is None else free - nominated)


def _alone(waiting: Waiting) -> Mask:
    """Return the classes whose pods start alone and read nothing [C]."""
    alone = np.array([it is None for it in waiting.inputs], dtype=np.bool_)
    return alone if waiting.gang is None else np.asarray(alone & (waiting.gang < 0))


def _could(waiting: Waiting, taker: int, node: int, room: Floats) -> Mask:
    """Return which classes could have used this room of a node that another one took [C]."""
    could = ((waiting.demand <= room) | (waiting.demand <= 0)).all(axis=1)
    if waiting.barred is not None:
        could &= ~waiting.barred[:, node]
    if waiting.priority is not None:
        could &= waiting.priority >= waiting.priority[taker]
    if waiting.preferred is not None:  # it may wait for a node that it likes better
        could &= ~(waiting.preferred > 0).any(axis=1)
    return np.asarray(could)


@dataclass(slots=True)
class PassedOver:
    """For how long queues have been passed over, from the first time to the latest."""

    _first: dict[str, float] = field(default_factory=dict)
    _latest: dict[str, float] = field(default_factory=dict)

    def note(self, seen: PassedOverNow, now: float) -> None:
        """Take in what a plan shows, at `now` seconds of any clock."""
        for name in list(self._first):
            if name not in seen.below or not 0 <= now - self._latest[name] <= FORGOTTEN_SECONDS:
                del self._first[name], self._latest[name]
        for name in seen.passed:
            self._first.setdefault(name, now)
            self._latest[name] = now

    def seconds(self) -> Mapping[str, float]:
        """Return for how long each queue has been passed over that is."""
        return {name: self._latest[name] - first for name, first in list(self._first.items())}
