"""The classes and jobs that are open: arrays that stay the same until a job arrives or ends, or a stage opens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.waiting import Inputs, QueueGroups, Shuffle
from extender.planner import attainable
from lab.sim.workloads.stages import StageTable
from lab.sim.workloads.workload import BLOCKS, SOURCES

_BLOCKS = SOURCES.index(BLOCKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClasses:
    """The classes that have a waiting task [C], and the active jobs [J], as a scheduler sees them.

    `rows` [C] and `jobs` [J] are rows of the table. `job` [C] is a place in `jobs`, `queue` [J] one in `queue_names`.
    `priority` [C], `barred` [C, N] and `gang` [C] as in cluster.waiting.Waiting: each stage of a gang is one.
    `tasks` [C] counts all tasks of the class, `reads` [C] says which read blocks, `expected` [C] are seconds.
    """

    rows: Rows
    jobs: Rows
    names: Sequence[str]
    job: Rows
    demand: Floats
    reading: Floats
    inputs: Sequence[Inputs]
    expected: Floats
    tasks: Counts
    reads: Mask
    job_names: Sequence[str]
    queue: Rows
    queue_names: Sequence[str]
    queue_weight: Floats
    groups: QueueGroups | None
    priority: Counts | None
    barred: Mask | None
    gang: Rows | None


def open_classes_of(table: StageTable, rows: Rows, jobs: Rows, inputs: Sequence[Inputs]) -> OpenClasses:
    """Return the open classes, given their rows and those of the active jobs; `inputs` are those of all stages."""
    queues = np.flatnonzero(np.bincount(table.job_queue[jobs]))
    classes = OpenClasses(
        rows=rows,
        jobs=jobs,
        names=[table.names[stage] for stage in rows.tolist()],
        job=np.searchsorted(jobs, table.job[rows]),
        demand=table.seen[rows],
        reading=table.reading[rows],
        inputs=[inputs[stage] for stage in rows.tolist()],
        expected=table.expected[rows],
        tasks=table.tasks[rows],
        reads=table.source[rows] == _BLOCKS,
        job_names=[table.job_names[job] for job in jobs.tolist()],
        queue=np.searchsorted(queues, table.job_queue[jobs]),
        queue_names=[table.queue_names[queue] for queue in queues.tolist()],
        queue_weight=table.queue_weight[queues],
        groups=None
        if table.tree is None
        else table.tree.groups([table.queue_names[queue] for queue in queues.tolist()]),
        priority=None if table.priority is None else table.priority[rows],
        barred=None if table.constraint is None else ~table.allowed[table.constraint[rows]],
        gang=_gangs(table.gang, rows),
    )
    for array in (
        classes.job,
        classes.demand,
        classes.reading,
        classes.expected,
        classes.queue,
        classes.queue_weight,
    ):
        array.setflags(write=False)
    return classes


def as_served(classes: OpenClasses, capacity: Floats) -> OpenClasses:
    """Return the classes with what they read no faster than machines of this `capacity` [N, R] could ever serve.

    All tasks of a class count as reading as fast as the one that can read slowest, of those that can at all: else it
    would never start. As in a cluster's ledger (`extender.cluster.pods.reckoning`), but for single tasks there.
    """
    reading, inputs = classes.reading.copy(), list(classes.inputs)
    arrays = classes.demand, classes.reading, classes.inputs, classes.barred
    for row, rates in attainable(*arrays, capacity):
        declared, class_inputs = reading.item(row), inputs[row]
        most = np.floor(rates.min(initial=declared, where=rates > 0))
        if isinstance(class_inputs, Shuffle) and most < declared:
            served = np.floor(class_inputs.rates * (most / declared))
            most = served.sum()
            inputs[row] = Shuffle(class_inputs.nodes, served)
        reading[row] = most
    if np.array_equal(reading, classes.reading):
        return classes
    reading.setflags(write=False)
    return replace(classes, reading=reading, inputs=inputs)


def _gangs(of_gang: Mask | None, rows: Rows) -> Rows | None:
    """Return the gang of each class, counted from 0, -1 for none; None where no class has one."""
    if of_gang is None or not of_gang[rows].any():
        return None
    gang = np.cumsum(of_gang[rows]) - 1
    gang[~of_gang[rows]] = -1
    return gang
