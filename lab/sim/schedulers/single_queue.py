"""Hadoop's first order: one FIFO queue for all jobs, around any planner."""

from dataclasses import dataclass, field, replace

import numpy as np

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Jobs, Waiting
from extender.planner import Plan, Scheduler
from lab.sim.schedulers.baselines import ArrivalOrder


@dataclass(slots=True)
class SingleQueue:
    """Lets `inner` plan as if all jobs were in one queue, in the order of arrival."""

    inner: Scheduler
    _arrivals: ArrivalOrder = field(default_factory=ArrivalOrder, init=False)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        jobs = waiting.jobs
        rank = self._arrivals.ranks(jobs.names)
        single_queue = replace(
            waiting,
            job=np.zeros(len(waiting.job), dtype=np.intp),
            behind=rank[waiting.job],
            waits_as=[jobs.names[job] for job in waiting.job.tolist()],
            jobs=_as_one_job(jobs),
        )
        return self.inner.plan(snapshot, single_queue, now)


def _as_one_job(jobs: Jobs) -> Jobs:
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
