"""A cluster and what waits for it, of any size: what the planner is timed on.

A third of the classes reads blocks, a sixth shuffles, the others read where they run; demands are spread as the
deployment suite's (Tetris, 5.1).
"""

from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Floats, read_only
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import CPU, DIMENSIONS, DISK_READ, DISK_WRITE, MEMORY, NETWORK_IN, NETWORK_OUT, row_of
from extender.cluster.waiting import Blocks, Inputs, Jobs, Running, Shuffle, Waiting
from lab.sim.engine.clock import empty_snapshot

_GIB, _MB = 2.0**30, 1e6
_RATES = {DISK_READ: 800 * _MB, DISK_WRITE: 800 * _MB, NETWORK_IN: 1250 * _MB, NETWORK_OUT: 1250 * _MB}
CAPACITY = np.array(row_of({CPU: 32_000, MEMORY: 96 * _GIB, **_RATES}))
_COPIES = 3
_SHUFFLED_FROM = 200
_STAGES_PER_JOB = 2
_SECONDS = 100.0


@dataclass(frozen=True, slots=True)
class PlanSize:
    """How many nodes, waiting tasks, and classes of them."""

    nodes: int
    tasks: int
    classes: int


def snapshot(size: PlanSize, *, full: float) -> Snapshot:
    """Return equal nodes on each of which this part of everything is allocated."""
    empty = empty_snapshot(np.tile(CAPACITY, (size.nodes, 1)))
    return replace(empty, allocated=read_only(np.floor(empty.layout.capacity * full)))


def waiting(size: PlanSize, draw: np.random.Generator, *, full: float) -> Waiting:
    """Return what waits, and what runs on the part of the cluster that is allocated."""
    per_class = size.tasks // size.classes
    jobs = -(-size.classes // _STAGES_PER_JOB)
    job = np.arange(size.classes) // _STAGES_PER_JOB
    return Waiting(
        names=[f"job-{job_row:04d}/stage-{row % _STAGES_PER_JOB}" for row, job_row in enumerate(job.tolist())],
        job=job,
        count=np.full(size.classes, per_class, dtype=np.int64),
        demand=demands(size.classes, draw),
        reading=np.round(draw.uniform(10, 60, size.classes)) * _MB,
        inputs=[_inputs(row, per_class, size.nodes, draw) for row in range(size.classes)],
        duration=np.full(size.classes, _SECONDS),
        since=np.zeros(size.classes),
        finished=draw.uniform(0, 0.8, size.classes),
        jobs=_jobs(jobs, draw),
        running=_running(size.nodes, full),
    )


def demands(classes: int, draw: np.random.Generator) -> Floats:
    """Return what a task of each class needs besides what it reads [C, R]."""
    demand = np.zeros((classes, len(DIMENSIONS)))
    demand[:, 0] = np.round(np.where(draw.random(classes) < 0.5, 2000, 600) * draw.uniform(0.5, 1.5, classes))
    demand[:, 1] = np.round(np.where(draw.random(classes) < 0.5, 8, 2) * draw.uniform(0.75, 1, classes) * _GIB)
    demand[:, 3] = np.round(draw.uniform(5, 50, classes)) * _MB
    return demand


def _inputs(row: int, tasks: int, nodes: int, draw: np.random.Generator) -> Inputs:
    if row % 6 in (0, 1):
        return Blocks(draw.integers(0, nodes, (tasks, _COPIES)).astype(np.intp), np.ones(tasks, dtype=np.bool_), nodes)
    if row % 6 == 2:
        sources = np.sort(draw.choice(nodes, min(_SHUFFLED_FROM, nodes), replace=False)).astype(np.intp)
        return Shuffle(sources, np.full(len(sources), 20 * _MB / len(sources)))
    return None


def _jobs(count: int, draw: np.random.Generator) -> Jobs:
    return Jobs(
        names=[f"job-{row:04d}" for row in range(count)],
        queue=np.zeros(count, dtype=np.intp),
        weight=np.ones(count),
        allocated=np.zeros((count, len(DIMENSIONS))),
        work=draw.uniform(1, 100, count),
        queue_names=("default",),
        queue_weight=np.ones(1),
    )


def _running(nodes: int, full: float) -> Running | None:
    if not full:
        return None
    return Running(np.arange(nodes), np.full(nodes, _SECONDS), np.tile(np.floor(CAPACITY * full), (nodes, 1)))
