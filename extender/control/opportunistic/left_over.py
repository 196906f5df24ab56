"""What the second pass has left waiting, and the idle room that it went by: for who explains why a pod stays held."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.ledger.layout import Layout
from extender.cluster.waiting import Waiting
from extender.planner.plan import Assignments


@dataclass(frozen=True, slots=True)
class LeftOver:
    """The classes that wait and may be opportunistic, by name, `at` seconds since the epoch.

    A pod of each needs `demand` [C, R], and may not use nodes that are `barred` [C, N]. `room` is the idle room before
    the pass [N, R], None: nothing is measured. A node has none while something of it is `unmeasured` [N, D].
    """

    layout: Layout
    names: Sequence[str]
    demand: Floats
    barred: Mask
    room: Floats | None
    at: float
    unmeasured: Mask


def left_over(
    waiting: Waiting,
    assignments: Assignments,
    may: Mask,
    layout: Layout,
    room: Floats | None,
    now: float,
    *,
    unmeasured: Mask,
) -> LeftOver:
    """Return what the `assignments` of a second pass leave of what it was given; only classes that `may` [C]."""
    count = waiting.count - np.bincount(assignments.task_class, minlength=len(waiting.count))
    able = may & (count > 0)
    if waiting.gang is not None:  # gangs are never opportunistic
        able &= waiting.gang < 0
    rows = able.nonzero()[0]
    barred = (
        np.zeros((len(rows), len(layout.names)), dtype=np.bool_) if waiting.barred is None else waiting.barred[rows]
    )
    names = [waiting.names[row] for row in rows.tolist()]
    return LeftOver(layout, names, waiting.demand[rows], barred, room, now, unmeasured)
