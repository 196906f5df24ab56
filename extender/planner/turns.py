"""Whose turn it is while a plan is made: the shares of jobs, and who is owed most (policy.shares)."""

import numpy as np
from numpy.typing import NDArray

from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Jobs
from extender.planner.tuning import DEFICIT, SLOTS, Policy
from extender.policy import shares

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Counts = NDArray[np.int64]

_MEMORY = DIMENSIONS.index("memory")


class Turns:
    """The jobs [J] of the classes [K] that wait; `classes` [K] says whose turn it is."""

    def __init__(self, policy: Policy, jobs: Jobs, capacity: Floats, job: Rows, left: Counts) -> None:
        """Take the nodes' `capacity` [N, R], each class's `job` [K] and how many of its tasks are `left` [K]."""
        self._policy, self._job, self._of = policy, job, job.tolist()
        total = np.where(np.isfinite(capacity), capacity, 0.0).sum(axis=0)
        if policy.sharing == SLOTS:
            total[:_MEMORY] = total[_MEMORY + 1 :] = 0.0
        self._per_unit = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        self._used = jobs.allocated * self._per_unit
        self._wanting = np.bincount(job, weights=left, minlength=len(jobs.names))
        running = jobs.allocated.any(axis=1)
        self._fair = shares.fair_shares(jobs.queue, jobs.weight, jobs.queue_weight, (self._wanting > 0) | running)
        self.owed = shares.owed(shares.dominant_shares(jobs.allocated, total), self._fair)
        self.deficit = np.zeros(len(jobs.names))
        self._elect()

    def carry(self, deficit: Floats) -> None:
        """Go on with the deficits [J] of the last plan."""
        self.deficit = deficit
        self._elect()

    def count(self, task_class: int, takes: Floats) -> None:
        """Count a task as given to its job; it takes so much of the cluster [R]."""
        job, policy = self._of[task_class], self._policy
        self._wanting[job] -= 1
        taken = takes * self._per_unit
        used = self._used[job]
        used += taken
        fair = self._fair[job]
        if fair > 0:
            self.owed[job] = owed = (fair - used.max()) / fair
        else:
            owed = -np.inf
        if policy.sharing == DEFICIT:
            self.deficit = shares.serve(self.deficit, self._fair, job, float(taken.max()))
            self._elect()
        elif owed < self._least or self._wanting[job] <= 0:
            self._elect()

    def _elect(self) -> None:
        """Settle which jobs may be served now, and how little owed a job may be to stay among them."""
        self._least = -np.inf
        wanting = self._wanting > 0
        if self._policy.sharing == DEFICIT:
            turn = shares.most_owed(self.deficit, wanting, kappa=self._policy.kappa)
        elif self._policy.fairness > 0:
            turn, self._least = shares.first_in_line(self.owed, wanting, fairness=self._policy.fairness)
        else:
            turn = wanting
        self.classes = turn[self._job]
