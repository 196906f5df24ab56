"""The outcome of a run: when every job and task started and ended, and what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.resources import DIMENSIONS
from lab.sim.engine.measures import HIGH_LOADS, Fullness, Series
from lab.sim.engine.use.record import OpportunisticOutcome
from lab.sim.workloads.bounds import NO_BOUNDS, Bounds


@dataclass(frozen=True, slots=True)
class JobRun:
    """One job: `seconds` is its job time, `unfairness` as of measures.SeriesRecorder.unfairness."""

    name: str
    queue: str
    arrived: float
    started: float
    ended: float
    tasks: int
    unfairness: float

    @property
    def seconds(self) -> float:
        """How long it took from its arrival to the end of its last task."""
        return self.ended - self.arrived


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """All tasks in the order of the workload [T]: their stage, counted through it, when they ran and where.

    `seconds` is what each would take at its peaks, where that goes by waves at least. `source` is the node that it read
    from: its own node where it read there alone, -1 where it read from many.
    """

    stage: Rows
    seconds: Floats
    started: Floats
    ended: Floats
    node: Rows
    source: Rows


@dataclass(frozen=True, slots=True)
class BegunAnew:
    """How many times a task lost its work and began anew (preempted, evicted, killed, its node gone).

    `seconds` is for how long those had run.
    """

    times: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of the run itself: events are starts and ends of tasks; `plan_seconds` is the time inside plan()."""

    events: int
    decisions: int
    plans: int
    wall_seconds: float
    plan_seconds: float

    @property
    def events_per_second(self) -> float:
        """Starts and ends per second of the whole run."""
        return self.events / self.wall_seconds if self.wall_seconds > 0 else 0.0

    @property
    def decisions_per_second(self) -> float:
        """Tasks placed per second inside plan()."""
        return self.decisions / self.plan_seconds if self.plan_seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run of a workload by a policy on machines.

    `makespan` is from the first arrival to the last end. `jobs` are in the order of the workload. `locality` is the
    part of the tasks with a block that read it on their own node (NaN: no task has one). `queue_names` are the columns
    of `series.queues`. `axis` [R] are the dimensions. `bounds`: what no scheduler does better.
    `opportunistic` is None in a run in which use is the promise. `begun_anew`: the work that was lost.
    """

    workload: str
    policy: str
    machines: str
    seed: int
    makespan: float
    jobs: Sequence[JobRun]
    tasks: TaskRuns
    locality: float
    fullness: Fullness
    series: Series
    queue_names: Sequence[str]
    speed: Speed
    bounds: Bounds = NO_BOUNDS
    opportunistic: OpportunisticOutcome | None = None
    axis: tuple[str, ...] = DIMENSIONS
    begun_anew: BegunAnew = BegunAnew()

    @property
    def job_seconds(self) -> Floats:
        """Each job's time, in the order of the workload [J]."""
        return np.array([job.seconds for job in self.jobs])

    @property
    def job_waits(self) -> Floats:
        """How long each job waited for its first start, in the order of the workload [J]."""
        return np.array([job.started - job.arrived for job in self.jobs])

    @property
    def task_seconds(self) -> float:
        """The mean time that tasks took."""
        return float((self.tasks.ended - self.tasks.started).mean())

    @property
    def ideal_task_seconds(self) -> float:
        """The mean time that tasks would have taken at their peaks."""
        return float(self.tasks.seconds.mean())

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome for JSON, without single tasks. But for "speed" the same seed gives the same bytes."""
        series = self.series
        return {
            "workload": self.workload,
            "policy": self.policy,
            "machines": self.machines,
            "seed": self.seed,
            "makespan": self.makespan,
            "job_time": job_time(self.job_seconds),
            "tasks": {"count": len(self.tasks.stage), "mean": self.task_seconds, "ideal": self.ideal_task_seconds},
            "events": self.speed.events,
            "decisions": self.speed.decisions,
            "plans": self.speed.plans,
            "locality": None if np.isnan(self.locality) else self.locality,
            "fullness": _fullness(self.fullness, self.axis),
            "jobs": [asdict(job) | {"seconds": job.seconds} for job in self.jobs],
            "series": {
                "at": series.at.tolist(),
                "running": series.running.tolist(),
                "waiting": series.waiting.tolist(),
                "used": _by_dimension(series.used.T, self.axis),
                "allocated": _by_dimension(series.allocated.T, self.axis),
                "demanded": _by_dimension(series.demanded.T, self.axis),
                "queues": dict(zip(self.queue_names, series.queues.T.tolist(), strict=True)),
            },
            "speed": asdict(self.speed) | {"events_per_second": self.speed.events_per_second},
        }


def job_time(seconds: Floats) -> dict[str, float]:
    """Return mean, median and percentiles of job times [J]."""
    points = {f"p{percent}": float(np.percentile(seconds, percent)) for percent in (10, 25, 75, 90, 95, 99)}
    return {"mean": float(seconds.mean()), "median": float(np.median(seconds)), **points, "max": float(seconds.max())}


def _by_dimension(values: Floats, axis: Sequence[str]) -> dict[str, Any]:
    return dict(zip(axis, values.tolist(), strict=True))


def _by_level(high: Floats, axis: Sequence[str]) -> Mapping[str, Any]:
    return {f"{level:g}": _by_dimension(row, axis) for level, row in zip(HIGH_LOADS, high, strict=True)}


def _fullness(fullness: Fullness, axis: Sequence[str]) -> Mapping[str, Any]:
    return {
        "high": _by_level(fullness.high, axis),
        "promised": _by_level(fullness.promised, axis),
        "carried": _by_level(fullness.carried, axis),
        "over_allocated": _by_dimension(fullness.over_allocated, axis),
        "excess": _by_dimension(fullness.excess, axis),
        "fragmentation": fullness.fragmentation,
        "stranded": fullness.stranded,
    }
