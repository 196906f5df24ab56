"""Whose turn it is while a plan is made: the queue, inside it who has waited too long, then the jobs owed most.

Docs: docs/concepts/turns.md. Between queues it is `queue_order`. Inside a queue a job may go while it is at most kappa
of the cluster ahead of the one that has least (Graphene, 5.1), and the fairness knob of Tetris (3.4) leaves the choice
to the score among the jobs that are furthest below their share. A class past its due time (`due_times`) goes before
them, in every second start of its queue.
"""

from collections.abc import Callable

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, rows_by, sum_by
from extender.cluster.resources import MEMORY_INDEX
from extender.cluster.waiting import Waiting
from extender.planner.candidates import NodeCandidates
from extender.planner.fairness.queue_order import QueueOrder
from extender.planner.tuning import SLOTS, Policy
from extender.policy import shares
from extender.policy.turn import loosened, near_the_least


class Fairness:
    """The jobs [J] of classes [C] and their queues [Q].

    Who is `in_line` is settled anew when somebody asks, in the queues where it may have changed; `changes` counts how
    often that was. `several`: whether more than one queue has or wants something. `due` [C]: since when a class is due,
    infinite for those that are not (yet). `by_due` [Q]: the last start of the queue was of a class that was due. `used`
    [J, R]: what jobs have, as parts of the cluster.
    """

    def __init__(self, policy: Policy, waiting: Waiting, total: Floats, takes: Floats) -> None:
        """Take who waits, what there is in all [R], and what one task of each class takes of that [C, R]."""
        jobs, job, left = waiting.jobs, waiting.job, waiting.count
        self._policy, self._job, self._job_of = policy, job, job.tolist()
        self.queue: Rows = jobs.queue[job]
        if policy.sharing == SLOTS:
            total = np.where(np.arange(len(total)) == MEMORY_INDEX, total, 0.0)
        self.takes: Floats = shares.parts(takes, total)
        self.used: Floats = shares.parts(jobs.allocated, total)
        self._wanting = np.bincount(job, weights=left, minlength=len(jobs.names))
        active = (self._wanting > 0) | jobs.allocated.any(axis=1)
        self._fair = shares.fair_shares(jobs.queue, jobs.weight, jobs.queue_weight, active)
        self._queue_of, self._queue_of_jobs = jobs.queue.tolist(), jobs.queue
        queues = len(jobs.queue_weight)
        of_jobs = sum_by(jobs.queue, self.used, queues)
        of_classes = sum_by(self.queue, self.takes * left[:, np.newaxis], queues)
        self.queues = QueueOrder(jobs, of_jobs, of_classes, kappa=policy.queue_kappa)
        self.several = self.queues.several
        self._jobs_of = rows_by(jobs.queue, queues) if self.several else []
        self.owed = shares.owed(shares.dominant(self.used), self._fair)
        self.due: Floats = np.full(len(job), np.inf)
        self.by_due: Mask = np.zeros(queues, dtype=np.bool_)
        self._some_due = False
        self._turn: Mask = np.zeros(len(jobs.names), dtype=np.bool_)
        self._least = np.full(queues, -np.inf)
        self._in_line: Mask = self._turn
        self._unsettled: set[int] | None = None
        self.changes = 0

    @property
    def in_line(self) -> Mask:
        """The classes [C] whose jobs the knob lets go first in their queue."""
        if self._unsettled is None or self._unsettled:
            self._settle()
        return self._in_line

    def set_due(self, due: Floats, by_due: Mask) -> None:
        """Say since when classes are due [C], and which queues served such a class last [Q]."""
        self.due, self.by_due = due, by_due
        self._some_due = bool((due < np.inf).any())

    def among(self, left: Counts) -> None:
        """Choose from now on only among the jobs of which tasks are `left` [C] here."""
        self._wanting = np.bincount(self._job, weights=left, minlength=len(self._wanting))
        self._unsettled = None

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is counted from now on."""
        used, wanting, owed = self.used.copy(), self._wanting.copy(), self.owed.copy()
        due, by_due = self.due.copy(), self.by_due.copy()
        undo_queues = self.queues.checkpoint()

        def undo() -> None:
            self.used[:], self._wanting, self.owed[:] = used, wanting.copy(), owed
            self.set_due(due.copy(), by_due.copy())
            undo_queues()
            self._unsettled = None

        return undo

    def owed_to(self, task_class: int) -> float:
        """Return what the class's job is owed."""
        return self.owed.item(self._job_of[task_class])

    def is_due(self, task_class: int) -> bool:
        """Whether the class has waited past its due time."""
        return self._some_due and bool(self.due[task_class] < np.inf)

    def first(self, candidates: NodeCandidates, pool: Mask) -> Mask:
        """Return those of the `pool` [k] of a node's candidates whose turn it is; nobody only where it is empty."""
        rows, group = candidates.rows, pool
        # 1. The queue that is first of those that are in the pool.
        if self.several:
            group = self.queues.first(self.queue[rows], pool)
        # 2. In it the class that has been due for longest, unless the queue's last start was of one that was due.
        if self._some_due:
            due = np.where(group & ~self.by_due[self.queue[rows]], self.due[rows], np.inf)
            earliest = due.min(initial=np.inf)
            if earliest < np.inf:
                return np.asarray(due == earliest)
        # 3. Else the jobs that are not too far ahead of others that have a candidate.
        group = self._near_the_least(rows, group)
        # 4. Of these the jobs that the fairness knob lets go first; all where none of those has a candidate.
        in_line = self.in_line
        if candidates.in_line_at != self.changes:
            candidates.in_line, candidates.in_line_at = in_line[rows], self.changes
        turn = group & candidates.in_line
        return turn if np.count_nonzero(turn) else group

    def next_in_line(self, rows: Rows, group: Mask) -> Mask:
        """Return those of the `group` [k] of these classes [k] whose jobs would be first if no others wanted anything.

        The group is of one queue, or of queues whose turn it is alike.
        """
        group = self._near_the_least(rows, group)
        wanting = np.zeros(len(self._wanting), dtype=np.bool_)
        wanting[self._job[rows[group]]] = True
        turn, _ = self._choose(slice(None), wanting)
        return np.asarray(group & turn[self._job[rows]])

    def count(self, task_class: int) -> None:
        """Count a task as given to its job and its queue."""
        job = self._job_of[task_class]
        queue, takes = self._queue_of[job], self.takes[task_class]
        had_nothing = self.owed.item(job) >= 1.0
        self._wanting[job] -= 1
        used = self.used[job]
        used += takes
        fair = self._fair.item(job)
        owed = (fair - shares.dominant_of_one(used)) / fair if fair > 0 else -np.inf
        self.owed[job] = owed
        self.queues.count(queue, takes)
        if self._some_due:
            self.by_due[queue] = self.due[task_class] < np.inf
            self.due[task_class] = np.inf
        if self._unsettled is not None and (owed < self._least[queue] or self._wanting[job] <= 0 or had_nothing):
            self._unsettled.add(queue)  # the knob counts who has something

    def _near_the_least(self, rows: Rows, group: Mask) -> Mask:
        """Return those of the `group` [k] whose jobs are at most kappa ahead of another's that is in it, by weight."""
        if self._policy.kappa >= 1.0:
            return group
        job = self._job[rows]
        has_of_fair = 1.0 - self.owed[job]
        loose = loosened(has_of_fair, self._fair[job], kappa=self._policy.kappa)
        return near_the_least(has_of_fair, loose, self.queue[rows], group)

    def _settle(self) -> None:
        """Settle anew which jobs are in line, and how little owed one may be to stay there, where that has changed."""
        queues = self._unsettled
        if queues is None:  # in all; where nobody wants anything, nobody is in line
            self._turn[:], self._least[:] = False, -np.inf
            queues = set(np.unique(self._queue_of_jobs[self._wanting > 0]).tolist()) if self.several else {0}
        for queue in queues:
            jobs, one = (self._jobs_of[queue], queue) if self.several else (slice(None), slice(None))
            self._turn[jobs], self._least[one] = self._choose(jobs, self._wanting[jobs] > 0)
        self._unsettled = set()
        self._in_line = self._turn[self._job]
        self.changes += 1

    def _choose(self, jobs: Rows | slice, wanting: Mask) -> tuple[Mask, float]:
        """Return which of these jobs [k] may be served of those that are `wanting` [k], and what the last is owed."""
        if self._policy.fairness > 0:
            return shares.first_in_line(self.owed[jobs], wanting, fairness=self._policy.fairness)
        return wanting, -np.inf
