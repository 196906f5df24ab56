"""How fast the simulator replays, how fast the planner plans, and where the time goes.

The replay is the paper's deployment suite on its machines with the full policy (Tetris, 5.1), on one core. The plan is
one call for many waiting tasks, on an empty cluster and on one that is half full.
"""

import cProfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from extender.planner import Planner, Policy
from lab.bench.speed.planning import PlanSize, snapshot, waiting
from lab.report.rows import Report, Row
from lab.sim import runs
from lab.sim.engine.outcome import Outcome

FULL = PlanSize(nodes=5_000, tasks=100_000, classes=200)
QUICK = PlanSize(nodes=100, tasks=2_000, classes=20)
SUITE = runs.Run("suite", "tetris:250", "tetris", seed=10)
SMALL_SUITE = runs.Run("suite:jobs=4", "tetris:10", "tetris", seed=10)

_MATCHINGS = ("machine", "pair", "bundle")
_FULL_PARTS = (0.0, 0.5)
PLANS = len(_MATCHINGS) * len(_FULL_PARTS)
"""How many plans are timed."""

_TRIES = 3
_EVENTS_NEEDED, _EVENTS_AIM = 20_000, 100_000
_PLACEMENTS_NEEDED, _PLACEMENTS_AIM = 10_000, 50_000


_STEPS = {
    ("board.py", "__init__"): "set up: what is free, whose turn, inputs",
    ("room.py", "fits"): "which classes fit on which nodes",
    ("board.py", "_look"): "a closer look at one node",
    ("board.py", "_pick"): "scores there",
    ("board.py", "_place"): "taking one: sources and shares",
    ("candidates.py", "follow"): "who still fits there",
}
"""What the planner's functions do, by file and name; their times include what they call."""


@dataclass(frozen=True, slots=True)
class PlanTiming:
    """One plan: how it matched, what part of the cluster was allocated, how many were placed, in how many seconds."""

    matching: str
    full: float
    placed: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Tasks placed per second."""
        return self.placed / self.seconds

    @property
    def id(self) -> str:
        """The end of its row's id."""
        return f"{self.matching}.{'half-full' if self.full else 'empty'}"


def replay(run: runs.Run, progress: Callable[[int, int], None]) -> Outcome:
    """Return what came of a run, in this process."""
    return runs.perform(run, progress)


def plans(size: PlanSize, progress: Callable[[], None]) -> Iterator[PlanTiming]:
    """Yield the best time of a few for each matching, on an empty and a half-full cluster."""
    for matching in _MATCHINGS:
        for full in _FULL_PARTS:
            tries = [_plan(size, matching, full) for _ in range(_TRIES)]
            progress()
            yield min(tries, key=lambda timing: timing.seconds)


def steps(size: PlanSize) -> list[tuple[str, float]]:
    """Return which part of a plan for a half-full cluster each step takes, under a profiler.

    From Python 3.12 a profiler also sees what other threads return from, so the whole is taken from the clock.
    """
    cluster, tasks = snapshot(size, full=_FULL_PARTS[-1]), waiting(size, np.random.default_rng(0), full=_FULL_PARTS[-1])
    profile, began = cProfile.Profile(), time.perf_counter()
    profile.runcall(Planner().plan, cluster, tasks, 0.0)
    whole = time.perf_counter() - began
    spent = dict.fromkeys(_STEPS.values(), 0.0)
    for entry in profile.getstats():
        code = entry.code
        if isinstance(code, str):  # a built-in function
            continue
        place = Path(code.co_filename)
        if place.parent.name == "planner" and (place.name, code.co_name) in _STEPS:
            spent[_STEPS[place.name, code.co_name]] += entry.totaltime
    return [(name, seconds / whole) for name, seconds in spent.items()]


def report(
    outcome: Outcome, timings: Sequence[PlanTiming], size: PlanSize, where: Sequence[tuple[str, float]] = ()
) -> Report:
    """Return the two rates, with where the time goes, and the tables."""
    usual = [timing for timing in timings if timing.matching == Policy().matching]
    slowest = min(usual, key=lambda timing: timing.per_second)
    share = outcome.speed.plan_seconds / outcome.speed.wall_seconds
    rows = [
        Row(
            "sim.events_per_s",
            round(outcome.speed.events_per_second),
            "1/s",
            note=f"{outcome.speed.events:,} starts and ends of {outcome.workload} on {outcome.machines}, one core; "
            f"{share:.0%} of the time in the planner, {1 - share:.0%} in the engine; needed {_EVENTS_NEEDED:,}, "
            f"aim {_EVENTS_AIM:,}",
        ),
        Row(
            "plan.placements_per_s",
            round(slowest.per_second),
            "1/s",
            note=f"{size.nodes:,} nodes, {size.tasks:,} waiting tasks in {size.classes} classes, {slowest.id} (the "
            f"slower of empty and half full); needed {_PLACEMENTS_NEEDED:,}, aim {_PLACEMENTS_AIM:,}",
        ),
        *(
            Row(
                f"plan.placements_per_s.{timing.id}",
                round(timing.per_second),
                "1/s",
                note=f"{timing.placed:,} in {timing.seconds:.2f} s",
            )
            for timing in timings
        ),
    ]
    return Report(rows, [_replayed(outcome), _planned(timings, size), *([_spent(where)] if where else [])])


def _plan(size: PlanSize, matching: str, full: float) -> PlanTiming:
    cluster, tasks = snapshot(size, full=full), waiting(size, np.random.default_rng(0), full=full)
    planner = Planner(Policy(matching=matching))
    began = time.perf_counter()
    plan = planner.plan(cluster, tasks, 0.0)
    return PlanTiming(matching, full, len(plan.assignments), time.perf_counter() - began)


def _replayed(outcome: Outcome) -> Table:
    speed = outcome.speed
    table = Table(title=f"{outcome.workload} on {outcome.machines}, {outcome.policy}, one core")
    for heading in ("", "seconds", "of all", "events/s", "plans"):
        table.add_column(heading, justify="right" if heading else "left")
    engine = speed.wall_seconds - speed.plan_seconds
    for name, seconds in (("planner", speed.plan_seconds), ("engine", engine)):
        table.add_row(name, f"{seconds:.1f}", f"{seconds / speed.wall_seconds:.0%}", "", "")
    table.add_row("all", f"{speed.wall_seconds:.1f}", "", f"{speed.events_per_second:,.0f}", f"{speed.plans:,}")
    return table


def _spent(where: Sequence[tuple[str, float]]) -> Table:
    table = Table(title="Where a plan's time goes (half-full cluster, under a profiler)")
    table.add_column("step")
    table.add_column("of all", justify="right")
    for name, part in where:
        table.add_row(name, f"{part:.0%}")
    table.add_row("the rest", f"{1 - sum(part for _, part in where):.0%}")
    return table


def _planned(timings: Sequence[PlanTiming], size: PlanSize) -> Table:
    table = Table(title=f"One plan: {size.nodes:,} nodes, {size.tasks:,} tasks in {size.classes} classes")
    for heading in ("matching", "cluster", "placed", "seconds", "placements/s"):
        table.add_column(heading, justify="left" if heading in ("matching", "cluster") else "right")
    for timing in timings:
        cluster = f"{timing.full:.0%} full" if timing.full else "empty"
        table.add_row(
            timing.matching, cluster, f"{timing.placed:,}", f"{timing.seconds:.2f}", f"{timing.per_second:,.0f}"
        )
    return table
