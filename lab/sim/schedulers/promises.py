"""What a baseline has promised while it makes a plan: which task goes to a machine, where it reads, what that takes.

A task whose block is on the machine goes first ("schedulers try to place map tasks on local slots", Tetris, 5.1). Any
other reads from the holder of a copy that has the most room. That is kinder than Hadoop, which takes a random one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
from extender.cluster.waiting import Blocks, Shuffle, Waiting

_READ, _IN, _OUT = DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX


@dataclass(frozen=True, slots=True)
class _UnplannedBlocks:
    """The tasks of a class that the plan has not taken: `waiting` [T], and how many have a copy on each node [N]."""

    copies: Rows
    waiting: NDArray[np.bool_]
    local: Counts


class Promises:
    """The unplanned blocks of each class, and what every node has promised, while a plan is made.

    `allocated` [N, R] counts as the simulator's machines do: where tasks run, and at every source that they read from.
    """

    def __init__(self, snapshot: Snapshot, waiting: Waiting) -> None:
        self.allocated = snapshot.allocated.copy()
        self._capacity = snapshot.layout.capacity
        self._waiting = waiting
        self._reading = waiting.reading.tolist()
        self._unplanned: dict[int, _UnplannedBlocks] = {}

    def nearest(self, task_class: int, nodes: Rows) -> int:
        """Return the place of the first of these nodes [K] that holds a waiting task's block; -1 if none does."""
        blocks = self._waiting.inputs[task_class]
        if not isinstance(blocks, Blocks):
            return -1
        has_block = self._blocks_left(task_class, blocks).local[nodes] > 0
        place = int(has_block.argmax())
        return place if has_block[place] else -1

    def take(self, task_class: int, node: int) -> tuple[int, int]:
        """Return the task that goes to this node and the node that it reads from: -1, -1 for a class without blocks."""
        inputs, task, source = self._waiting.inputs[task_class], -1, node
        if isinstance(inputs, Blocks):
            task, source = self._block(task_class, inputs, node)
        self.add(task_class, node, source)
        return task, source if task >= 0 else -1

    def add(self, task_class: int, node: int, source: int) -> None:
        """Count a task of the class that somebody has sent to this node, where it reads from `source`."""
        inputs = self._waiting.inputs[task_class]
        self.allocated[node] += self._waiting.demand[task_class]
        if isinstance(inputs, Shuffle):
            self._spread(inputs, node)
        else:
            self._read(self._reading[task_class], node, source)

    def _block(self, task_class: int, blocks: Blocks, node: int) -> tuple[int, int]:
        unplanned = self._blocks_left(task_class, blocks)
        local_tasks = blocks.at(node)
        local_tasks = local_tasks[unplanned.waiting[local_tasks]]
        task = int(local_tasks[0]) if len(local_tasks) else int(unplanned.waiting.argmax())
        holders = sorted(holder for holder in unplanned.copies[task].tolist() if holder >= 0)
        unplanned.waiting[task] = False
        unplanned.local[holders] -= 1
        return task, node if len(local_tasks) else max(holders, key=self._room)

    def _room(self, holder: int) -> float:
        """Return the bytes per second that other nodes can still read from this one."""
        capacity, allocated = self._capacity[holder], self.allocated[holder]
        return float(min(capacity[_READ] - allocated[_READ], capacity[_OUT] - allocated[_OUT]))

    def _blocks_left(self, task_class: int, blocks: Blocks) -> _UnplannedBlocks:
        unplanned = self._unplanned.get(task_class)
        if unplanned is None:
            unplanned = _UnplannedBlocks(blocks.copies, blocks.waiting.copy(), blocks.local.copy())
            self._unplanned[task_class] = unplanned
        return unplanned

    def _read(self, rate: float, node: int, source: int) -> None:
        self.allocated[source, _READ] += rate
        if source != node:
            self.allocated[source, _OUT] += rate
            self.allocated[node, _IN] += rate

    def _spread(self, shuffle: Shuffle, node: int) -> None:
        rates = np.where(shuffle.nodes == node, 0.0, shuffle.rates)
        self.allocated[shuffle.nodes, _READ] += shuffle.rates
        self.allocated[shuffle.nodes, _OUT] += rates
        self.allocated[node, _IN] += rates.sum()
