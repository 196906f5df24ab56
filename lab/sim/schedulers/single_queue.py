"""One FIFO queue for all jobs, as they arrived: what a planner does under Hadoop's first scheduler's order."""

from dataclasses import dataclass, field, replace

import numpy as np

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Jobs, Waiting
from extender.planner import Plan, Scheduler
from lab.sim.schedulers.baselines import ArrivalOrder


@dataclass(slots=True)
class SingleQueue:
    """Lets `inner` plan as if all jobs were one queue, the first to arrive in front."""

    inner: Scheduler
    _arrivals: ArrivalOrder = field(default_factory=ArrivalOrder, init=False)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        jobs = waiting.jobs
        place = self._arrivals.order(jobs.names)
        line = replace(
            waiting,
            job=np.zeros(len(waiting.job), dtype=np.intp),
            behind=place[waiting.job],
            waits_as=[jobs.names[job] for job in waiting.job.tolist()],
            jobs=_line(jobs),
        )
        return self.inner.plan(snapshot, line, now)


def _line(jobs: Jobs) -> Jobs:
    """Return all jobs as one."""
    return Jobs(
        names=["line"],
        queue=np.zeros(1, dtype=np.intp),
        weight=np.ones(1),
        allocated=jobs.allocated.sum(axis=0, keepdims=True),
        work=jobs.work.sum(keepdims=True),
        queue_names=["line"],
        queue_weight=np.ones(1),
    )
