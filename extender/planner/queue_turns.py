"""Which queues may be served now, where there are several: those that have no more than their part of what all have.

The knob of Tetris (3.4) leaves out a part of the groups, which says little of two or three queues, and nothing of a
queue of many small jobs: each of them has nothing, so that all stand first in line. So between queues it is the
proportion that counts, as in DRF's progressive filling; between the jobs of those queues, the knob.
"""

import numpy as np
from numpy.typing import NDArray

from extender.cluster.waiting import Jobs
from extender.planner.keeping import Keeping
from extender.policy import shares

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]


class QueueTurns:
    """The queues [Q] of jobs [J]; `used` [J, R] is what jobs have, in parts of the cluster.

    `part` [Q] is what each may have until its turn is over.
    """

    def __init__(self, jobs: Jobs, used: Floats, active: Mask) -> None:
        self._queue, self._of = jobs.queue, jobs.queue.tolist()
        queues = len(jobs.queue_weight)
        there = np.bincount(jobs.queue, weights=active, minlength=queues) > 0
        self.several = int(there.sum()) > 1
        self._fair = np.where(there, jobs.queue_weight, 0.0)
        self._used = np.zeros((queues, used.shape[1]))
        if self.several:
            np.add.at(self._used, jobs.queue, used)
        self.part = np.full(queues, np.inf)

    def jobs(self, wanting: Mask) -> Mask:
        """Return those of the jobs that want something [J] whose queue may be served now."""
        if not self.several:
            return wanting
        queues = np.bincount(self._queue, weights=wanting, minlength=len(self._fair)) > 0
        turn, self.part = shares.in_proportion(self._used.max(axis=1, initial=0.0), self._fair, queues)
        return np.asarray(wanting & turn[self._queue])

    def count(self, job: int, takes: Floats) -> bool:
        """Count a task as given to a job; say whether its queue has more by now than its part was."""
        if not self.several:
            return False
        queue = self._of[job]
        used = self._used[queue]
        used += takes
        return bool(used.max() > self.part[queue])

    def keeping(self, job: Rows, takes: Floats, left: Counts) -> Keeping:
        """Return who keeps room for queues below their part; of each class its queue, what one takes, and how many."""
        return Keeping(self._queue[job], takes, left, self._fair, self._used)

    def used(self) -> Floats:
        """Return a copy of what queues have."""
        return self._used.copy()

    def restore(self, used: Floats) -> None:
        """Go back to what queues had."""
        self._used[:] = used
