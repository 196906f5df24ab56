"""Remote reads as Hadoop has them: a task that does not run beside its block reads a random one of the nearest copies.

The planner lets a task read from the machine with the most room on disk and network. A planner that does not see disks
and networks always takes the first machine, and all tasks would read there at once. This wrapper corrects that.
"""

from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Mask, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Blocks, Waiting
from extender.planner import Plan, Scheduler
from lab.sim.schedulers.baselines import drawing


@dataclass(frozen=True, slots=True)
class RandomSource:
    """Lets `inner` plan, and chooses the block and the copy of every task that does not run beside its block.

    The block is the first of the class that still waits; on the rack of the task, where `inner` chose one there and
    others of the plan leave one. The copy is one of the nearest: in the task's rack if there is one, else any, drawn by
    `seed`.
    """

    inner: Scheduler
    seed: int = 0

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        # 1. Tasks that read on their own node keep their blocks.
        plan = self.inner.plan(snapshot, waiting, now)
        chosen, random = plan.assignments, drawing(self.seed, now)
        remote = (chosen.source >= 0) & (chosen.source != chosen.node)
        source, task, unplanned = chosen.source.copy(), chosen.task.copy(), _UnplannedTasks(waiting)
        unplanned.take(chosen.task_class[~remote], chosen.task[~remote])
        # 2. Every other task takes the first block that is left, and a random one of the nearest copies.
        for row in remote.nonzero()[0].tolist():
            task_class, node = int(chosen.task_class[row]), int(chosen.node[row])
            inputs = waiting.inputs[task_class]
            if isinstance(inputs, Blocks):
                in_rack = _copies_in_rack(inputs, waiting, node)
                task[row] = unplanned.take_first(task_class, int(task[row]), np.asarray(in_rack.any(axis=1)))
                nearest = _nearest(inputs.copies[task[row]], in_rack[task[row]], node)
                source[row] = nearest[random.integers(len(nearest))]
        return replace(plan, assignments=replace(chosen, task=task, source=source))


class _UnplannedTasks:
    """Which tasks of each class no assignment has taken yet."""

    def __init__(self, waiting: Waiting) -> None:
        self._inputs = waiting.inputs
        self._unplanned: dict[int, Mask] = {}

    def take(self, classes: Rows, tasks: Rows) -> None:
        """Take these tasks; -1 for a task of a class that reads no blocks."""
        for task_class, task in zip(classes.tolist(), tasks.tolist(), strict=True):
            if task >= 0:
                self._tasks(task_class)[task] = False

    def take_first(self, task_class: int, task: int, in_rack: Mask) -> int:
        """Take the first unplanned task of the class and return it.

        If `task` has its block `in_rack` [T], it is the first with a block there, as long as one is left.
        """
        unplanned = self._tasks(task_class)
        near = unplanned & in_rack
        first = int((near if in_rack[task] and near.any() else unplanned).argmax())
        unplanned[first] = False
        return first

    def _tasks(self, task_class: int) -> Mask:
        unplanned, inputs = self._unplanned.get(task_class), self._inputs[task_class]
        if unplanned is None:
            unplanned = inputs.waiting.copy() if isinstance(inputs, Blocks) else np.zeros(0, dtype=np.bool_)
            self._unplanned[task_class] = unplanned
        return unplanned


def _copies_in_rack(inputs: Blocks, waiting: Waiting, node: int) -> Mask:
    """Return which copies are in the node's rack [T, K]; none where racks are not known."""
    if waiting.topology is None:
        return np.zeros(inputs.copies.shape, dtype=np.bool_)
    rack = waiting.topology[0]
    return np.asarray((inputs.copies >= 0) & (rack[inputs.copies] == rack[node]))


def _nearest(copies: Rows, in_rack: Mask, node: int) -> Rows:
    """Return the copies of a block [K] that are nearest to the node: on it, else `in_rack` [K], else all."""
    own = copies == node
    near = own if own.any() else in_rack if in_rack.any() else copies >= 0
    return np.asarray(copies[near])


def random_copy(copies: Rows, node: int, racks: Rows | None, random: np.random.Generator) -> int:
    """Return a random one of the copies of a block [K] (-1 for none) that are nearest to the node."""
    nowhere = np.zeros(len(copies), dtype=np.bool_)
    in_rack = nowhere if racks is None else (copies >= 0) & (racks[copies] == racks[node])
    nearest = _nearest(copies, in_rack, node)
    return int(nearest[random.integers(len(nearest))])
