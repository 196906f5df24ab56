"""Queries of the trace `tpch_dags` as a workload of the simulator: a task takes a core, and seconds by wave."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import CPU, DIMENSIONS, row_of
from lab.sim.dag.executors import MOVE_SECONDS
from lab.sim.dag.tpch import Arrival, sequence
from lab.sim.workloads.waves import least_seconds, seconds_alone
from lab.sim.workloads.workload import Job, Machines, Stage, Workload

EXECUTORS = 10
"""On so many the sequences were made to be run; schedulers expect what tasks take there."""
_CORE = np.array(row_of({CPU: 1000.0}, otherwise=0.0))


def executors(count: int) -> Machines:
    """Return machines that run a task at a time and take time to change jobs."""
    capacity: Floats = np.full((count, len(DIMENSIONS)), np.inf)
    capacity[:, DIMENSIONS.index(CPU)] = 1000.0
    return Machines(f"executors:{count}", capacity, move_seconds=np.full(count, MOVE_SECONDS))


def sequence_of(name: str, number: int, traces: Path) -> Workload:
    """Return one of the published sequences. Raises SpecError where it is missing, TraceError."""
    return workload_of(name, sequence(traces, number, EXECUTORS), EXECUTORS)


def workload_of(name: str, arrivals: Sequence[Arrival], count: int) -> Workload:
    """Return the queries as jobs that are named by the order of their arrival, for so many executors."""
    width = len(str(len(arrivals) - 1))
    jobs = [_job(f"{place:0{width}d}-{arrival.query.name}", arrival, count) for place, arrival in enumerate(arrivals)]
    return Workload(name, jobs, f"{len(jobs)} TPC-H queries, as they arrive on executors")


def _job(name: str, arrival: Arrival, count: int) -> Job:
    query, stages = arrival.query, []
    for row, tasks in enumerate(query.tasks):
        waves = query.waves(row)
        stages.append(
            Stage(
                f"stage-{row}",
                _CORE,
                0.0,
                float(seconds_alone(waves, tasks, count).mean()),
                np.full(tasks, least_seconds(waves, count)),
                query.parents[row],
                waves=waves,
            )
        )
    return Job(name, arrival.seconds, stages)
