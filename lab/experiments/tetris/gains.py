"""What one contender gains over others in a setup, for each seed, in the paper's terms (Tetris, 5.1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from extender.arrays import Floats
from lab.experiments.seeds import Seeds, paired
from lab.experiments.tetris.runs import RunSummary, Setup, TetrisContender
from lab.sim.report.compared import Slowed, bound_share, improvement, job_changes, slowed
from lab.sim.runs import Run

Results = Mapping[Run, RunSummary]


@dataclass(frozen=True, slots=True)
class RunPair:
    """Ours beside a baseline: runs for job time, and for makespan (the same, or with all jobs at the start)."""

    ours: RunSummary
    theirs: RunSummary
    our_makespan: float
    their_makespan: float
    least_makespan: float

    @property
    def makespan(self) -> float:
        """How much less makespan, in percent."""
        return improvement(self.their_makespan, self.our_makespan)

    @property
    def attainable_makespan(self) -> float:
        """How much less makespan any scheduler could have at most, in percent."""
        return improvement(self.their_makespan, self.least_makespan)

    @property
    def attainable_mean(self) -> float:
        """How much less mean job time any scheduler could have at most, in percent."""
        return improvement(float(self.theirs.job_seconds.mean()), self.ours.bounds.mean_job_seconds)

    @property
    def attainable_median(self) -> float:
        """The median of the jobs' improvements if each was alone in the cluster: no scheduler has more."""
        return float(np.median(job_changes(self.theirs.job_seconds, self.ours.bounds.job_seconds)))

    @property
    def mean_job_time(self) -> float:
        """How much less mean job time, in percent."""
        return improvement(float(self.theirs.job_seconds.mean()), float(self.ours.job_seconds.mean()))

    @property
    def changes(self) -> Floats:
        """Each job's improvement in percent [J]."""
        return job_changes(self.theirs.job_seconds, self.ours.job_seconds)

    @property
    def median_change(self) -> float:
        """The median of the jobs' improvements: where the CDF of figure 4a crosses a half."""
        return float(np.median(self.changes))

    @property
    def mean_change(self) -> float:
        """The mean of the jobs' improvements."""
        return float(self.changes.mean())

    @property
    def change_of_median(self) -> float:
        """How much less the median job time is, in percent."""
        return improvement(float(np.median(self.theirs.job_seconds)), float(np.median(self.ours.job_seconds)))

    @property
    def slowed(self) -> Slowed:
        """The jobs that take longer with ours."""
        return slowed(self.theirs.job_seconds, self.ours.job_seconds)


Quantity = Callable[[RunPair], float]
MAKESPAN: Quantity = attrgetter("makespan")
MEAN_JOB_TIME: Quantity = attrgetter("mean_job_time")
MEDIAN_CHANGE: Quantity = attrgetter("median_change")
ATTAINABLE_MAKESPAN: Quantity = attrgetter("attainable_makespan")
ATTAINABLE_MEAN: Quantity = attrgetter("attainable_mean")
ATTAINABLE_MEDIAN: Quantity = attrgetter("attainable_median")
SLOWED: Quantity = attrgetter("slowed.percent")
SLOWED_MEAN: Quantity = attrgetter("slowed.mean")
SLOWED_WORST: Quantity = attrgetter("slowed.worst")


def pairs(
    results: Results, setup: Setup, ours: TetrisContender, theirs: TetrisContender, seeds: Sequence[int]
) -> list[RunPair]:
    """Return ours beside theirs for each seed."""
    return [
        RunPair(
            ours=results[setup.run(ours, seed)],
            theirs=results[setup.run(theirs, seed)],
            our_makespan=results[setup.makespan_run(ours, seed)].makespan,
            their_makespan=results[setup.makespan_run(theirs, seed)].makespan,
            least_makespan=results[setup.makespan_run(ours, seed)].bounds.makespan,
        )
        for seed in seeds
    ]


def over_seeds(pairs: Sequence[RunPair], figure: Quantity) -> Seeds:
    """Return a figure of each pair."""
    return Seeds(tuple(figure(pair) for pair in pairs))


def job_time_share(ours: Sequence[RunPair], bounds: Sequence[RunPair]) -> Seeds:
    """Return what part of the bound's gain in mean job time over one baseline is ours, in percent, for each seed."""

    def share(pair: RunPair, bound: RunPair) -> float:
        return bound_share(*(float(run.job_seconds.mean()) for run in (pair.theirs, pair.ours, bound.ours)))

    return paired(ours, bounds, share)


def makespan_share(ours: Sequence[RunPair], bounds: Sequence[RunPair]) -> Seeds:
    """Return what part of the bound's gain in makespan over one baseline is ours, in percent, for each seed."""
    return paired(
        ours, bounds, lambda pair, bound: bound_share(pair.their_makespan, pair.our_makespan, bound.our_makespan)
    )
