"""The jobs of a backlog as the planner's arrays: what each holds, what it has left, its place in a FIFO queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.cluster.snapshot import Layout
from extender.cluster.waiting import Jobs
from extender.control.backlog import Backlog, Job, Stage, TaskClass
from extender.control.tree import QueueTree
from extender.policy.remaining import remaining_work, work_per_task

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JobRows:
    """The jobs; by queue and name the row of each, and how many of its FIFO queue come before it."""

    jobs: Jobs
    rows: Mapping[tuple[str, str], int]
    behind: Mapping[tuple[str, str], int]

    def rows_of(self, classes: Sequence[TaskClass]) -> Rows:
        """Return the row of each class's job [C]."""
        return np.array([self.rows[it.job.queue, it.job.name] for it in classes], dtype=np.intp)

    def behind_of(self, classes: Sequence[TaskClass]) -> Counts | None:
        """Return how many jobs come before each class's [C]; None where nobody stands behind anybody."""
        if not any(self.behind.values()):
            return None
        return np.array([self.behind[it.job.queue, it.job.name] for it in classes], dtype=np.int64)


class JobsOf:
    """Makes them; under the backlog's lock."""

    def __init__(self, backlog: Backlog, tree: QueueTree) -> None:
        self._backlog, self._tree = backlog, tree
        self._vectors: tuple[Layout | None, dict[TaskClass, Floats]] = (None, {})

    def next(self, classes: Sequence[TaskClass], held: Counts, layout: Layout, now: float) -> JobRows:
        """Return the jobs of these classes, of which so many pods hold room [C]. A FIFO queue is one row."""
        there = {(it.job.queue, it.job.name): it.job for it in classes}
        jobs = sorted(there.items(), key=lambda pair: place_of(pair[1]))
        rows: dict[tuple[str, str], int] = {}
        names: list[str] = []
        queue_of: list[str] = []
        fifo_row: dict[str, int] = {}
        for key, job in jobs:
            if self._tree.is_fifo(job.queue):
                if job.queue not in fifo_row:
                    fifo_row[job.queue] = len(names)
                    names.append(f"{job.queue}|")
                    queue_of.append(job.queue)
                rows[key] = fifo_row[job.queue]
            else:
                rows[key] = len(names)
                names.append(f"{job.queue}|{job.name}")
                queue_of.append(job.queue)
        row = np.array([rows[it.job.queue, it.job.name] for it in classes], dtype=np.intp)
        demand = np.array(self._demands(classes, layout)).reshape(len(classes), len(layout.axis))
        queue_names, queue, queue_weight = self._tree.shares(queue_of)
        found = Jobs(
            names=names,
            queue=queue,
            weight=np.ones(len(names)),
            allocated=_allocated(held, row, demand, len(names)),
            work=self._work(classes, row, demand, layout, len(names), now),
            queue_names=queue_names,
            queue_weight=queue_weight,
            groups=self._tree.groups(queue_names),
        )
        return JobRows(found, rows, self._behind([job for _, job in jobs]))

    def _demands(self, classes: Sequence[TaskClass], layout: Layout) -> list[Floats]:
        """Return what a pod of each class demands [R]; kept as long as class and layout are there."""
        known = self._vectors[1] if self._vectors[0] is layout else {}
        found = {it: known[it] if it in known else layout.vector(it.like.demand) for it in classes}
        self._vectors = layout, found
        return list(found.values())

    def _work(
        self, classes: Sequence[TaskClass], row: Rows, demand: Floats, layout: Layout, jobs: int, now: float
    ) -> Floats:
        """Return what each job has left [J]: its pods that have not ended, and those that its owner has yet to make."""
        usual = self._backlog.usual_seconds()
        duration = np.array([it.seconds(usual, now) for it in classes])
        left = np.array([it.unfinished for it in classes], dtype=np.int64)
        left += self._not_made_yet(classes)
        return remaining_work(work_per_task(demand, duration, layout.total), left, row, jobs)

    def _not_made_yet(self, classes: Sequence[TaskClass]) -> Counts:
        """Return how many pods owners have yet to make [C], counted to the class of theirs that has most pods."""
        by_owner: dict[str, list[int]] = {}
        for index, it in enumerate(classes):
            if it.like.owner in self._backlog.workloads.owners:
                by_owner.setdefault(it.like.owner, []).append(index)
        missing = np.zeros(len(classes), dtype=np.int64)
        for uid, indices in by_owner.items():
            there = sum(classes[index].unfinished for index in indices)
            most = max(indices, key=lambda index: classes[index].unfinished)
            missing[most] = max(self._backlog.workloads.owners[uid].left - there, 0)
        return missing

    def _behind(self, jobs: Sequence[Job]) -> Mapping[tuple[str, str], int]:
        """Return how many jobs of the same FIFO queue are older, by job; they come in their order. None if none is."""
        if not self._tree.any_fifo:
            return {}
        places: dict[tuple[str, str], int] = {(job.queue, job.name): 0 for job in jobs}
        counts: dict[str, int] = {}
        for job in jobs:
            if self._tree.is_fifo(job.queue) and any(_waits(it) for it in job.classes.values()):
                places[job.queue, job.name] = counts.get(job.queue, 0)
                counts[job.queue] = places[job.queue, job.name] + 1
        return places


def place_of(job: Job) -> tuple[str, float, str]:
    """Return where a job stands among all, in their order: by queue, then the oldest first."""
    return job.queue, job.arrived, job.name


def _allocated(held: Counts, row: Rows, demand: Floats, jobs: int) -> Floats:
    """Return what jobs hold [J, R] (`usage`)."""
    found = np.zeros((jobs, demand.shape[1]))
    np.add.at(found, row, demand * held[:, np.newaxis])
    return found


def _waits(of: TaskClass) -> bool:
    return bool(of.pods[Stage.READY] or of.pods[Stage.UNGATED])
