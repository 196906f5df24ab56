"""What is promised while a plan is made: which task of a class goes to a machine, where it reads, what that takes.

A task whose block is on the machine goes first ("schedulers try to place map tasks on local slots", Tetris, 5.1). Any
other reads from the holder of a copy that has the most room, which is kinder than Hadoop: that takes one at random.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
from extender.cluster.waiting import Blocks, Spread, Waiting

_READ, _IN, _OUT = DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX


@dataclass(frozen=True, slots=True)
class _Left:
    """What is left of a class's blocks: which tasks wait [T], and how many of them have a copy on each node [N]."""

    copies: Rows
    waiting: NDArray[np.bool_]
    local: Counts


class Promises:
    """What is left of each class's blocks, and what every node has promised, as a plan goes on.

    `allocated` [N, R] counts what the simulator's machines would: where tasks run, and at every source they read from.
    """

    def __init__(self, snapshot: Snapshot, waiting: Waiting) -> None:
        self.allocated = snapshot.allocated.copy()
        self._capacity = snapshot.layout.capacity
        self._waiting = waiting
        self._reading = waiting.reading.tolist()
        self._left: dict[int, _Left] = {}

    def nearest(self, task_class: int, nodes: Rows) -> int:
        """Return the first of these nodes [K], by its place, that holds a block which the class waits for; else -1."""
        blocks = self._waiting.inputs[task_class]
        if not isinstance(blocks, Blocks):
            return -1
        found = self._left_of(task_class, blocks).local[nodes] > 0
        place = int(found.argmax())
        return place if found[place] else -1

    def take(self, task_class: int, node: int) -> tuple[int, int]:
        """Return the task that goes to this node and the node that it reads from: -1, -1 for a class without blocks."""
        inputs, task, source = self._waiting.inputs[task_class], -1, node
        if isinstance(inputs, Blocks):
            task, source = self._block(task_class, inputs, node)
        self.allocated[node] += self._waiting.demand[task_class]
        if isinstance(inputs, Spread):
            self._spread(inputs, node)
        else:
            self._read(self._reading[task_class], node, source)
        return task, source if task >= 0 else -1

    def _block(self, task_class: int, blocks: Blocks, node: int) -> tuple[int, int]:
        left = self._left_of(task_class, blocks)
        here = blocks.at(node)
        here = here[left.waiting[here]]
        task = int(here[0]) if len(here) else int(left.waiting.argmax())
        holders = sorted(holder for holder in left.copies[task].tolist() if holder >= 0)
        left.waiting[task] = False
        left.local[holders] -= 1
        return task, node if len(here) else max(holders, key=self._room)

    def _room(self, holder: int) -> float:
        """Return what can still be read from a node by another."""
        capacity, allocated = self._capacity[holder], self.allocated[holder]
        return float(min(capacity[_READ] - allocated[_READ], capacity[_OUT] - allocated[_OUT]))

    def _left_of(self, task_class: int, blocks: Blocks) -> _Left:
        left = self._left.get(task_class)
        if left is None:
            left = self._left[task_class] = _Left(blocks.copies, blocks.waiting.copy(), blocks.local.copy())
        return left

    def _read(self, rate: float, node: int, source: int) -> None:
        self.allocated[source, _READ] += rate
        if source != node:
            self.allocated[source, _OUT] += rate
            self.allocated[node, _IN] += rate

    def _spread(self, spread: Spread, node: int) -> None:
        rates = np.where(spread.nodes == node, 0.0, spread.rates)
        self.allocated[spread.nodes, _READ] += spread.rates
        self.allocated[spread.nodes, _OUT] += rates
        self.allocated[node, _IN] += rates.sum()
