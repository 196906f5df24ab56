"""Whose turn it is while a plan is made: the shares of jobs, and who is owed most (policy.shares)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Jobs
from extender.planner.keeping import Keeping
from extender.planner.queue_turns import QueueTurns
from extender.planner.tuning import DEFICIT, SLOTS, Policy
from extender.policy import shares

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MEMORY = DIMENSIONS.index("memory")


class Turns:
    """The jobs [J] of classes [C]; `classes` [C] says whose turn it is, `changes` how often that was settled.

    `may` [C] are those that may go at all: their queues leave no room to others (`keeping`).
    """

    def __init__(self, policy: Policy, jobs: Jobs, total: Floats, job: Rows, left: Counts, takes: Floats) -> None:
        """Take what there is in all [R], each class's `job` [C], tasks `left` [C] and what one takes [C, R]."""
        self._policy, self._job, self._of, self._queue = policy, job, job.tolist(), jobs.queue[job]
        if policy.sharing == SLOTS:
            total = np.where(np.arange(len(total)) == _MEMORY, total, 0.0)
        per_unit = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        self._takes = takes * per_unit
        self._used = jobs.allocated * per_unit
        self._wanting = np.bincount(job, weights=left, minlength=len(jobs.names))
        active = (self._wanting > 0) | jobs.allocated.any(axis=1)
        self._fair = shares.fair_shares(jobs.queue, jobs.weight, jobs.queue_weight, active)
        self._queues = QueueTurns(jobs, self._used, active)
        self.owed = shares.owed(self._used.max(axis=1, initial=0.0), self._fair)
        self.deficit = np.zeros(len(jobs.names))
        self.changes, self.may, self._kept = 0, np.ones(len(job), dtype=np.bool_), False
        self.keeping: Keeping | None = None
        if self._queues.several and policy.sharing != DEFICIT and policy.fairness > 0:
            self.keeping = self._queues.keeping(job, self._takes, left)
        self._elect()

    def carry(self, deficit: Floats) -> None:
        """Go on with the deficits [J] of the last plan."""
        self.deficit = deficit
        self._elect()

    def among(self, left: Counts) -> None:
        """Choose from now on only among the jobs of which tasks are `left` [C] here."""
        self._wanting = np.bincount(self._job, weights=left, minlength=len(self._wanting))
        self._elect()

    def keep_for(self, worth: Mask, could: Callable[[int], bool]) -> None:
        """Keep room for these classes [C] alone, of them for those that `could` start if all nodes were empty."""
        if self.keeping is not None:
            self.keeping.keep_for(worth, could)
            self._elect()

    def reopened(self) -> bool:
        """Say whether room was kept since this was asked last, and is no longer: others may have it."""
        kept, self._kept = self._kept, not self.may.all()
        return kept and not self._kept

    def kept_for(self) -> Rows:
        """Return the classes for which room is kept that others could use."""
        none = np.zeros(0, dtype=np.intp)
        return self.keeping.kept_for() if self.keeping is not None and not self.may.all() else none

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is counted from now on."""
        used, wanting, owed, deficit = self._used.copy(), self._wanting.copy(), self.owed.copy(), self.deficit.copy()
        queues = self._queues.used()
        kept = self.keeping.checkpoint() if self.keeping is not None else None

        def undo() -> None:
            self._used[:], self._wanting, self.owed[:], self.deficit = used, wanting.copy(), owed, deficit.copy()
            self._queues.restore(queues)
            if kept is not None:
                kept()
            self._elect()

        return undo

    def owed_to(self, task_class: int) -> float:
        """Return what the class's job is owed."""
        return float(self.owed[self._of[task_class]])

    def count(self, task_class: int) -> None:
        """Count a task as given to its job."""
        job, policy = self._of[task_class], self._policy
        self._wanting[job] -= 1
        used = self._used[job]
        used += self._takes[task_class]
        fair = self._fair.item(job)
        owed = (fair - max(used.tolist())) / fair if fair > 0 else -np.inf
        self.owed[job] = owed
        if policy.sharing == DEFICIT:
            amount = float(self._takes[task_class].max())
            self.deficit = shares.serve(self.deficit, self._fair, job, amount)
            self._elect()
            return
        over = self._queues.count(job, self._takes[task_class])
        other_room = self.keeping is not None and self.keeping.count(task_class)
        if over or other_room or owed < self._least or self._wanting[job] <= 0:
            self._elect()

    def elected(self, classes: Rows) -> Mask:
        """Return whose turn it would be if only these classes wanted something [C]."""
        wanting = np.zeros(len(self._wanting), dtype=np.bool_)
        wanting[self._job[classes]] = True
        parts = self._queues.part
        turn, _ = self._choose(wanting & (self._wanting > 0))
        self._queues.part = parts
        return np.asarray(turn[self._job])

    def _elect(self) -> None:
        """Settle which jobs may be served now, and how little owed a job may be to stay among them."""
        turn, self._least = self._choose(self._wanting > 0)
        self.classes = turn[self._job]
        if self.keeping is not None:
            self.keeping.settle()
            self.may = ~self.keeping.full[self._queue]
            self._kept = self._kept or bool(self.keeping.full.any())
        self.changes += 1

    def _choose(self, wanting: Mask) -> tuple[Mask, float]:
        """Return which of the jobs that want something may be served [J], and what the least of them is owed."""
        if self._policy.sharing == DEFICIT:
            return shares.most_owed(self.deficit, wanting, kappa=self._policy.kappa), -np.inf
        if self._policy.fairness > 0:
            wanting = self._queues.jobs(wanting)
            return shares.first_in_line(self.owed, wanting, fairness=self._policy.fairness)
        return wanting, -np.inf
