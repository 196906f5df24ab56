"""What each stage's next tasks are promised, by what its finished ones were measured to use (Tetris, 4.1).

Arrays over the stages [S] of a table. Ends come in, demands go out; the tasks that run keep what they were promised.
"""

from dataclasses import replace

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import (
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    NETWORK_IN_INDEX,
    NETWORK_OUT_INDEX,
)
from extender.cluster.waiting import Inputs, Shuffle
from extender.errors import DovetailError
from extender.policy.remaining import work_by_resource
from lab.sim.engine.open_classes import OpenClasses
from lab.sim.engine.running import Ends, Promised
from lab.sim.engine.use.peak_estimates import LEAST_ENDED, estimated_demand
from lab.sim.workloads.stages import StageTable, everywhere
from lab.sim.workloads.workload import LOCAL, SHUFFLE, SOURCES, Machines

_READ, _WRITE, _IN, _OUT = DISK_READ_INDEX, DISK_WRITE_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
_LOCAL, _SHUFFLE = SOURCES.index(LOCAL), SOURCES.index(SHUFFLE)
_ROUNDING = 1e-6


class StageEstimates:
    """The estimated demand of the stages of a table on these machines.

    `demand` [S, R] and `reading` [S] are a task's, as those of the table; `busy` [S, R] for how long one keeps each
    resource of the cluster busy. Raises DovetailError for machines that offer more than the six dimensions.
    """

    def __init__(self, table: StageTable, machines: Machines) -> None:
        if len(machines.axis) > len(DIMENSIONS):
            counted = ", ".join(DIMENSIONS)
            raise DovetailError(f"demands of {counted} are estimated; not where these count too: {machines.beyond}")
        self._table, self._capacity, self._total = table, machines.capacity, machines.total
        self.demand, self.reading, self.busy = table.demand.copy(), table.reading.copy(), table.busy.copy()
        self._declared = table.demand.copy()
        self._declared[:, _READ] += table.reading
        self._earlier = np.full(self._declared.shape, np.nan)
        self._measured = np.zeros_like(self._declared)
        self._shown = np.zeros(self._declared.shape, dtype=np.int64)
        self._left = table.tasks.copy()
        # Network follows from reading, but where a stage reads on its own machine.
        self._follows = np.zeros(self._declared.shape, dtype=np.bool_)
        self._follows[:, [_IN, _OUT]] = (table.source != _LOCAL)[:, np.newaxis]

    def end(self, ends: Ends) -> Rows:
        """Learn from tasks that have ended; return the stages of which the estimate is another now."""
        if ends.peak is None:
            return np.empty(0, dtype=np.intp)
        np.maximum.at(self._measured, ends.stage, ends.peak.T)
        np.add.at(self._shown, ends.stage, ends.peak.T > 0)
        np.subtract.at(self._left, ends.stage, 1)
        stages = np.unique(ends.stage)
        later = [
            self._pass_on(stage) for stage in stages[self._left[stages] == 0].tolist() if stage in self._table.runs
        ]
        return self._estimate(np.unique(np.concatenate((stages, *later))))

    def promised(self, stage: Rows, local: Floats) -> Promised:
        """Return what starting tasks [A] are promised that declare to read `local` [A] of all on their own nodes."""
        table = self._table
        part = np.divide(local, table.reading[stage], out=np.zeros(len(stage)), where=table.reading[stage] > 0)
        here = self.reading[stage] * part
        elsewhere = self.reading[stage] - here
        demand = self.demand[stage].T.copy()
        demand[_READ] += here
        demand[_IN] += elsewhere
        return Promised(demand, elsewhere)

    def of_classes(self, classes: OpenClasses) -> OpenClasses:
        """Return the open classes with the estimates in place of what is declared."""
        demand, reading = self.demand[classes.rows], self.reading[classes.rows]
        demand[:, _OUT] += demand[:, _WRITE] * self._table.copied[classes.rows]
        declared = self._table.reading[classes.rows]
        inputs: list[Inputs] = list(classes.inputs)
        for row in np.flatnonzero(reading != declared).tolist():
            class_inputs = inputs[row]
            if isinstance(class_inputs, Shuffle):
                inputs[row] = Shuffle(class_inputs.nodes, class_inputs.rates * (reading[row] / declared[row]))
        demand.setflags(write=False)
        reading.setflags(write=False)
        return replace(classes, demand=demand, reading=reading, inputs=inputs)

    def _pass_on(self, stage: int) -> Rows:
        """Let other runs of a recurring job go by what this stage, which is over, has shown; return their stages.

        Of a stage of fewer tasks than LEAST_ENDED all have shown it.
        """
        runs = self._table.runs[stage]
        later: Rows = runs[self._left[runs] > 0]
        shown = self._shown[stage] >= min(LEAST_ENDED, self._table.tasks[stage])
        self._earlier[later] = np.where(shown, self._measured[stage], self._earlier[later])
        return later

    def _estimate(self, stages: Rows) -> Rows:
        """Estimate these stages anew; return those of which the estimate is another now."""
        whole = np.ceil(
            estimated_demand(self._declared[stages], self._earlier[stages], self._measured[stages], self._shown[stages])
            - _ROUNDING
        )
        whole[self._follows[stages]] = 0.0
        fits = np.array([self._fits(*pair) for pair in zip(stages.tolist(), whole, strict=True)], dtype=np.bool_)
        whole = np.where(fits[:, np.newaxis], whole, np.minimum(whole, self._declared[stages]))
        demand, reading = whole.copy(), np.where(self._table.reading[stages] > 0, whole[:, _READ], 0.0)
        demand[:, _READ] -= reading
        other = (demand != self.demand[stages]).any(axis=1) | (reading != self.reading[stages])
        changed: Rows = stages[other]
        self.demand[changed], self.reading[changed] = demand[other], reading[other]
        self.busy[changed] = self._busy(changed)
        return changed

    def _fits(self, stage: int, whole: Floats) -> bool:
        """Say whether a machine could hold a task that takes so much of it [R], wherever it is to read."""
        table = self._table
        need = whole.copy()
        need[_OUT] += need[_WRITE] * table.copied[stage]
        if table.source[stage] == _SHUFFLE:
            need[_IN], need[_READ] = need[_READ], 0.0
        allowed: Mask | bool = True if table.constraint is None else table.allowed[table.constraint[stage]]
        return bool(((need <= self._capacity).all(axis=1) & allowed).any())

    def _busy(self, stages: Rows) -> Floats:
        table = self._table
        copies = table.copied[stages] * (table.output_copies - 1)
        amounts = everywhere(self.demand[stages], self.reading[stages], copies)
        return work_by_resource(amounts, table.expected[stages], self._total)
