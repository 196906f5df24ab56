"""A job of a workload, and its share of machines, as `extender.graph` takes them."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.resources import CPU_INDEX, DISK_READ_INDEX, NETWORK_IN_INDEX
from extender.graph import Dag, Machines, Parent, Stage
from extender.words import many
from lab.errors import SpecError
from lab.sim.workloads import workload as simulated
from lab.sim.workloads.waves import seconds_alone
from lab.sim.workloads.workload import SHUFFLE, Job


def job_of(jobs: Sequence[Job], name: str | None) -> Job:
    """Return the job of this name, or the only one. Raises SpecError."""
    known = {job.name: job for job in jobs}
    if name is None and len(jobs) == 1:
        return jobs[0]
    if name is None or name not in known:
        some = ", ".join([*list(known)[:5], *(["..."] if len(known) > 5 else [])])
        count = many(len(jobs), "job")
        raise SpecError(f"--job {name or 'is missing'}: the workload has {count}; accepted: one of {some}")
    return known[name]


def dag_of(job: Job, machines: simulated.Machines, count: int | None) -> tuple[Dag, Machines, list[str]]:
    """Return the job, so many of the machines (None: all), and the names of the resources that count.

    What a task reads is a demand of its disk, or for a shuffle of its link. Raises SpecError where machines differ,
    GraphError where a stage is malformed.
    """
    capacity = machines.capacity[0]
    if (machines.capacity != capacity).any():
        raise SpecError(f"machines {machines.name}: they differ; accepted: machines of one shape")
    if count is not None and count > len(machines.capacity):
        raise SpecError(f"--share {count}: there are {len(machines.capacity)} machines; accepted: as many at most")
    demand = np.array([stage.demand for stage in job.stages])
    for row, stage in enumerate(job.stages):
        demand[row, NETWORK_IN_INDEX if stage.source == SHUFFLE else DISK_READ_INDEX] += stage.reading
    columns = counting(demand, capacity)
    share = count or len(machines.capacity)
    names = [machines.axis[column] for column in columns.tolist()]
    dag = Dag(
        [
            Stage(
                stage.name,
                _seconds(stage, share),
                demand[row, columns],
                tuple(Parent(job.stages[parent].name, parent in stage.one_to_one) for parent in stage.parents),
            )
            for row, stage in enumerate(job.stages)
        ]
    )
    return dag, Machines(share, capacity[columns]), names


def counting(demand: Floats, capacity: Floats) -> Rows:
    """Return the columns of the resources that count: a stage demands them [S, R], machines have a limit of them [R].

    It is CPU where none does.
    """
    columns = np.flatnonzero((demand > 0).any(axis=0) & np.isfinite(capacity))
    return columns if len(columns) else np.array([CPU_INDEX])


def _seconds(stage: simulated.Stage, machines: int) -> Floats:
    if stage.waves is not None:
        return seconds_alone(stage.waves, stage.tasks, machines)
    return np.asarray(stage.durations, dtype=float)
