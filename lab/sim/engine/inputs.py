"""Where tasks read from: blocks with copies on machines, and shuffles from wherever the parents ran."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Rows
from extender.cluster.waiting import Blocks, Shuffle
from lab.sim.workloads.stages import StageTable
from lab.sim.workloads.workload import BLOCKS, SOURCES, Machines

_HDFS_COPIES = 3


def place_blocks(random: np.random.Generator, blocks: int, machines: Machines) -> Rows:
    """Return where each block is [blocks, K]: on `machines.copies` distinct machines, or on all if there are fewer.

    Where there are racks, as HDFS does: the second copy on another rack than the first, the third on the second's.
    """
    count = len(machines.capacity)
    if machines.racks is not None and machines.copies == _HDFS_COPIES and len(np.unique(machines.racks)) > 1:
        return _on_two_racks(random, blocks, machines.racks)
    copies = np.empty((blocks, min(machines.copies, count)), dtype=np.intp)
    for column in range(copies.shape[1]):
        drawn = random.integers(0, count - column, blocks)
        # The number drawn counts the machines without a copy; skip those that have one, in ascending order.
        for holder in np.sort(copies[:, :column], axis=1).T:
            drawn += drawn >= holder
        copies[:, column] = drawn
    return copies


def copies_of(table: StageTable, machines: Machines, random: np.random.Generator) -> Rows:
    """Return where each task's block is [T, K], -1 for tasks that read none."""
    reads = np.zeros(len(table.durations), dtype=np.bool_)
    for stage in np.flatnonzero(table.source == SOURCES.index(BLOCKS)).tolist():
        reads[table.first_task[stage] : table.first_task[stage] + table.tasks[stage]] = True
    placed = place_blocks(random, int(reads.sum()), machines)
    copies = np.full((len(reads), placed.shape[1]), -1, dtype=np.intp)
    copies[reads] = placed
    if table.copies:
        copies = _with_declared(copies, table)
    return copies


def _on_two_racks(random: np.random.Generator, blocks: int, racks: Rows) -> Rows:
    """Return three machines for each block [blocks, 3]: one anywhere, two of one other rack (one, if that has one)."""
    copies = np.full((blocks, _HDFS_COPIES), -1, dtype=np.intp)
    machines = np.arange(len(racks))
    for block, first in enumerate(random.integers(0, len(racks), blocks).tolist()):
        other_racks = machines[racks != racks[first]]
        second = int(other_racks[random.integers(len(other_racks))])
        same_rack = machines[(racks == racks[second]) & (machines != second)]
        copies[block, :2] = first, second
        if len(same_rack):
            copies[block, 2] = same_rack[random.integers(len(same_rack))]
    return copies


def _with_declared(drawn: Rows, table: StageTable) -> Rows:
    """Return the copies [T, K], replaced for the stages that declare theirs; K is that of the widest."""
    width = max(drawn.shape[1], *(declared.shape[1] for declared in table.copies.values()))
    copies = np.full((len(drawn), width), -1, dtype=np.intp)
    copies[:, : drawn.shape[1]] = drawn
    for stage, declared in table.copies.items():
        first = int(table.first_task[stage])
        copies[first : first + len(declared)] = -1
        copies[first : first + len(declared), : declared.shape[1]] = declared
    return copies


def shuffle(ran: Counts, reading: float) -> Shuffle:
    """Return what a task reads from each machine, in proportion to `ran` [N], the parents' tasks that ran there.

    Rates are whole bytes per second, and their sum is exactly `reading` (a whole number too): a shuffle at the speed of
    the network still fits. A machine with a rate of 0 is left out.
    """
    cumulative = np.cumsum(ran)
    rates = np.diff(cumulative * int(reading) // cumulative[-1], prepend=0)
    nodes = np.flatnonzero(rates)
    return Shuffle(nodes, rates[nodes].astype(np.float64))


class Pool:
    """Rows over machines [., N] that stages borrow. Values are whole numbers; a row is zero when it is taken."""

    def __init__(self, machines: int, kind: type[np.generic]) -> None:
        self.values: NDArray[Any] = np.zeros((8, machines), dtype=kind)
        self._free = list(range(8))

    def take(self) -> int:
        """Return a free row."""
        if not self._free:
            self._free = list(range(len(self.values), 2 * len(self.values)))
            self.values = np.vstack((self.values, np.zeros_like(self.values)))
        return self._free.pop()

    def give_back(self, row: int) -> None:
        """Set a row to zero, for the next that takes it."""
        self.values[row] = 0
        self._free.append(row)


@dataclass(frozen=True)
class LiveBlocks(Blocks):
    """Blocks whose `waiting` and `local` follow what starts; `local` is a `row` of `counts`."""

    counts: Pool
    row: int

    @property
    def local(self) -> Counts:
        """How many waiting tasks have a copy of their block on each node [N]."""
        counts: Counts = self.counts.values[self.row]
        return counts
