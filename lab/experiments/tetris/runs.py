"""The runs of the experiment, and a summary of each: an outcome has megabytes, a comparison needs a few numbers."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from extender.arrays import Floats
from lab.sim import runs
from lab.sim.engine.clock import SimulationSettings
from lab.sim.engine.measures import Fullness, Series
from lab.sim.engine.outcome import Outcome
from lab.sim.parallel import Tell
from lab.sim.report.tables import mean_running, slow_down
from lab.sim.workloads.bounds import Bounds

_POINTS = 400


@dataclass(frozen=True, slots=True)
class TetrisContender:
    """A policy by its name, or a planner with this tuning under that name."""

    policy: str
    tuning: runs.Tuning = ()


@dataclass(frozen=True, slots=True)
class Setup:
    """A workload on machines, as a user writes them.

    `makespan_at_start`: makespan is measured with all jobs at the start, job time with their arrivals (Tetris, 5.3.1).
    `parameters`: which unpublished value is other than usual, as sim.parameters.variants calls it.
    """

    workload: str
    machines: str
    makespan_at_start: bool = False
    parameters: str = ""
    settings: SimulationSettings = field(default_factory=lambda: SimulationSettings(points=_POINTS))
    traces: Path = Path()

    def run(self, contender: TetrisContender, seed: int) -> runs.Run:
        """Return the run by which job time is measured."""
        return runs.Run(
            workload=self.workload,
            machines=self.machines,
            policy=contender.policy,
            seed=seed,
            tuning=contender.tuning,
            parameters=self.parameters,
            settings=self.settings,
            traces=self.traces,
        )

    def makespan_run(self, contender: TetrisContender, seed: int) -> runs.Run:
        """Return the run by which makespan is measured."""
        return replace(self.run(contender, seed), at_start=self.makespan_at_start)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run: `job_seconds` [J] in the order of the workload."""

    makespan: float
    job_seconds: Floats
    slow_down: float
    running: float
    locality: float
    fullness: Fullness
    series: Series
    bounds: Bounds


def perform(run: runs.Run, tell: Tell) -> RunSummary:
    """Return the summary of a run. Raises DovetailError."""
    return summary_of(runs.perform(run, tell))


def summary_of(run: Outcome) -> RunSummary:
    """Return the summary of an outcome, without single tasks."""
    return RunSummary(
        makespan=run.makespan,
        job_seconds=run.job_seconds,
        slow_down=slow_down(run),
        running=mean_running(run),
        locality=run.locality,
        fullness=run.fullness,
        series=run.series,
        bounds=run.bounds,
    )
