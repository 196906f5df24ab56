"""Queues in which jobs go in the order of arrival (`policy: fifo`): rows as `control` gives them to the planner."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Floats, Mask, Rows, sum_by
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Jobs, Waiting
from extender.planner import Plan, Scheduler
from lab.sim.schedulers.baselines import ArrivalOrder


@dataclass(slots=True)
class FifoQueues:
    """Lets `inner` plan with each of the `queues` as one row of jobs, whose classes stand in line by arrival."""

    inner: Scheduler
    queues: Collection[str]
    _arrivals: ArrivalOrder = field(default_factory=ArrivalOrder, init=False)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        jobs = waiting.jobs
        rank = self._arrivals.ranks(jobs.names)
        in_line = np.array([name in self.queues for name in jobs.queue_names], dtype=np.bool_)[jobs.queue]
        # The first job of each queue in line stands for all of them.
        row = np.arange(len(jobs.names))
        for queue in np.unique(jobs.queue[in_line]).tolist():
            members = (in_line & (jobs.queue == queue)).nonzero()[0]
            row[members] = members[0]
        kept, row = np.unique(row, return_inverse=True)
        lines = replace(
            waiting,
            job=row[waiting.job],
            behind=np.where(in_line, rank, 0)[waiting.job],
            waits_as=[jobs.names[job] for job in waiting.job.tolist()],
            jobs=_merged(jobs, kept, row, in_line),
        )
        return self.inner.plan(snapshot, lines, now)


def _merged(jobs: Jobs, kept: Rows, row: Rows, in_line: Mask) -> Jobs:
    """Return the jobs with the lines as one job each; `kept` [K] are first rows, `row` [J] the row of each job."""
    count = len(kept)
    names = [jobs.names[job] for job in kept.tolist()]
    for place in np.flatnonzero(in_line[kept]).tolist():
        names[place] = f"{jobs.queue_names[jobs.queue[kept[place]]]}|"
    path: Floats | None = None
    if jobs.path is not None:
        path = np.zeros(count)
        np.maximum.at(path, row, jobs.path)
    return Jobs(
        names=names,
        queue=jobs.queue[kept],
        weight=jobs.weight[kept],
        allocated=sum_by(row, jobs.allocated, count),
        work=sum_by(row, jobs.work[:, np.newaxis], count)[:, 0],
        queue_names=jobs.queue_names,
        queue_weight=jobs.queue_weight,
        path=path,
        groups=jobs.groups,
        opportunistic=None if jobs.opportunistic is None else sum_by(row, jobs.opportunistic, count),
    )
