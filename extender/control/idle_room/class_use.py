"""What pods of a class were measured to use: it stands for those that no measurement holds whole yet (Tetris, 4.1).

P pods, R resources: the six that are measured. Pods and classes are rows that the caller gives out.
"""

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import DIMENSIONS, MEMORY
from extender.policy.slack import RAMP_UP_SECONDS

GAUGES: Mask = np.array([name == MEMORY for name in DIMENSIONS])
"""What is measured as it is at the moment, not as a mean over the window [R]."""

LEAST_PODS = 5
"""A class is known once so many of its pods were measured."""


def while_running(use: Floats, age: Floats, window: float, unseen: float = 0.0) -> Floats:
    """Return what pods [P, R] used while they ran, of their mean `use` over a `window` of seconds before the sample.

    A pod that was younger than the window at its sample (`age` [P], in seconds) ran for a part of it only. The first
    `unseen` seconds of such a pod may not be in the mean: then all of it counts as used in what is left.
    """
    seen = np.where(age >= window, window, age - unseen)
    times = np.where(seen > 0, window / np.where(seen > 0, seen, 1.0), 1.0)
    return np.where(GAUGES, use, use * np.maximum(times, 1.0)[:, np.newaxis])


class ClassUse:
    """The mean use of the pods of each class. One thread.

    A pod counts with its latest use, a mean over its window, and for memory with the most that it used: memory cannot
    be taken back. It counts once it has run for a ramp-up, or has ended: before that its use may still grow.
    """

    def __init__(self, *, least: int = LEAST_PODS) -> None:
        width = len(DIMENSIONS)
        self._least = least
        self._sum, self._count = np.zeros((0, width)), np.zeros(0)
        self._newest, self._counted = np.zeros((0, width)), np.zeros((0, width))
        self._known, self._class_of = np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.intp)

    @property
    def pods(self) -> Rows:
        """The pods that were measured and have not ended."""
        return np.flatnonzero(self._class_of >= 0)

    def learn(self, pod: Rows, class_of: Rows, use: Floats, age: Floats) -> None:
        """Take in what pods [P] of these classes [P] used while they ran [P, R], at this age in seconds [P]."""
        if not len(pod):
            return
        self._grow(int(pod.max()) + 1, int(class_of.max()) + 1)
        self._leave(pod[(self._class_of[pod] >= 0) & (self._class_of[pod] != class_of)])
        newest = self._newest[pod]
        self._newest[pod] = np.where(GAUGES, np.maximum(use, newest), use)
        self._class_of[pod] = class_of
        self._say(pod[age >= RAMP_UP_SECONDS])

    def end(self, pod: Rows) -> None:
        """Note that pods [P] have ended, each of which was measured. Their rows may be given out again."""
        if len(pod):
            self._say(pod)
            self._drop(pod)

    def forget(self, class_of: Rows) -> None:
        """Forget classes [K], and the pods of them. Their rows may be given out again."""
        class_of = class_of[class_of < len(self._count)]
        self._sum[class_of], self._count[class_of] = 0.0, 0.0
        self._drop(np.flatnonzero(np.isin(self._class_of, class_of)))

    def expected(self, class_of: Rows, demand: Floats) -> Floats:
        """Return what pods [P] of these classes (-1: of none) are expected to use; what nobody knows: `demand` [P, R].

        A demand may have more resources than are measured: they are as demanded.
        """
        use = demand.copy()
        if not len(self._count):
            return use
        row = np.where(class_of < len(self._count), class_of, -1)
        learned = np.flatnonzero((row >= 0) & (self._count[row] >= self._least))
        use[learned, : len(DIMENSIONS)] = self._sum[row[learned]] / self._count[row[learned], np.newaxis]
        return use

    def _leave(self, pod: Rows) -> None:
        """Take pods out of their classes, as they are of others by now: they were resized, or their choice changed."""
        counted = pod[self._known[pod]]
        np.subtract.at(self._sum, self._class_of[counted], self._counted[counted])
        np.subtract.at(self._count, self._class_of[counted], 1.0)
        self._drop(pod)

    def _say(self, pod: Rows) -> None:
        """Count what is known of these pods in their classes, instead of what was known before."""
        pod = pod[self._class_of[pod] >= 0]  # the others' classes were forgotten
        class_of = self._class_of[pod]
        np.add.at(self._sum, class_of, self._newest[pod] - self._counted[pod])
        np.add.at(self._count, class_of, np.where(self._known[pod], 0.0, 1.0))
        self._counted[pod], self._known[pod] = self._newest[pod], True

    def _drop(self, pod: Rows) -> None:
        self._newest[pod], self._counted[pod] = 0.0, 0.0
        self._known[pod], self._class_of[pod] = False, -1

    def _grow(self, pods: int, classes: int) -> None:
        """Make room for so many pods and classes, twice as much as there was at least."""
        if pods > len(self._known):
            more = max(pods, 2 * len(self._known)) - len(self._known)
            self._newest, self._counted = _longer(self._newest, more), _longer(self._counted, more)
            self._known = np.concatenate((self._known, np.zeros(more, dtype=np.bool_)))
            self._class_of = np.concatenate((self._class_of, np.full(more, -1, dtype=np.intp)))
        if classes > len(self._count):
            more = max(classes, 2 * len(self._count)) - len(self._count)
            self._sum = _longer(self._sum, more)
            self._count = np.concatenate((self._count, np.zeros(more)))


def _longer(array: Floats, rows: int) -> Floats:
    return np.concatenate((array, np.zeros((rows, array.shape[1]))))
