"""How much opportunistic tasks of one queue, and of one job, may need in all: parts of the cluster, by true requests.

A part is that of the resource of which they need most (DRF). A FIFO queue is one row of jobs, and counts as one job.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.waiting import Waiting
from extender.planner.plan import Assignments
from extender.policy import shares

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Caps:
    """The largest part of the cluster for opportunistic tasks of a `queue` and of a `job`; 1: any."""

    queue: float = 1.0
    job: float = 1.0

    @property
    def limit(self) -> bool:
        """Whether there is any cap."""
        return min(self.queue, self.job) < 1.0


class CapRoom:
    """What is left below the caps, as tasks are counted; `waiting` has what opportunistic tasks need already."""

    def __init__(self, caps: Caps, waiting: Waiting, total: Floats) -> None:
        """Take what the cluster has in all [R]."""
        jobs = waiting.jobs
        given = np.zeros_like(jobs.allocated) if jobs.opportunistic is None else jobs.opportunistic
        of_jobs, of_queues = shares.parts(given, total), np.zeros((len(jobs.queue_names), len(total)))
        np.add.at(of_queues, jobs.queue, of_jobs)
        self._takes = shares.parts(waiting.demand, total)
        self._job, self._queue = waiting.job, jobs.queue[waiting.job]
        of_job, of_queue = (np.inf if cap >= 1.0 else cap + _ROUNDING for cap in (caps.job, caps.queue))
        self._of_jobs, self._of_queues = of_job - of_jobs, of_queue - of_queues

    def most(self, count: Counts) -> Counts:
        """Return how many of so many tasks of each class [C] are below the caps, each class by itself."""
        room, demanded = np.minimum(self._of_jobs[self._job], self._of_queues[self._queue]), self._takes > 0
        times = np.where(demanded, np.floor(room / np.where(demanded, self._takes, 1.0)), np.inf)
        most: Counts = np.clip(np.minimum(count, times.min(axis=1, initial=np.inf)), 0, None).astype(np.int64)
        return most

    def take(self, task_class: int) -> bool:
        """Count one task of a class, if it is below the caps."""
        job, queue = self._of_jobs[self._job[task_class]], self._of_queues[self._queue[task_class]]
        takes = self._takes[task_class]
        if ((takes > 0) & ((takes > job) | (takes > queue))).any():
            return False
        job -= takes
        queue -= takes
        return True


def below(room: CapRoom, assignments: Assignments) -> Rows:
    """Return the places of those assignments that are below the caps, counted in their order."""
    places = [place for place, task_class in enumerate(assignments.task_class.tolist()) if room.take(task_class)]
    return np.array(places, dtype=np.intp)
