"""What tasks of a class have been measured to use: it stands for those that were not measured for long enough."""

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import DIMENSIONS, MEMORY
from extender.control.opportunistic.idle_room import RAMP_UP_SECONDS
from lab.sim.engine.use.sampling import Seen
from lab.sim.engine.use.tasks import Tasks

GAUGES: Mask = np.array([name == MEMORY for name in DIMENSIONS])
"""What is measured as it is at the moment, not as a mean over the window."""


def is_young(tasks: Tasks, seen: Seen) -> Mask:
    """Return which tasks [P] began so late that a sample does not say what they use (Tetris, 4.1)."""
    return np.asarray((tasks.began > seen.since) | (tasks.began + RAMP_UP_SECONDS > seen.at))


class ClassUse:
    """What the tasks of each stage [S, R] have used in the mean, once `least` of them were measured.

    Of a task [T] counts the mean of what it used while it ran, and of memory the most: that cannot be taken back. A
    task says so once it has run for a ramp-up, or has ended: before that, it may still grow.
    """

    def __init__(self, stages: int, tasks: int, width: int, *, least: int = 5) -> None:
        self._least = least
        self._sum, self._count = np.zeros((stages, width)), np.zeros(stages)
        self._newest, self._counted = np.zeros((tasks, width)), np.zeros((tasks, width))
        self._known, self._stage = np.zeros(tasks, dtype=np.bool_), np.full(tasks, -1, dtype=np.intp)

    def learn(self, task: Rows, stage: Rows, use: Floats, age: Floats) -> None:
        """Take in what all running tasks [P] of these stages were measured to use while they ran [P, R], at this age.

        Tasks that were there the last time and are not now have ended.
        """
        self._newest[task] = np.where(GAUGES, np.maximum(use, self._newest[task]), use)
        self._stage[task], before = stage, np.flatnonzero(self._stage >= 0)
        ended = before[~np.isin(before, task)]
        says = np.concatenate((task[age >= RAMP_UP_SECONDS], ended))
        np.add.at(self._sum, self._stage[says], self._newest[says] - self._counted[says])
        np.add.at(self._count, self._stage[says], np.where(self._known[says], 0.0, 1.0))
        self._counted[says], self._known[says] = self._newest[says], True
        self._stage[ended] = -1

    def expected(self, stage: Rows, demand: Floats) -> Floats:
        """Return what tasks [P] of these stages are expected to use; what nobody knows is their `demand` [P, R]."""
        known = self._count[stage] >= self._least
        mean = self._sum[stage] / np.maximum(self._count[stage], 1.0)[:, np.newaxis]
        return np.where(known[:, np.newaxis], mean, demand)
