"""The rules of executors as a scheduler of the simulator: one engine checks the other."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner import Assignments, Plan
from lab.sim.dag.executor_jobs import executors, workload_of
from lab.sim.dag.executors import Executors, Rule
from lab.sim.dag.tpch import Arrival
from lab.sim.engine import clock
from lab.sim.engine.clock import SimulationSettings


class RuleScheduler(Executors):
    """Schedules by a rule. It follows what ends by the machines that are free, and never knows how long tasks take."""

    def __init__(self, arrivals: Sequence[Arrival], count: int, rule: Rule, *, stays: bool) -> None:
        super().__init__(arrivals, count)
        self._rule, self._stays = rule, stays
        self._runs = np.zeros(count, dtype=np.bool_)
        self._arrived = 0

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what free executors do next."""
        # 1. What has ended and arrived since the last time.
        self.now = now
        busy = snapshot.allocated.any(axis=1)
        for executor in np.flatnonzero(self._runs & ~busy).tolist():
            self._end(executor, now)
        self._runs &= busy
        while self._arrived < len(self.arrives) and self.arrives[self._arrived] <= now + 1e-6:
            self._arrive(self._arrived)
            self._arrived += 1
        # 2. One executor after the other; `classes` has the row of each stage in what waits.
        rows = [_stage_row(self, name) for name in waiting.names]
        classes = {row: task_class for task_class, row in enumerate(rows)}
        free, chosen = set(np.flatnonzero(~busy).tolist()), []
        while free and (choice := self._next(self._rule, sorted(free), stays=self._stays)):
            executor, row = choice
            free.discard(executor)
            self._begin(executor, row)
            self._runs[executor] = True
            chosen.append((classes[row], executor))
        task_class, node = np.array(chosen, dtype=np.intp).reshape(-1, 2).T
        nothing = np.full(len(chosen), -1, dtype=np.intp)
        return Plan(Assignments(task_class, node, nothing, nothing))


def job_seconds(arrivals: Sequence[Arrival], count: int, rule: Rule, *, stays: bool) -> Floats:
    """Return how long each job took on the simulator's engine [J]."""
    outcome = clock.run(
        workload_of("tpch", arrivals, count),
        executors(count),
        RuleScheduler(arrivals, count, rule, stays=stays),
        seed=1,
        settings=SimulationSettings(heartbeat_seconds=0.0),
    )
    return outcome.job_seconds


def _stage_row(run: Executors, name: str) -> int:
    """Return the row of a stage by its name, as in 07-q5-2g/stage-3."""
    job, _, stage = name.partition("/stage-")
    return run.first_stage(int(job.partition("-")[0])) + int(stage)
