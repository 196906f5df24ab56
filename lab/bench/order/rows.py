"""The benchmark of the order: deep and aged backlogs, and room kept idle, each measured from what really ran.

Rows and what they must reach are in docs/results/benchmarks.md; docs/concepts/turns.md has the rule that they check.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from extender.planner import Planner, Policy
from lab.bench.order import aged, deep, kept
from lab.report.rows import Report, Row
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.schedulers.policies import policy

_SLOTS = 10


@dataclass(frozen=True, slots=True)
class OrderSize:
    """How much to run: seeds, jobs of a deep backlog, minutes of an aged one, minutes of a cluster with hard tasks."""

    seeds: int
    jobs: int
    aged_minutes: float
    aged_seeds: int
    kept_minutes: float

    @property
    def runs(self) -> int:
        """How many runs that comes to."""
        return len(deep.FAMILIES) * self.seeds + len(aged.MINIMUMS) * self.aged_seeds + self.seeds


FULL = OrderSize(seeds=5, jobs=50, aged_minutes=60.0, aged_seeds=2, kept_minutes=60.0)
QUICK = OrderSize(seeds=1, jobs=20, aged_minutes=20.0, aged_seeds=1, kept_minutes=15.0)


@dataclass(frozen=True, slots=True)
class Deep:
    """One deep backlog: how much less than by DRF the mean and the worst job took, in percent."""

    family: str
    seed: int
    mean: float
    worst: float


def measure(size: OrderSize, progress: Callable[[], None], first_seed: int = 0) -> Report:
    """Run all parts with the default policy, and return the rows."""
    seeds = range(first_seed, first_seed + size.seeds)
    backlogs = []
    for family in deep.FAMILIES:
        for seed in seeds:
            backlogs.append(_deep(family, seed, size.jobs))
            progress()
    shares = []
    for seed in seeds[: size.aged_seeds]:
        for minimums in aged.MINIMUMS:
            shares.append((minimums, aged.measure(seed, size.aged_minutes, minimums, Policy())))
            progress()
    idle = []
    for seed in seeds:
        idle.append(kept.measure(seed, size.kept_minutes, Policy()))
        progress()
    return _report(size, backlogs, [each for _, each in shares], idle)


def _deep(family: str, seed: int, jobs: int) -> Deep:
    workload, machines, settings = (
        deep.deep(family, seed, jobs),
        deep.slots(_SLOTS),
        SimulationSettings(heartbeat_seconds=1.0),
    )
    drf = run(workload, machines, policy("drf", seed), seed=seed, settings=settings).job_seconds
    ours = run(workload, machines, Planner(Policy()), seed=seed, settings=settings).job_seconds
    return Deep(family, seed, 100 * (1 - ours.mean() / drf.mean()), 100 * (1 - ours.max() / drf.max()))


def _report(
    size: OrderSize, backlogs: Sequence[Deep], shares: Sequence[aged.WindowShares], idle: Sequence[kept.Kept]
) -> Report:
    means, worst = np.array([backlog.mean for backlog in backlogs]), np.array([backlog.worst for backlog in backlogs])
    what = f"{size.jobs} DAG jobs on {_SLOTS} slots, {len(deep.FAMILIES)} families, {size.seeds} seeds"
    rows = [
        _row("deep.vs_drf", means.mean(), "%", f"mean job time below DRF's; {what}; {_range(means)}; must 30"),
        _row("deep.worst_vs_drf", worst.mean(), "%", f"the worst job below DRF's; {what}; {_range(worst)}; must 0"),
        _row(
            "aged.share_error",
            max(case.error for case in shares),
            "points",
            f"largest distance from the fair share, in any window of five mean tasks; {size.aged_minutes:g} minutes of "
            "one-pod jobs, weights 3 : 1 : 1, with and without minimums; at most 3",
        ),
        _row(
            "aged.min_broken",
            sum(case.min_broken for case in shares),
            "s",
            "a queue below its minimum waited after room went to one above its own; must 0",
        ),
        _row(
            "kept.idle",
            max(case.idle for case in idle),
            "%",
            f"largest part of a cluster that was free and of use, over any ten minutes; {size.seeds} random clusters "
            f"with large, hopeless and gang tasks, {size.kept_minutes:g} minutes; at most 5",
        ),
    ]
    return Report(rows, [_table(backlogs), _rows_table(rows)])


def _row(name: str, value: float, unit: str, note: str) -> Row:
    return Row(name, round(float(value), 2), unit, note=note)


def _range(values: np.ndarray) -> str:
    return f"{values.min():.1f} to {values.max():.1f}"


def _table(backlogs: Sequence[Deep]) -> Table:
    table = Table(title="Deep backlogs: percent below DRF")
    for heading in ("family", "seed", "mean job", "worst job"):
        table.add_column(heading, justify="left" if heading == "family" else "right")
    for backlog in backlogs:
        table.add_row(backlog.family, str(backlog.seed), f"{backlog.mean:.1f}", f"{backlog.worst:.1f}")
    return table


def _rows_table(rows: Sequence[Row]) -> Table:
    table = Table(title="The order")
    table.add_column("row", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("what it is")
    for row in rows:
        table.add_row(row.id, f"{row.ours:g} {row.unit}", row.note)
    return table
