"""Where the tasks of open stages read: the blocks of each task, the rates of shuffles, and where parents ran.

Arrays over the stages [S] and tasks [T] of a table, and the machines [N]. A stage has rows in pools only while it needs
them; `_NO_ROW` where it has none.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Mask, Rows
from extender.cluster.waiting import Inputs
from lab.sim.engine.inputs import LiveBlocks, Pool, copies_of, shuffle
from lab.sim.workloads.stages import StageTable
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, SOURCES, Machines

_BLOCKS, _SHUFFLE = SOURCES.index(BLOCKS), SOURCES.index(SHUFFLE)
_NO_ROW = -1

Number = TypeVar("Number", np.bool_, np.intp)


class StageInputs:
    """The inputs of all stages of a table. Blocks are placed at the beginning, by `random`.

    `copies` [T, K] are the machines that hold each task's block, -1 for none. `unstarted` [T] says which tasks have not
    started. `by_stage` are the inputs of each stage as a scheduler sees them, None for a stage that is not open.
    `rates` has a row [N] for each open shuffle: the bytes per second that a task reads from each machine.
    """

    def __init__(self, table: StageTable, machines: Machines, random: np.random.Generator) -> None:
        stages, nodes = len(table.tasks), len(machines.capacity)
        self._table, self._nodes = table, nodes
        self.copies = copies_of(table, machines, random)
        self.unstarted = np.ones(len(table.durations), dtype=np.bool_)
        self.by_stage: list[Inputs] = [None] * stages
        # The pools: rates of shuffles, tasks of a parent that ran on each machine, waiting tasks with a block there.
        self.rates, self._ran, self._local = Pool(nodes, np.float64), Pool(nodes, np.int64), Pool(nodes, np.int64)
        self._rates_row = np.full(stages, _NO_ROW, dtype=np.intp)
        self._ran_row = np.full(stages, _NO_ROW, dtype=np.intp)
        self._local_row = np.full(stages, _NO_ROW, dtype=np.intp)
        self._readers_left = table.shuffling_children

    def open(self, stage: int) -> None:
        """Note that a stage begins; from now on it is known where its tasks read."""
        if self._readers_left[stage]:
            self._ran_row[stage] = self._ran.take()
        if self._table.source[stage] == _BLOCKS:
            self._open_blocks(stage)
        elif self._table.source[stage] == _SHUFFLE:
            self._open_shuffle(stage)

    def start(self, stage: Rows, task: Rows, node: Rows, reads_block: Mask) -> None:
        """Note that tasks [A] start on these nodes; `reads_block` [A] says which of them read a block."""
        self.unstarted[task] = False
        self._move(1, stage, task, node, np.flatnonzero(reads_block))

    def come_back(self, stage: Rows, task: Rows, node: Rows) -> None:
        """Note that tasks [A] that ran on these nodes wait again."""
        self.unstarted[task] = True
        self._move(-1, stage, task, node, np.flatnonzero(self._local_row[stage] != _NO_ROW))

    def close(self, stage: int) -> None:
        """Note that all tasks of a stage have ended."""
        self.by_stage[stage] = None
        if self._local_row[stage] != _NO_ROW:
            self._local.give_back(int(self._local_row[stage]))
        if self._rates_row[stage] != _NO_ROW:
            self.rates.give_back(int(self._rates_row[stage]))

    def rates_row(self, stage: Rows) -> Rows:
        """Return the row in `rates` of each of these stages [A], -1 for one that is no shuffle."""
        return self._rates_row[stage]

    def shuffle_rate(self, rates_row: Rows, node: Rows) -> Floats:
        """Return the bytes per second [A] that shuffling tasks read on their own nodes."""
        rates: Floats = self.rates.values[rates_row, node]
        return rates

    def _move(self, started: int, stage: Rows, task: Rows, node: Rows, readers: Rows) -> None:
        """Count tasks [A], of which `readers` read a block, as started (1) or as waiting again (-1) on these nodes."""
        if len(readers):
            copies = self.copies[task[readers]]
            cells = self._local_row[stage[readers], None] * self._nodes + copies
            np.subtract.at(self._local.values.reshape(-1), cells[copies >= 0], started)
        row = self._ran_row[stage]
        read_later = row != _NO_ROW
        np.add.at(self._ran.values.reshape(-1), row[read_later] * self._nodes + node[read_later], started)

    def _open_blocks(self, stage: int) -> None:
        first, count = int(self._table.first_task[stage]), int(self._table.tasks[stage])
        copies, unstarted = self.copies[first : first + count], self.unstarted[first : first + count]
        self._local_row[stage] = row = self._local.take()
        self._local.values[row] = np.bincount(copies[copies >= 0], minlength=self._nodes)
        self.by_stage[stage] = LiveBlocks(
            read_only_view(copies), read_only_view(unstarted), self._nodes, self._local, row
        )

    def _open_shuffle(self, stage: int) -> None:
        """Spread the reading of a shuffle over the machines on which its parents ran."""
        # 1. Rates in proportion to where the tasks of all parents ran.
        parents = self._table.parents[stage]
        ran = self._ran.values[self._ran_row[parents]].sum(axis=0)
        inputs = shuffle(ran, float(self._table.reading[stage]))
        self.by_stage[stage] = inputs
        self._rates_row[stage] = row = self.rates.take()
        self.rates.values[row, inputs.nodes] = inputs.rates
        # 2. A parent that no other shuffle is to read needs its row no longer.
        self._readers_left[parents] -= 1
        for parent in parents[self._readers_left[parents] == 0].tolist():
            self._ran.give_back(self._ran_row[parent])
            self._ran_row[parent] = _NO_ROW


def read_only_view(array: NDArray[Number]) -> NDArray[Number]:
    """Return a view of an array that cannot be written."""
    view = array.view()
    view.setflags(write=False)
    return view
