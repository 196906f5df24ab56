"""The jobs of a backlog as the planner's arrays: what each has committed, what it has left, who is before it in a FIFO
queue.
"""  # noqa: D205 - one sentence

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.waiting import Jobs
from extender.control.backlog.backlog import Backlog, Job, PodPhase, TaskClass
from extender.control.plan_input.running import ENDLESS
from extender.control.queues.tree import QueueTree
from extender.control.queues.usage import CommittedPods, QueueUsage, opportunistic_by, regular_by
from extender.policy.remaining import remaining_work, work_by_resource


@dataclass(frozen=True, slots=True)
class JobRows:
    """The planner's `jobs`, the row of each job in it, and how many jobs of its FIFO queue are before it.

    `left_seconds` is how long all that they have left keeps the cluster busy, by the resource of which it needs most.
    """

    jobs: Jobs
    left_seconds: float
    rows: Mapping[Job, int]
    behind: Mapping[Job, int]

    def rows_of(self, classes: Sequence[TaskClass]) -> Rows:
        """Return the row of each class's job [C]."""
        return np.array([self.rows[task_class.job] for task_class in classes], dtype=np.intp)

    def behind_of(self, classes: Sequence[TaskClass]) -> Counts | None:
        """Return how many jobs are before each class's job [C]; None where none is before any."""
        if not any(self.behind.values()):
            return None
        return np.array([self.behind[task_class.job] for task_class in classes], dtype=np.int64)


class JobRowsBuilder:
    """Makes the rows of jobs. Under the backlog's lock."""

    def __init__(self, backlog: Backlog, tree: QueueTree) -> None:
        self._backlog, self._tree = backlog, tree

    def build(
        self, pods: CommittedPods, demand: Floats, seconds: Floats, usage: QueueUsage, cannot_start: Counts
    ) -> JobRows:
        """Return the jobs of these classes, which come in the order of `in_order`; a FIFO queue is one row.

        `demand` [C, R] is that of a pod of each class, `seconds` [C] how long it runs. `usage` is that of the queues.
        So many pods of each class [C] `cannot_start`: they are no work, for which others of their queue would wait.
        Where that is so of all of a class, those that its owner has yet to create could not start either.
        """
        classes = pods.classes
        # 1. A row for each job, or for each FIFO queue.
        jobs = list(dict.fromkeys(task_class.job for task_class in classes))
        rows, names, queue_of = self._rows(jobs)
        row = np.array([rows[task_class.job] for task_class in classes], dtype=np.intp)
        # 2. The queue of each row, with its fair share.
        row_of_queue = {name: place for place, name in enumerate(usage.queues)}
        # 3. What each row has committed, and what it has left to do. What runs until somebody deletes it has no end.
        left = np.array([_to_end(task_class) for task_class in classes], dtype=np.int64) - cannot_start
        left += np.where((left <= 0) & (cannot_start > 0), 0, self._not_created_yet(classes))
        busy = work_by_resource(demand, seconds, usage.total)
        return JobRows(
            jobs=Jobs(
                names=names,
                queue=np.array([row_of_queue[name] for name in queue_of], dtype=np.intp),
                weight=np.ones(len(names)),
                allocated=regular_by(row, pods.counts, pods.opportunistic, demand, len(names)),
                opportunistic=opportunistic_by(row, pods.opportunistic, demand, len(names))
                if pods.opportunistic.any()
                else None,
                work=remaining_work(busy.sum(axis=1), left, row, len(names)),
                queue_names=usage.queues,
                queue_weight=usage.fair,
                groups=self._tree.groups(usage.queues),
            ),
            left_seconds=float((left @ busy).max(initial=0.0)),
            rows=rows,
            behind=self._behind(jobs),
        )

    def _rows(self, jobs: Sequence[Job]) -> tuple[dict[Job, int], list[str], list[str]]:
        """Return the row of each job, and the name and the queue of each row; the jobs of a queue come together."""
        fifo = {name for name in {job.queue for job in jobs} if self._tree.is_fifo(name)}
        rows: dict[Job, int] = {}
        names: list[str] = []
        queue_of: list[str] = []
        for job in jobs:
            in_line = job.queue in fifo
            if not in_line or job.queue not in queue_of[-1:]:
                names.append(f"{job.queue}|" if in_line else f"{job.queue}|{job.name}")
                queue_of.append(job.queue)
            rows[job] = len(names) - 1
        return rows, names, queue_of

    def _not_created_yet(self, classes: Sequence[TaskClass]) -> Counts:
        """Return how many pods owners have yet to create [C], all of them in that class of theirs with most pods."""
        missing = np.zeros(len(classes), dtype=np.int64)
        owners = self._backlog.owners.by_uid
        rows_of_owner: dict[str, list[int]] = {}
        if owners:
            for row, task_class in enumerate(classes):
                if task_class.template.owner in owners:
                    rows_of_owner.setdefault(task_class.template.owner, []).append(row)
        for uid, rows in rows_of_owner.items():
            created = sum(classes[row].unfinished for row in rows)
            most = max(rows, key=lambda row: classes[row].unfinished)
            missing[most] = max(owners[uid].left - created, 0)
        return missing

    def _behind(self, jobs: Sequence[Job]) -> Mapping[Job, int]:
        """Return how many waiting jobs of its FIFO queue are before each job; empty where no queue is FIFO."""
        if not self._tree.any_fifo:
            return {}
        behind = dict.fromkeys(jobs, 0)
        counts = Counter[str]()
        for job in jobs:
            if self._tree.is_fifo(job.queue) and any(_waits(task_class) for task_class in job.classes.values()):
                behind[job] = counts[job.queue]
                counts[job.queue] += 1
        return behind


def in_order(classes: Sequence[TaskClass]) -> list[TaskClass]:
    """Return classes by queue, then by the arrival of their job, then by name."""
    keys = [((job := task_class.job).queue, job.arrived, job.name, task_class.name) for task_class in classes]
    return [classes[row] for row in sorted(range(len(classes)), key=keys.__getitem__)]


def _waits(task_class: TaskClass) -> bool:
    return bool(task_class.pods[PodPhase.READY] or task_class.pods[PodPhase.UNGATED])


def _to_end(task_class: TaskClass) -> int:
    """Return how many pods of a class are still to end: of services none that run, however long they have run."""
    running = len(task_class.pods[PodPhase.RUNNING]) if task_class.template.owner_kind in ENDLESS else 0
    return task_class.unfinished - running
