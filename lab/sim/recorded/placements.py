"""The policy `recorded`: it starts each task when and where it was started."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import DIMENSIONS, MEMORY_INDEX
from extender.cluster.waiting import Waiting
from extender.planner import Plan
from lab.sim.engine.running import DONE_SECONDS
from lab.sim.schedulers.baselines import AssignmentList
from lab.sim.workloads.names import stage_names
from lab.sim.workloads.workload import Job


@dataclass(slots=True)
class Placements:
    """When each task of a stage was bound and to which node, by the stage's name, in that order.

    A task whose node has not the memory yet (or a GPU, a place: what is never shared), by the simulated ends of others,
    starts when it has.
    """

    at: Floats
    node: Rows
    first: dict[str, int]
    _begun: dict[str, int] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, jobs: Sequence[Job], at: Floats, node: Rows) -> "Placements":
        """Return the placements of the tasks of these jobs [T], in their order."""
        tasks = [stage.tasks for job in jobs for stage in job.stages]
        places = np.cumsum([0, *tasks[:-1]]).tolist()
        return cls(at, node, dict(zip(stage_names(jobs), places, strict=True)))

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what was started by now, and when the next task was."""
        held = [MEMORY_INDEX, *range(len(DIMENSIONS), len(snapshot.layout.axis))]
        free = (snapshot.layout.capacity - snapshot.allocated)[:, held]
        chosen, again_at = AssignmentList(), np.inf
        for row in np.flatnonzero(waiting.count).tolist():
            name = waiting.names[row]
            begun = self.first[name] + self._begun.get(name, 0)
            for place in range(begun, begun + int(waiting.count[row])):
                node, need = int(self.node[place]), waiting.demand[row, held]
                if self.at[place] > now + DONE_SECONDS:
                    again_at = min(again_at, float(self.at[place]))
                    break
                if (free[node] < need).any():
                    break
                free[node] -= need
                chosen.add(row, node, -1, -1)
                self._begun[name] = self._begun.get(name, 0) + 1
        return Plan(chosen.assignments(), again_at=again_at)
