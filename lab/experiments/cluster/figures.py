"""The figures of a run, on a cluster or in the simulator. Pure.

Symbols: T tasks, P points in time, Q queues.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from extender.arrays import Floats
from lab.experiments.cluster.history import History
from lab.sim.engine.contention import RATES
from lab.sim.engine.outcome import Outcome
from lab.sim.workloads.workload import BLOCKS, Machines, Stage, Workload


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run: seconds; percent of the maps that read on their node, and in their rack or nearer.

    `slow_down`: how many times as long as at their peaks tasks took. `shares`, by queue: percent of what is allocated
    to all queues, while tasks of each wait. `over`: percent of the time that a node's disk or link was over-allocated.
    """

    makespan: float
    mean: float
    median: float
    node_local: float
    rack_local: float
    slow_down: float
    shares: dict[str, float]
    over: float


_NUMBERS = tuple(field.name for field in fields(RunFigures) if field.name != "shares")


@dataclass(frozen=True, slots=True)
class WatchFigures:
    """What a cluster's watch showed: how many pods were lost, stuck and double, and seconds at their median and p99.

    `turn_to_bound`: from the removal of our gate to the pod's binding, of those that were held; where none was, from
    the pod's creation. `bound_to_running`: to KWOK's word; `open_to_created`: from the moment that a stage's pods are
    requested; `done_to_ended`: from the end of a task's work until that is seen.
    """

    lost: int
    stuck: int
    double: int
    turn_to_bound: tuple[float, float]
    open_to_created: tuple[float, float]
    bound_to_running: tuple[float, float]
    done_to_ended: tuple[float, float]


def run_figures(jobs: Workload, cluster: Machines, outcome: Outcome) -> RunFigures:
    """Return the figures of a run of these jobs on these machines."""
    runs, stages = outcome.tasks, _stages(jobs)
    reads = np.array([stage.source == BLOCKS for stage in stages])[runs.stage]
    on_node = runs.source[reads] == runs.node[reads]
    racks = cluster.racks if cluster.racks is not None else np.arange(len(cluster.capacity))
    in_rack = racks[runs.source[reads]] == racks[runs.node[reads]]
    return RunFigures(
        makespan=outcome.makespan,
        mean=float(outcome.job_seconds.mean()),
        median=float(np.median(outcome.job_seconds)),
        node_local=float(100 * on_node.mean()),
        rack_local=float(100 * in_rack.mean()),
        slow_down=outcome.task_seconds / outcome.ideal_task_seconds,
        shares=shares(jobs, outcome),
        over=float(100 * outcome.fullness.over_allocated[RATES].max()),
    )


def mean_of(runs: Sequence[RunFigures]) -> RunFigures:
    """Return the mean of runs of the same jobs."""
    numbers = {name: float(np.mean([getattr(run, name) for run in runs])) for name in _NUMBERS}
    queues = {name: float(np.mean([run.shares[name] for run in runs])) for name in runs[0].shares}
    return RunFigures(**numbers, shares=queues)


def watch_figures(history: History) -> WatchFigures:
    """Return the figures of what a watch showed."""
    held = history.held
    turn = history.turn[held] if held.any() else history.turn
    bound = history.bound[held] if held.any() else history.bound
    return WatchFigures(
        lost=history.lost,
        stuck=history.stuck,
        double=history.double,
        turn_to_bound=_percentiles(bound - turn),
        open_to_created=_percentiles(history.created - history.opened),
        bound_to_running=_percentiles(history.running - history.bound),
        done_to_ended=_percentiles(history.ended - history.done),
    )


def shares(jobs: Workload, outcome: Outcome) -> dict[str, float]:
    """Return each queue's part of all allocated shares in percent: the mean while tasks of every queue wait."""
    series = outcome.series
    waits = np.array([_waiting(jobs, outcome, name) for name in outcome.queue_names]) > 0
    contended = waits.all(axis=0)
    queue_shares = series.queues[contended]
    total = queue_shares.sum(axis=1, keepdims=True)
    part = np.divide(queue_shares, total, out=np.zeros_like(queue_shares), where=total > 0)
    mean = 100 * part.mean(axis=0) if len(part) else np.full(len(outcome.queue_names), np.nan)
    return dict(zip(outcome.queue_names, mean.tolist(), strict=True))


def _waiting(jobs: Workload, outcome: Outcome, queue: str) -> Floats:
    """Return how many tasks of a queue wait at each point in time [P]: in an open stage, and not started."""
    opened = _opened(jobs, outcome)[outcome.tasks.stage]
    in_queue = np.array(_queues(jobs))[outcome.tasks.stage] == queue
    at = outcome.series.at
    began, started = np.sort(opened[in_queue]), np.sort(outcome.tasks.started[in_queue])
    return np.asarray(
        np.searchsorted(began, at, side="right") - np.searchsorted(started, at, side="right"), dtype=float
    )


def _opened(jobs: Workload, outcome: Outcome) -> Floats:
    """Return when each stage opened: with its job, or when the last task of the stages before it ended."""
    stages = _stages(jobs)
    over = np.zeros(len(stages))
    np.maximum.at(over, outcome.tasks.stage, outcome.tasks.ended)
    opened, first = [], 0
    for job in jobs.jobs:
        for stage in job.stages:
            opened.append(max((float(over[first + parent]) for parent in stage.parents), default=job.arrives_at))
        first += len(job.stages)
    return np.array(opened)


def _stages(jobs: Workload) -> Sequence[Stage]:
    return [stage for job in jobs.jobs for stage in job.stages]


def _queues(jobs: Workload) -> Sequence[str]:
    return [job.queue for job in jobs.jobs for _ in job.stages]


def _percentiles(seconds: Floats) -> tuple[float, float]:
    """Return median and p99 of the finite values."""
    finite = seconds[np.isfinite(seconds)]
    if not len(finite):
        return float("nan"), float("nan")
    return float(np.percentile(finite, 50)), float(np.percentile(finite, 99))
