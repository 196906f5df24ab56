"""How far makespan and job time of simulated runs are from those that were recorded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from extender.arrays import Floats
from lab.report.rows import Report, Row
from lab.sim import runs
from lab.sim.engine.clock import SimulationSettings

MARK = 3.0
"""Percent: the simulated stock scheduler should come so near to the recorded one."""
SEEDS = 10


@dataclass(frozen=True, slots=True)
class Gap:
    """One recorded run of so many `pods`: what was, and what each seed of the simulation gave.

    `recorded` [2] and `simulated` [S, 2] are makespan and mean job time in seconds.
    """

    pods: int
    recorded: Floats
    simulated: Floats

    @property
    def percent(self) -> Floats:
        """How far the mean of the simulations is from what was [2], in percent of that."""
        return np.asarray(100 * (self.simulated.mean(axis=0) / self.recorded - 1))


def gap_of(file: Path, pods: int, tell: Callable[[], None], seeds: int = SEEDS) -> Gap:
    """Replay a recording as it was, and by the simulated stock scheduler, once for each seed."""
    recorded = _times(file, "recorded", 1)
    simulated = []
    for seed in range(1, seeds + 1):
        simulated.append(_times(file, "kube-default", seed))
        tell()
    return Gap(pods, recorded, np.array(simulated))


def _times(file: Path, policy: str, seed: int) -> Floats:
    """Return makespan and mean job time [2] of a replay."""
    settings = SimulationSettings(heartbeat_seconds=0.0)
    run = runs.Run(f"recording:{file}", "recorded", policy, seed, settings=settings)
    outcome = runs.perform(run, lambda _done, _total: None)
    return np.array([outcome.makespan, sum(job.seconds for job in outcome.jobs) / len(outcome.jobs)])


def report(gaps: Sequence[Gap]) -> Report:
    """Return the rows, and a table of the runs."""
    percent = np.array([gap.percent for gap in gaps])
    mean = np.abs(percent).mean(axis=0).tolist()
    what = f"stock scheduler, {len(gaps)} runs, mean of {len(gaps[0].simulated)} seeds each"
    rows = [
        Row("record.replay_gap", round(float(np.abs(percent).max()), 2), "%", MARK, f"the largest of all; {what}"),
        Row("record.replay_gap.makespan", round(mean[0], 2), "%", MARK, f"in the mean, without signs; {what}"),
        Row("record.replay_gap.job_time", round(mean[1], 2), "%", MARK, f"in the mean, without signs; {what}"),
    ]
    table = Table(title="Simulated stock scheduler against what was recorded")
    for heading in ("run", "pods", "makespan s", "simulated", "gap %", "job time s", "simulated", "gap %"):
        table.add_column(heading, justify="right")
    for number, gap in enumerate(gaps, 1):
        cells = [str(number), str(gap.pods)]
        for column in range(2):
            least, most = gap.simulated[:, column].min(), gap.simulated[:, column].max()
            cells += [f"{gap.recorded[column]:.1f}", f"{least:.1f} to {most:.1f}", f"{gap.percent[column]:+.1f}"]
        table.add_row(*cells)
    return Report(rows, [table])
