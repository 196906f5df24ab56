"""The classes and jobs that are open: arrays that stay the same until a job arrives or ends, or a stage opens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.waiting import Inputs
from lab.sim.workloads.stages import SOURCES, StageTable
from lab.sim.workloads.workload import BLOCKS

_BLOCKS = SOURCES.index(BLOCKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClasses:
    """The classes that have a waiting task [C], and the active jobs [J], as a scheduler sees them.

    `rows` [C] and `jobs` [J] are rows of the table. `job` [C] is a place in `jobs`, `queue` [J] one in `queue_names`.
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


def open_classes_of(table: StageTable, rows: Rows, jobs: Rows, inputs: Sequence[Inputs]) -> OpenClasses:
    """Return the open classes, given their rows and those of the active jobs; `inputs` are those of all stages."""
    queues = np.flatnonzero(np.bincount(table.job_queue[jobs]))
    classes = OpenClasses(
        rows=rows,
        jobs=jobs,
        names=[table.names[stage] for stage in rows.tolist()],
        job=np.searchsorted(jobs, table.job[rows]),
        demand=table.demand[rows],
        reading=table.reading[rows],
        inputs=[inputs[stage] for stage in rows.tolist()],
        expected=table.expected[rows],
        tasks=table.tasks[rows],
        reads=table.source[rows] == _BLOCKS,
        job_names=[table.job_names[job] for job in jobs.tolist()],
        queue=np.searchsorted(queues, table.job_queue[jobs]),
        queue_names=[table.queue_names[queue] for queue in queues.tolist()],
        queue_weight=table.queue_weight[queues],
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
