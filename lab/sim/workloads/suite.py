"""The workload suite of Tetris's deployment (5.1), drawn by a seed.

A job is a map stage, which reads one block per task, and a reduce stage, which reads the maps' output once all have
ended. Its kind (how many tasks, how much it writes per byte read) is one of four, equally likely; whether a stage's
tasks need much memory and much CPU is drawn per stage. A map reads a split and writes split x ratio; a reduce reads
its part of what the maps wrote and writes that x ratio. Reading, writing and computing take as long as each other at
their peaks, so a task's duration is its bytes over its rates, and rate x duration gives the bytes back.

The size of a job counts maps and reduces. There are `ratio` reduces per map, so that a reduce reads as much as a map.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import DIMENSIONS, DISK_WRITE_INDEX
from lab.sim.workloads.draws import durations, uniform
from lab.sim.workloads.parameters import GIB, Parameters
from lab.sim.workloads.parameters import Suite as SuiteParameters
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, Job, Stage, Workload

HOUR = 3600.0
"""Jobs arrive uniformly in the first hour."""

HIGH_MEMORY, LOW_MEMORY = 8 * GIB, 2 * GIB

LARGE, MEDIUM, SMALL = "large", "medium", "small"


@dataclass(frozen=True, slots=True)
class JobKind:
    """One of the four: its size, and the bytes that a task writes per byte that it reads."""

    name: str
    size: str
    ratio: float


KINDS = (
    JobKind("large-highly-selective", LARGE, 0.2),
    JobKind("medium-inflating", MEDIUM, 2.0),
    JobKind("medium-selective", MEDIUM, 0.5),
    JobKind("small-selective", SMALL, 0.5),
)


@dataclass(frozen=True, slots=True)
class TaskShape:
    """What a task of a stage takes at its peak: millicores, bytes, bytes read per second, bytes written per second."""

    cpu: float
    memory: float
    reading: float
    writing: float

    @property
    def demand(self) -> Floats:
        """Return it as a stage's demand [6], besides reading."""
        row = np.zeros(len(DIMENSIONS))
        row[:2] = self.cpu, self.memory
        row[DISK_WRITE_INDEX] = self.writing
        return row


def suite(seed: int, *, jobs: int | None = None, parameters: Parameters | None = None) -> Workload:
    """Return the suite of this seed; `jobs` other than the table's only to replay on another number of machines."""
    chosen = (parameters or Parameters()).suite
    rng = np.random.default_rng(seed)
    count = chosen.jobs if jobs is None else jobs
    arrivals = np.sort(rng.uniform(0.0, HOUR, count))
    return Workload(
        name="suite",
        jobs=[_job(rng, chosen, number, float(at)) for number, at in enumerate(arrivals)],
        about=f"the deployment suite of Tetris 5.1: {count} jobs, seed {seed}",
        output_copies=chosen.output_copies,
    )


def _job(rng: np.random.Generator, chosen: SuiteParameters, number: int, arrives_at: float) -> Job:
    kind = KINDS[rng.integers(len(KINDS))]
    size = uniform(rng, {LARGE: chosen.large, MEDIUM: chosen.medium, SMALL: chosen.small}[kind.size])
    maps = max(1, round(size / (1 + kind.ratio)))
    reduces = max(1, round(size) - maps)
    split = uniform(rng, chosen.split)
    part = split * kind.ratio * maps / reduces
    return Job(
        name=f"{number:03}-{kind.name}",
        arrives_at=arrives_at,
        stages=(
            _stage(rng, chosen, _StageWork("map", maps, split, kind.ratio, BLOCKS)),
            _stage(rng, chosen, _StageWork("reduce", reduces, part, kind.ratio, SHUFFLE, parents=(0,))),
        ),
    )


@dataclass(frozen=True, slots=True)
class _StageWork:
    """The work of a stage: `tasks`, each of which reads `read` bytes and writes `ratio` times that."""

    name: str
    tasks: int
    read: float
    ratio: float
    source: str
    parents: tuple[int, ...] = ()


def _stage(rng: np.random.Generator, chosen: SuiteParameters, plan: _StageWork) -> Stage:
    shape = _shape(rng, chosen, plan.ratio)
    duration = plan.read / shape.reading
    return Stage(
        name=plan.name,
        demand=shape.demand,
        reading=shape.reading,
        duration=duration,
        durations=durations(rng, plan.tasks, duration, chosen.duration_spread),
        parents=plan.parents,
        source=plan.source,
    )


def _shape(rng: np.random.Generator, chosen: SuiteParameters, ratio: float) -> TaskShape:
    """Draw the stage's classes, and its amounts in them. `*_io` is reading and writing together."""
    is_large = rng.random() < 0.5
    memory, factor = (HIGH_MEMORY, chosen.cpu_of_large) if is_large else (LOW_MEMORY, 1.0)
    cpu, io = (chosen.high_cpu, chosen.high_cpu_io) if rng.random() < 0.5 else (chosen.low_cpu, chosen.low_cpu_io)
    rate = uniform(rng, io)
    return TaskShape(
        cpu=round(uniform(rng, cpu) * factor),
        memory=round(memory * uniform(rng, chosen.memory_used)),
        reading=round(rate / (1 + ratio)),
        writing=round(rate * ratio / (1 + ratio)),
    )
