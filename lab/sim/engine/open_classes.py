"""What of a table is open at a time: it stays as it is until a job arrives or ends, or a stage opens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.waiting import Inputs
from lab.sim.workloads.stages import SOURCES, StageTable
from lab.sim.workloads.workload import BLOCKS

_BLOCKS = SOURCES.index(BLOCKS)


@dataclass(frozen=True, slots=True)
class OpenClasses:
    """The open classes, which have tasks that wait, and jobs, as a scheduler is told; rows are those of the table."""

    classes: Rows
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


def open_classes_of(table: StageTable, classes: Rows, jobs: Rows, inputs: Sequence[Inputs]) -> OpenClasses:
    """Return what is open where these classes and jobs are; `inputs` are those of all stages."""
    queues = np.flatnonzero(np.bincount(table.job_queue[jobs]))
    found = OpenClasses(
        classes=classes,
        jobs=jobs,
        names=[table.names[stage] for stage in classes.tolist()],
        job=np.searchsorted(jobs, table.job[classes]),
        demand=table.demand[classes],
        reading=table.reading[classes],
        inputs=[inputs[stage] for stage in classes.tolist()],
        expected=table.expected[classes],
        tasks=table.tasks[classes],
        reads=table.source[classes] == _BLOCKS,
        job_names=[table.job_names[job] for job in jobs.tolist()],
        queue=np.searchsorted(queues, table.job_queue[jobs]),
        queue_names=[table.queue_names[queue] for queue in queues.tolist()],
        queue_weight=table.queue_weight[queues],
    )
    for array in (found.job, found.demand, found.reading, found.expected, found.queue, found.queue_weight):
        array.setflags(write=False)
    return found
