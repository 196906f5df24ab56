"""The queues that settings declare, and those that pods name, as a tree: weights, minimums, fair shares."""

from collections.abc import Iterator, Sequence, Set

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.queues import Queue
from extender.cluster.waiting import QueueGroups
from extender.policy.shares import queue_shares, scaled_minimums

UNDECLARED = "(undeclared)"
"""The queue above all queues that are not declared; no label can have this name."""


class QueueTree:
    """Which queue is above which. All queues that are not declared are below one queue beside the highest ones.

    Pods may name a queue that has others below it. These pods are then one more queue below it, of weight 1.
    """

    def __init__(self, queues: Sequence[Queue], undeclared_weight: float = 1.0) -> None:
        """Take the declared queues, and the weight of all others together, which these divide equally."""
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
        """Whether there is a queue whose jobs go in the order of their arrival."""
        return any(queue.fifo for queue in self.declared.values())

    def is_fifo(self, queue: str) -> bool:
        """Say whether the jobs of a queue go in the order of their arrival."""
        return queue in self.declared and self.declared[queue].fifo

    def minimum(self, queue: str) -> float:
        """Return the part of the cluster that a queue is sure of; scaled down where siblings declare more than 1."""
        return float(self._minimum.get(queue, 0.0))

    def chain(self, queue: str) -> Sequence[str]:
        """Return the queues above the pods of this one, the lowest first: itself too if it has others below it."""
        chain = [queue] if queue in self._parents else []
        above = self._parent(queue)
        while above:
            chain.append(above)
            above = self._parent(above)
        return chain

    def warnings(self) -> list[str]:
        """Return what an administrator should know of these settings: minimum shares that were scaled down."""
        return [
            f"queues: the minimum shares {_below(parent)} add up to more than 1 ({declared}); they count as {scaled}"
            for parent, declared, scaled in self._too_much()
        ]

    def _too_much(self) -> Iterator[tuple[str, str, str]]:
        """Yield the parents below which minimum shares are scaled down, as declared, and as they count."""
        for parent in sorted({queue.parent for queue in self.declared.values()}):
            children = [queue for queue in self.declared.values() if queue.parent == parent and queue.minimum > 0]
            if any(self.minimum(queue.name) < queue.minimum for queue in children):
                declared = ", ".join(f"{queue.name} {queue.minimum:g}" for queue in children)
                yield parent, declared, ", ".join(f"{queue.name} {self.minimum(queue.name):.3g}" for queue in children)

    def shares(self, queues: Sequence[str], claiming: Set[str]) -> tuple[Sequence[str], Rows, Floats]:
        """Return the active queues sorted by name, the row of each of `queues` among them, and their fair shares [Q].

        The active queues are those in `queues`, which may name one several times. Those that are not `claiming` any
        share have none.
        """
        active = sorted(set(queues))
        rows = {name: row for row, name in enumerate(active)}
        fair = self._fair(self.groups(active), np.array([name in claiming for name in active], dtype=np.bool_))
        return active, np.array([rows[name] for name in queues], dtype=np.intp), fair

    def groups(self, active: Sequence[str]) -> QueueGroups:
        """Return the active queues and those above them, as the planner takes them."""
        names = [*active, *sorted(self._above(active) - set(active))]
        places = {name: place for place, name in enumerate(names)}
        weight = [self._weight(name) for name in names]
        minimum = [self.minimum(name) for name in names]
        parent = [places.get(self._parent(name), -1) for name in names]
        leaf = list(range(len(active)))
        for place, name in enumerate(active):
            if name in self._parents:  # its own pods are one more queue below it, without a minimum
                leaf[place] = len(weight)
                weight.append(1.0)
                minimum.append(0.0)
                parent.append(place)
        rows = np.array(parent, dtype=np.intp), np.array(leaf, dtype=np.intp)
        return QueueGroups(np.array(weight, dtype=np.float64), np.array(minimum, dtype=np.float64), *rows)

    def _fair(self, groups: QueueGroups, claiming: Mask) -> Floats:
        """Return the fair share of each active queue [Q]."""
        active = np.zeros(len(groups.weight), dtype=np.bool_)
        active[groups.leaf] = claiming
        return np.asarray(queue_shares(groups.weight, groups.minimum, groups.parent, active)[groups.leaf])

    def _weight(self, name: str) -> float:
        if name == UNDECLARED:
            return self._undeclared_weight
        return self.declared[name].weight if name in self.declared else 1.0

    def _parent(self, name: str) -> str:
        if name in self.declared:
            return self.declared[name].parent
        return "" if name == UNDECLARED else UNDECLARED

    def _above(self, names: Sequence[str]) -> set[str]:
        """Return all queues above any of these."""
        queues: set[str] = set()
        for name in names:
            above = self._parent(name)
            while above and above not in queues:
                queues.add(above)
                above = self._parent(above)
        return queues


def _below(parent: str) -> str:
    return f"below {parent}" if parent else "of the highest queues"
