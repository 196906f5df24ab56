"""What tasks read that do not run beside their block, and where, if nobody looks at disks and links: as Hadoop's do.

The planner takes blocks of the machine that can lend most. Where it does not see who can, that is the first of all
machines that has any: everybody would read there at once.
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
    """Lets `inner` plan, and lets what reads from elsewhere read the first block of its input that still waits.

    It reads the nearest copy: in its rack if it can, else any, drawn by `seed`. Who starts on the rack of a block
    still does, if others that start at the same time leave it one.
    """

    inner: Scheduler
    seed: int = 0

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        plan = self.inner.plan(snapshot, waiting, now)
        chosen, random = plan.assignments, drawing(self.seed, now)
        away = (chosen.source >= 0) & (chosen.source != chosen.node)
        source, task, left = chosen.source.copy(), chosen.task.copy(), _UnplannedTasks(waiting)
        left.take(chosen.task_class[~away], chosen.task[~away])
        for row in away.nonzero()[0].tolist():
            task_class, node = int(chosen.task_class[row]), int(chosen.node[row])
            inputs = waiting.inputs[task_class]
            if isinstance(inputs, Blocks):
                beside = _beside(inputs, waiting, node)
                task[row] = left.first(task_class, int(task[row]), np.asarray(beside.any(axis=1)))
                nearest = _nearest(inputs.copies[task[row]], beside[task[row]], node)
                source[row] = nearest[random.integers(len(nearest))]
        return replace(plan, assignments=replace(chosen, task=task, source=source))


class _UnplannedTasks:
    """Which tasks of each class still wait while a plan is gone through."""

    def __init__(self, waiting: Waiting) -> None:
        self._inputs = waiting.inputs
        self._left: dict[int, Mask] = {}

    def take(self, classes: Rows, tasks: Rows) -> None:
        """Leave out tasks that start."""
        for task_class, task in zip(classes.tolist(), tasks.tolist(), strict=True):
            if task >= 0:
                self._of(task_class)[task] = False

    def first(self, task_class: int, task: int, beside: Mask) -> int:
        """Return the first of the class that still waits, of those `beside` [T] if this one is; it waits no more.

        Where others of this plan took all beside it, the first of all.
        """
        left = self._of(task_class)
        among = left & beside
        found = int((among if beside[task] and among.any() else left).argmax())
        left[found] = False
        return found

    def _of(self, task_class: int) -> Mask:
        left, inputs = self._left.get(task_class), self._inputs[task_class]
        if left is None:
            left = inputs.waiting.copy() if isinstance(inputs, Blocks) else np.zeros(0, dtype=np.bool_)
            self._left[task_class] = left
        return left


def _beside(inputs: Blocks, waiting: Waiting, node: int) -> Mask:
    """Return which copies are in the node's rack [T, K]; none where nobody knows racks."""
    if waiting.topology is None:
        return np.zeros(inputs.copies.shape, dtype=np.bool_)
    rack = waiting.topology[0]
    return np.asarray((inputs.copies >= 0) & (rack[inputs.copies] == rack[node]))


def _nearest(copies: Rows, beside: Mask, node: int) -> Rows:
    """Return those copies of a block that are nearest to the node, of which some are `beside` it."""
    own = copies == node
    near = own if own.any() else beside if beside.any() else copies >= 0
    return np.asarray(copies[near])


def random_copy(copies: Rows, node: int, racks: Rows | None, random: np.random.Generator) -> int:
    """Return which of the copies of one block [K] (-1 for none) a task on a node reads: one of those nearest to it."""
    none = np.zeros(len(copies), dtype=np.bool_)
    beside = none if racks is None else (copies >= 0) & (racks[copies] == racks[node])
    nearest = _nearest(copies, beside, node)
    return int(nearest[random.integers(len(nearest))])
