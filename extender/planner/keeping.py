"""Room kept for queues below their part of the cluster: others that have theirs leave it to them.

Where nothing of the queue whose turn it is fits on a node, others may have the room. If that were all, small tasks of
everybody would take for ever what a queue's large tasks, or those whose input few nodes have, wait for. So a queue that
has its part of the cluster gets no more while tasks wait with which another one would still be within its own. A part
is the fair share as far as a queue wants that much (max-min): nothing is kept that nobody asked for.

Room is kept for tasks that some node could take if it were empty, and for at most `starved_after` seconds since one of
their class has started: from then on nodes are reserved for them (`starvation`). Nothing is kept for gangs.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from extender.policy.shares import as_far_as_wanted

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

_ROUNDING = 1e-9


class Keeping:
    """Queues [Q] and their classes [C]; those that are `full` [Q] get no more for now."""

    def __init__(self, queue: Rows, takes: Floats, left: Counts, fair: Floats, used: Floats) -> None:
        """Take each class's `queue` [C], what its tasks take [C, R], how many are `left` [C]; fair shares [Q].

        `used` [Q, R] is what queues have, in parts of the cluster like what tasks take. It goes on to change.
        """
        self._queue, self._takes, self._left, self._used = queue, takes, left.copy(), used
        wanted = used.copy()
        np.add.at(wanted, queue, takes * left[:, np.newaxis])
        self._part = as_far_as_wanted(fair, wanted.max(axis=1, initial=0.0))
        self._worth: Mask = np.zeros(len(queue), dtype=np.bool_)
        self._could: Callable[[int], bool] = lambda _: False
        self._known: dict[int, bool] = {}
        self.full: Mask = np.zeros(len(fair), dtype=np.bool_)

    def keep_for(self, worth: Mask, could: Callable[[int], bool]) -> None:
        """Keep room for these classes [C] alone, of them for those that `could` start if all nodes were empty."""
        self._worth, self._could, self._known = worth, could, {}

    def count(self, task_class: int) -> bool:
        """Count a task as given to its queue, which has it by now; say whether other queues are full by that."""
        self._left[task_class] -= 1
        return bool((self._now_full() != self.full).any())

    def settle(self) -> None:
        """Settle which queues are full: they have their parts, and another one is owed some of its own."""
        self.full = self._now_full()

    def kept_for(self) -> Rows:
        """Return the classes for which room is kept."""
        return self._owed() if self.full.any() else np.zeros(0, dtype=np.intp)

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is counted from now on."""
        left = self._left.copy()

        def undo() -> None:
            self._left[:] = left

        return undo

    def _now_full(self) -> Mask:
        full: Mask = self._used.max(axis=1, initial=0.0) >= self._part - _ROUNDING
        if full.any() and not full.all() and any(self._could_start(row) for row in self._owed().tolist()):
            return full
        return np.zeros(len(full), dtype=np.bool_)

    def _owed(self) -> Rows:
        """Return the classes that wait, with a task of which their queues would still be within their parts."""
        rows = (self._worth & (self._left > 0)).nonzero()[0]
        queue = self._queue[rows]
        after = (self._used[queue] + self._takes[rows]).max(axis=1, initial=0.0)
        return np.asarray(rows[after <= self._part[queue] + _ROUNDING])

    def _could_start(self, task_class: int) -> bool:
        if task_class not in self._known:
            self._known[task_class] = self._could(task_class)
        return self._known[task_class]
