"""Which tasks go to many nodes rather than to few: those whose output a later stage shuffles.

Filling one node after the other puts a small stage on one or two of them, and then all who shuffle its output wait for
their disks. Where a disk is faster than the node's link, that is worth it: a task that runs beside the output reads it
faster than links could carry it.
"""

from collections import Counter
from collections.abc import Sequence

from extender.arrays import Counts, Mask
from extender.cluster.resources import DISK_READ_INDEX, NETWORK_OUT_INDEX
from extender.planner.prepared import Prepared


class Spreading:
    """Counts the starts of `shuffled` classes [C] on nodes whose disk is at most as fast as their link.

    No more than its equal part of a class is to start on such a node in one matching. `held_back`: a class was left out
    on a node for that since the matching began, and may go on in another one.
    """

    def __init__(self, classes: Prepared, shuffled: Mask) -> None:
        disk, link = classes.capacity[DISK_READ_INDEX], classes.capacity[NETWORK_OUT_INDEX]
        self._shuffled, self._slow_disk = shuffled.tolist(), (disk <= link).tolist()
        self._left: Sequence[int] = ()
        self._nodes = 0
        self._started: Counter[tuple[int, int]] = Counter()
        self.held_back = False

    def begin(self, left: Counts, nodes: int) -> None:
        """Begin a matching of what is `left` [C] with so many nodes."""
        self._left, self._nodes, self.held_back = left.tolist(), nodes, False
        self._started.clear()

    def count_start(self, task_class: int, node: int) -> bool:
        """Count a start of the class on the node, and say whether no other is to follow it there."""
        if not (self._shuffled[task_class] and self._slow_disk[node]):
            return False
        self._started[task_class, node] += 1
        enough = self._started[task_class, node] * self._nodes >= self._left[task_class]
        self.held_back |= enough
        return enough
