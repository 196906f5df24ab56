"""How long tasks take where that depends on what their machine ran before: waves, and moves between jobs."""

import numpy as np

from extender.arrays import Floats, Rows
from lab.sim.workloads.stages import StageTable
from lab.sim.workloads.waves import FIRST, FRESH, REST
from lab.sim.workloads.workload import Machines

_NOTHING = -1


class MachineWaves:
    """What each machine ran last: it is with the job of the task that it started last, from then on.

    A task is fresh, and costs the machine a move, if the machine is not with its job. It is a first one if the machine
    is with the job, and started a task of another stage last. A stage without waves has its tasks' own seconds.
    """

    def __init__(self, table: StageTable, machines: Machines) -> None:
        nodes = len(machines.capacity)
        self._table = table
        self._move = np.zeros(nodes) if machines.move_seconds is None else machines.move_seconds
        self._stage = [_NOTHING] * nodes
        self._machines_with = [0] * len(table.job_names)

    def seconds(self, stage: Rows, task: Rows, node: Rows) -> Floats:
        """Return the seconds of tasks that start now [A], and keep in mind where: one after the other, in this order.

        The machine that a task starts on counts among those that are with its job.
        """
        seconds = self._table.durations[task]
        for place, (row, machine) in enumerate(zip(stage.tolist(), node.tolist(), strict=True)):
            wave = self._start(row, machine)
            if (waves := self._table.waves.get(row)) is not None:
                seconds[place] = waves[wave].on(self._machines_with[self._table.job.item(row)])
            if wave == FRESH:
                seconds[place] += self._move.item(machine)
        return seconds

    def _start(self, stage: int, machine: int) -> int:
        """Have the machine start a task of this stage, and return the wave of the task."""
        before, job = self._stage[machine], self._table.job.item(stage)
        self._stage[machine] = stage
        if before == stage:
            return REST
        if before != _NOTHING:
            job_before = self._table.job.item(before)
            if job_before == job:
                return FIRST
            self._machines_with[job_before] -= 1
        self._machines_with[job] += 1
        return FRESH


def waves_on(table: StageTable, machines: Machines) -> MachineWaves | None:
    """Return what keeps waves in mind; None where nothing takes longer for what a machine ran before.

    In one bin (`Machines.aggregate`) every task takes its least.
    """
    moves = machines.move_seconds is not None and bool(machines.move_seconds.any())
    return MachineWaves(table, machines) if (table.waves or moves) and not machines.aggregate else None
