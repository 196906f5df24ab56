"""An aged backlog for `bench order`: an hour of one-pod jobs in queues of unlike weights, all there from the beginning.

Every job is a class of its own and soon older than any bound, so whatever age does to the order shows here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import QueueGroups, Waiting
from extender.planner import Plan, Planner, Policy
from extender.policy.shares import parts_as_wanted
from lab.bench.order.deep import slots, stage
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.engine.outcome import Outcome
from lab.sim.workloads.workload import Job, Workload

WEIGHTS: Mapping[str, float] = {"a": 3.0, "b": 1.0, "c": 1.0}
MINIMUMS: tuple[Mapping[str, float], ...] = ({}, {"c": 0.35}, {"a": 0.2, "b": 0.3, "c": 0.3})
_MACHINES, _CORES, _MEAN_SECONDS = 10, 4, 60.0
_WINDOW_TASKS = 5


@dataclass(frozen=True, slots=True)
class WindowShares:
    """`error`: the largest mean distance of a queue from its fair share over windows, in percent points.

    `min_broken`: seconds in which a queue below its minimum waited after room went to a queue above its own.
    """

    error: float
    min_broken: float


class WithMinimums:
    """A planner that is told of queues' minimum shares; the simulator's workloads have weights only."""

    def __init__(self, planner: Planner, minimums: Mapping[str, float]) -> None:
        self._planner, self._minimums = planner, minimums

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what the planner says."""
        jobs = waiting.jobs
        minimum = np.array([self._minimums.get(name, 0.0) for name in jobs.queue_names])
        count = len(minimum)
        groups = QueueGroups(jobs.queue_weight, minimum, np.full(count, -1, dtype=np.intp), np.arange(count))
        return self._planner.plan(snapshot, replace(waiting, jobs=replace(jobs, groups=groups)), now)


def aged(seed: int, minutes: float, minimums: Mapping[str, float]) -> Workload:
    """Return one-pod jobs of one core that keep 40 slots busy for so long, of each queue by its fair share."""
    draw = np.random.default_rng([seed, 7])
    whole = _MACHINES * _CORES * minutes * 60 / _MEAN_SECONDS
    jobs = []
    for queue, part in fair_shares(minimums).items():
        for index in range(int(whole * part)):
            seconds = draw.uniform(10.0, 2 * _MEAN_SECONDS - 10.0, 1)
            jobs.append(Job(f"{queue}{index:05}", 0.0, [stage("only", seconds)], queue))
    return Workload("aged", jobs, weights=WEIGHTS)


def fair_shares(minimums: Mapping[str, float]) -> dict[str, float]:
    """Return the queues' fair shares."""
    weight, minimum = np.array(list(WEIGHTS.values())), np.array([minimums.get(name, 0.0) for name in WEIGHTS])
    part = parts_as_wanted(weight, minimum, np.full(len(weight), -1, dtype=np.intp), np.full(len(weight), np.inf))
    return dict(zip(WEIGHTS, part.tolist(), strict=True))


def measure(seed: int, minutes: float, minimums: Mapping[str, float], policy: Policy) -> WindowShares:
    """Return how far shares were from fair in such a run, from the second window until a queue has nothing waiting."""
    outcome = run(
        aged(seed, minutes, minimums),
        slots(_MACHINES, _CORES),
        WithMinimums(Planner(policy), minimums),
        seed=seed,
        settings=SimulationSettings(heartbeat_seconds=1.0),
    )
    return shares_of(outcome, minimums)


def shares_of(outcome: Outcome, minimums: Mapping[str, float]) -> WindowShares:
    """Return what a run's own starts and ends say, whatever the planner thought."""
    queue = np.array([job.queue for job in outcome.jobs])
    started, ended = outcome.tasks.started, outcome.tasks.ended
    window = _WINDOW_TASKS * _MEAN_SECONDS
    until = min(started[queue == name].max() for name in WEIGHTS)
    slot_count = _MACHINES * _CORES
    errors = []
    for begin in np.arange(window, until - window, window):
        for name, fair in fair_shares(minimums).items():
            mine = queue == name
            held = np.clip(np.minimum(ended[mine], begin + window) - np.maximum(started[mine], begin), 0, None).sum()
            errors.append(abs(held / (window * slot_count) - fair))
    return WindowShares(100 * float(np.max(errors)), _broken_seconds(queue, started, ended, until, minimums))


def _broken_seconds(
    queue: NDArray[np.str_], started: Floats, ended: Floats, until: float, minimums: Mapping[str, float]
) -> float:
    """Return for how long a queue stood below its minimum after room had gone to one above its own minimum."""
    times = np.unique(np.concatenate((started, ended)))
    times = times[times < until]
    least = {name: minimums.get(name, 0.0) * _MACHINES * _CORES for name in WEIGHTS}
    # What runs of each queue right after each time, and what started then.
    running = {name: _count(started[queue == name], times) - _count(ended[queue == name], times) for name in WEIGHTS}
    starts = {name: np.isin(times, started[queue == name]) for name in WEIGHTS}
    seconds, lengths = 0.0, np.append(np.diff(times), 0.0)
    for name in WEIGHTS:
        short = running[name] + 1 <= least[name]  # one more would still be within it
        for other in WEIGHTS:
            if other != name:
                took = starts[other] & (running[other] > np.maximum(least[other], 1.0))
                seconds += float(lengths[short & took].sum())
    return seconds


def _count(events: Floats, times: Floats) -> Floats:
    return np.searchsorted(np.sort(events), times, side="right").astype(np.float64)
