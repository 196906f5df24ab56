"""The jobs of a backlog as the planner's arrays: what each holds, what it has left, its place in a FIFO queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.waiting import Jobs
from extender.control.backlog.backlog import Backlog, Job, PodPhase, TaskClass
from extender.control.queues.tree import QueueTree
from extender.policy.remaining import remaining_work, work_per_task


@dataclass(frozen=True, slots=True)
class JobRows:
    """The jobs; the row of each, and how many of its FIFO queue come before it."""

    jobs: Jobs
    rows: Mapping[Job, int]
    behind: Mapping[Job, int]

    def rows_of(self, classes: Sequence[TaskClass]) -> Rows:
        """Return the row of each class's job [C]."""
        return np.array([self.rows[it.job] for it in classes], dtype=np.intp)

    def behind_of(self, classes: Sequence[TaskClass]) -> Counts | None:
        """Return how many jobs come before each class's [C]; None where nobody stands behind anybody."""
        if not any(self.behind.values()):
            return None
        return np.array([self.behind[it.job] for it in classes], dtype=np.int64)


class JobRowsBuilder:
    """Makes them; under the backlog's lock."""

    def __init__(self, backlog: Backlog, tree: QueueTree) -> None:
        self._backlog, self._tree = backlog, tree
        self._vectors: _Vectors | None = None

    def next(self, classes: Sequence[TaskClass], held: Counts, seconds: Floats, layout: Layout) -> JobRows:
        """Return the jobs of these classes, which come job by job in the order of all (`place_of`).

        So many pods of each hold room [C], and so long do they run [C]. A FIFO queue is one row.
        """
        jobs = list(dict.fromkeys(it.job for it in classes))
        fifo = {name for name in {job.queue for job in jobs} if self._tree.is_fifo(name)}
        rows: dict[Job, int] = {}
        names: list[str] = []
        queue_of: list[str] = []
        for job in jobs:
            in_line = job.queue in fifo
            if not in_line or job.queue not in queue_of[-1:]:  # the jobs of a queue come together
                names.append(f"{job.queue}|" if in_line else f"{job.queue}|{job.name}")
                queue_of.append(job.queue)
            rows[job] = len(names) - 1
        row = np.array([rows[it.job] for it in classes], dtype=np.intp)
        demand = self.demands(classes, layout)
        if self._vectors is not None and self._vectors.classes > 2 * len(classes) + _KEPT_BESIDES:
            self._vectors = None  # most of those are gone
        queue_names, queue, queue_weight = self._tree.shares(queue_of)
        found = Jobs(
            names=names,
            queue=queue,
            weight=np.ones(len(names)),
            allocated=_allocated(held, row, demand, len(names)),
            work=self._work(classes, row, demand, seconds, layout, len(names)),
            queue_names=queue_names,
            queue_weight=queue_weight,
            groups=self._tree.groups(queue_names),
        )
        return JobRows(found, rows, self._behind(jobs))

    def demands(self, classes: Sequence[TaskClass], layout: Layout) -> Floats:
        """Return what a pod of each class demands [C, R]; many demand the same."""
        if self._vectors is None or self._vectors.layout is not layout:
            self._vectors = _Vectors(layout)
        return self._vectors.of(classes)

    def _work(
        self, classes: Sequence[TaskClass], row: Rows, demand: Floats, seconds: Floats, layout: Layout, jobs: int
    ) -> Floats:
        """Return what each job has left [J]: its pods that have not ended, and those that its owner has yet to make."""
        left = np.array([it.unfinished for it in classes], dtype=np.int64)
        left += self._not_made_yet(classes)
        return remaining_work(work_per_task(demand, seconds, layout.total), left, row, jobs)

    def _not_made_yet(self, classes: Sequence[TaskClass]) -> Counts:
        """Return how many pods owners have yet to make [C], counted to the class of theirs that has most pods."""
        missing = np.zeros(len(classes), dtype=np.int64)
        owners = self._backlog.workloads.owners
        by_owner: dict[str, list[int]] = {}
        if owners:
            for index, it in enumerate(classes):
                if it.like.owner in owners:
                    by_owner.setdefault(it.like.owner, []).append(index)
        for uid, indices in by_owner.items():
            there = sum(classes[index].unfinished for index in indices)
            most = max(indices, key=lambda index: classes[index].unfinished)
            missing[most] = max(owners[uid].left - there, 0)
        return missing

    def _behind(self, jobs: Sequence[Job]) -> Mapping[Job, int]:
        """Return how many jobs of the same FIFO queue are older, by job; they come in their order. None if none is."""
        if not self._tree.any_fifo:
            return {}
        places = dict.fromkeys(jobs, 0)
        counts: dict[str, int] = {}
        for job in jobs:
            if self._tree.is_fifo(job.queue) and any(_waits(it) for it in job.classes.values()):
                places[job] = counts.get(job.queue, 0)
                counts[job.queue] = places[job] + 1
        return places


_KEPT_BESIDES = 1_000


class _Vectors:
    """Demands as vectors, each distinct one once."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._row: dict[TaskClass, int] = {}
        self._row_of_demand: dict[tuple[tuple[str, float], ...], int] = {}
        self._table: list[Floats] = []

    @property
    def classes(self) -> int:
        """How many classes are known."""
        return len(self._row)

    def of(self, classes: Sequence[TaskClass]) -> Floats:
        """Return what a pod of each class demands [C, R]."""
        known = self._row
        rows = [known[it] if it in known else self._find(it) for it in classes]
        return np.array(self._table)[rows] if rows else np.zeros((0, len(self.layout.axis)))

    def _find(self, of: TaskClass) -> int:
        demand = tuple(sorted(of.like.demand.items()))
        row = self._row_of_demand.get(demand)
        if row is None:
            row = self._row_of_demand[demand] = len(self._table)
            self._table.append(self.layout.vector(of.like.demand))
        self._row[of] = row
        return row


def in_order(classes: Sequence[TaskClass]) -> list[TaskClass]:
    """Return classes by queue, then the oldest job, then by name."""
    places = [((job := it.job).queue, job.arrived, job.name, it.name) for it in classes]
    return [classes[index] for index in sorted(range(len(classes)), key=places.__getitem__)]


def _allocated(held: Counts, row: Rows, demand: Floats, jobs: int) -> Floats:
    """Return what jobs hold [J, R] (`usage`)."""
    found = np.zeros((jobs, demand.shape[1]))
    np.add.at(found, row, demand * held[:, np.newaxis])
    return found


def _waits(of: TaskClass) -> bool:
    return bool(of.pods[PodPhase.READY] or of.pods[PodPhase.UNGATED])
