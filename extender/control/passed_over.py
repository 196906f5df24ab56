"""Which queues wait below their share while room that they could have used goes to queues above theirs.

By the promise of docs/queues.md there is none. Whether it is kept is looked at from outside the planner, plan by plan.
Not looked at are pods of gangs and pods with inputs: whether these could have used some room takes more to say.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.cluster.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner import Assignments

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

FORGOTTEN_SECONDS = 60.0
"""A queue that nothing was given away before for so long is not passed over any more."""

_MOST_LOOKED_AT = 100
"""Of a plan that goes on for long, its first starts say enough."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Seen:
    """What one plan shows, by queue: who was `passed` over, and who waits `below` its share at all."""

    passed: Collection[str] = ()
    below: Collection[str] = ()


def seen_in(waiting: Waiting, assignments: Assignments, snapshot: Snapshot) -> Seen:
    """Return which queues a plan passes over, and which wait below their share after it.

    One that waits below its share has a class with one more task of which it would still be within that.
    """
    jobs, layout = waiting.jobs, snapshot.layout
    total = np.where((layout.total > 0) & np.isfinite(layout.total), layout.total, np.inf)
    takes = waiting.demand / total
    queue = jobs.queue[waiting.job]
    held = np.zeros((len(jobs.queue_names), takes.shape[1]))
    np.add.at(held, jobs.queue, jobs.allocated / total)
    free = _free(snapshot)
    full: list[tuple[int, int, int]] = []
    given = zip(assignments.task_class.tolist(), assignments.node.tolist(), strict=True)
    for row, node in given:
        taker = int(queue[row])
        if held[taker].max() >= jobs.queue_weight[taker] - _ROUNDING:
            full.append((row, node, taker))
        held[taker] += takes[row]
        free[node] -= waiting.demand[row]
    rows = _below(waiting, queue, held, takes, np.bincount(assignments.task_class, minlength=len(queue)))
    passed: set[int] = set()
    for row, node, taker in full[:_MOST_LOOKED_AT]:
        able = rows & (queue != taker) & _could(waiting, row, node, free[node] + waiting.demand[row])
        passed |= set(queue[able].tolist())
    names = jobs.queue_names
    return Seen({names[it] for it in passed}, {names[it] for it in set(queue[rows].tolist())})


def _free(snapshot: Snapshot) -> Floats:
    """Return what nodes have free, without what is on its way to them [N, R]."""
    free = snapshot.layout.capacity - snapshot.allocated - snapshot.in_flight
    nominated = snapshot.nominations.load(snapshot.allocated.shape, priority=-(2**31), uid="")
    return np.array(free if nominated is None else free - nominated)


def _below(waiting: Waiting, queue: Rows, held: Floats, takes: Floats, given: Rows) -> Mask:
    """Return the classes of which tasks still wait, with one more of which its queue would be within its share [C]."""
    within = (held[queue] + takes).max(axis=1) <= waiting.jobs.queue_weight[queue] + _ROUNDING
    alone = np.array([it is None for it in waiting.inputs], dtype=np.bool_)
    if waiting.gang is not None:
        alone &= waiting.gang < 0
    return np.asarray(within & alone & (waiting.count > given))


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

    def note(self, seen: Seen, now: float) -> None:
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
