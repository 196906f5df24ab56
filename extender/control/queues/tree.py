"""The queues that settings declare and those that pods name, as a tree with shares."""

from collections.abc import Iterator, Sequence

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.queues import Queue
from extender.cluster.waiting import QueueGroups
from extender.policy.shares import queue_shares, scaled_minimums

UNDECLARED = "(undeclared)"
"""What stands above all queues that nobody declared: no label can name it."""


class QueueTree:
    """Who is above whom. The queues that nobody declared stand together beside the highest ones, as one of them.

    Pods may name a queue that has others below it: they are one more queue below it then, of weight 1.
    """

    def __init__(self, queues: Sequence[Queue], undeclared_weight: float = 1.0) -> None:
        """Take the declared queues, and the weight of all others together; each of those has the same part of it."""
        self.declared = {queue.name: queue for queue in queues}
        self._undeclared_weight = undeclared_weight
        self._parents = {UNDECLARED, *(queue.parent for queue in queues if queue.parent)}
        minimum = np.array([queue.minimum for queue in queues])
        row = {queue.name: index for index, queue in enumerate(queues)}
        parent = np.array([row.get(queue.parent, -1) for queue in queues], dtype=np.intp)
        scaled, self.scaled_down = scaled_minimums(minimum, parent)
        self._minimum = dict(zip(row, scaled.tolist(), strict=True))

    @property
    def any_fifo(self) -> bool:
        """Whether jobs of any queue go in the order of their arrival."""
        return any(queue.fifo for queue in self.declared.values())

    def is_fifo(self, queue: str) -> bool:
        """Say whether jobs go in the order of their arrival there."""
        return queue in self.declared and self.declared[queue].fifo

    def minimum(self, queue: str) -> float:
        """Return the part of the cluster that a queue is sure of."""
        return float(self._minimum.get(queue, 0.0))

    def chain(self, queue: str) -> Sequence[str]:
        """Return the queues above this one, the lowest first; for pods of a queue with others below it, itself too."""
        found = [queue] if queue in self._parents else []
        above = self._parent(queue)
        while above:
            found.append(above)
            above = self._parent(above)
        return found

    def warnings(self) -> list[str]:
        """Return what an administrator should know of these settings: minimum shares that were scaled down."""
        return [
            f"queues: the minimum shares {_below(parent)} add up to more than 1 ({told}); they count as {counted}"
            for parent, told, counted in self._too_much()
        ]

    def _too_much(self) -> Iterator[tuple[str, str, str]]:
        """Yield the parents below which minimum shares are scaled down, as declared, and as they count."""
        for parent in sorted({queue.parent for queue in self.declared.values()}):
            mine = [it for it in self.declared.values() if it.parent == parent and it.minimum > 0]
            if any(self.minimum(it.name) < it.minimum for it in mine):
                told = ", ".join(f"{it.name} {it.minimum:g}" for it in mine)
                yield parent, told, ", ".join(f"{it.name} {self.minimum(it.name):.3g}" for it in mine)

    def shares(self, of: Sequence[str]) -> tuple[Sequence[str], Rows, Floats]:
        """Return the queues that are active, the row of each of these among them, and their fair shares [Q]."""
        active = sorted(set(of))
        rows = {name: row for row, name in enumerate(active)}
        share = self._fair(self.groups(active))
        return active, np.array([rows[name] for name in of], dtype=np.intp), share

    def groups(self, active: Sequence[str]) -> QueueGroups:
        """Return these queues, all of which have pods, and those above them."""
        names = [*active, *sorted(self._above(active) - set(active))]
        places = {name: place for place, name in enumerate(names)}
        weight = [self._weight(name) for name in names]
        minimum = [self.minimum(name) for name in names]
        parent = [places.get(self._parent(name), -1) for name in names]
        leaf = list(range(len(active)))
        for place, name in enumerate(active):
            if name in self._parents:  # its own pods are one more queue below it
                leaf[place] = len(weight)
                weight.append(1.0)
                minimum.append(0.0)
                parent.append(place)
        rows = np.array(parent, dtype=np.intp), np.array(leaf, dtype=np.intp)
        return QueueGroups(np.array(weight, dtype=np.float64), np.array(minimum, dtype=np.float64), *rows)

    def _fair(self, groups: QueueGroups) -> Floats:
        """Return the fair share of each queue that has pods."""
        works = np.zeros(len(groups.weight), dtype=np.bool_)
        works[groups.leaf] = True
        return np.asarray(queue_shares(groups.weight, groups.minimum, groups.parent, works)[groups.leaf])

    def _weight(self, name: str) -> float:
        if name == UNDECLARED:
            return self._undeclared_weight
        return self.declared[name].weight if name in self.declared else 1.0

    def _parent(self, name: str) -> str:
        if name in self.declared:
            return self.declared[name].parent
        return "" if name == UNDECLARED else UNDECLARED

    def _above(self, names: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for name in names:
            above = self._parent(name)
            while above and above not in found:
                found.add(above)
                above = self._parent(above)
        return found


def _below(parent: str) -> str:
    return f"below {parent}" if parent else "of the highest queues"
