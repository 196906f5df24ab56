"""Runs of one seed side by side: on clusters by contender, and in the simulator by name."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from extender.app.tuning import policy_of
from extender.planner import Planner, Scheduler
from lab.experiments.cluster.figures import RunFigures, WatchFigures, mean_of, run_figures, watch_figures
from lab.experiments.cluster.pods import DOVETAIL, ClusterContender
from lab.experiments.cluster.run import ClusterSetup, Observed, run, settings_of, simulate
from lab.experiments.cluster.simulated_control import SimulatedControl
from lab.experiments.seeds import Seeds
from lab.report.progress import Show
from lab.sim.engine.outcome import Outcome
from lab.sim.report.compared import improvement
from lab.sim.schedulers.kube import KubeDefault
from lab.sim.schedulers.random_source import RandomSource

SIM, SIM_ALL, SIM_KUBE = "simulated", "sim. knows all", "sim. stock"
"""Dovetail as on a cluster; its planner if it sees and chooses where everything is read; the plain stock scheduler."""

LATENCIES = (0.1, 0.2, 0.3, 0.4)
"""Heartbeats of the simulator in seconds: a control plane reports an end about as quickly.

Ties and rounding change the makespan of one seed by several percent, so figures are the mean over these heartbeats.
"""


@dataclass(frozen=True)
class Round:
    """The runs of one seed: on clusters by contender, and simulated by name."""

    setup: ClusterSetup
    observed: Mapping[ClusterContender, Observed]
    simulated: Mapping[str, Sequence[Outcome]]

    @cached_property
    def outcomes(self) -> dict[str, Sequence[Outcome]]:
        """The runs that have come to their end, by name."""
        ended = {contender.name: [run.outcome] for contender, run in self.observed.items() if run.outcome is not None}
        return {**ended, **self.simulated}

    @cached_property
    def figures(self) -> dict[str, RunFigures]:
        """The figures of these runs, by name."""
        jobs, machines = self.setup.workload, self.setup.machines
        return {
            name: mean_of([run_figures(jobs, machines, run) for run in runs]) for name, runs in self.outcomes.items()
        }

    @cached_property
    def watch_figures(self) -> dict[str, WatchFigures]:
        """What the watches showed, by contender's name."""
        return {contender.name: watch_figures(run.history) for contender, run in self.observed.items()}

    def less(self, other: str, figure: Callable[[RunFigures], float]) -> float:
        """Return by how many percent Dovetail's figure is less than another's; not a number if either has not ended."""
        if DOVETAIL.name not in self.figures or other not in self.figures:
            return math.nan
        return improvement(figure(self.figures[other]), figure(self.figures[DOVETAIL.name]))


def names_of(setups: Sequence[ClusterSetup], contenders: Sequence[ClusterContender]) -> list[str]:
    """Return the names of the runs on clusters, for the progress display."""
    return [_name(contender, setup) for setup in setups for contender in contenders]


def run_round(
    programs: Mapping[str, Path], setup: ClusterSetup, contenders: Sequence[ClusterContender], show: Show
) -> Round:
    """Run one seed: simulated first, then on a fresh control plane by one contender after the other."""
    schedulers: Mapping[str, Callable[[], Scheduler]] = {
        SIM: lambda: SimulatedControl(settings_of(setup), setup.machines),
        SIM_ALL: lambda: Planner(policy_of(settings_of(setup))),
        SIM_KUBE: lambda: RandomSource(KubeDefault(setup.seed), setup.seed),
    }
    simulated = {
        name: [simulate(setup, make(), name, seconds) for seconds in LATENCIES] for name, make in schedulers.items()
    }
    observed = {
        contender: run(programs, setup, contender, _shown(show, _name(contender, setup))) for contender in contenders
    }
    return Round(setup, observed, simulated)


def _name(contender: ClusterContender, setup: ClusterSetup) -> str:
    return f"{contender.name}, seed {setup.seed}"


def _shown(show: Show, name: str) -> Callable[[int, int], None]:
    return lambda ended, total: show(name, ended, total)


def less_than(rounds: Sequence[Round], other: str, figure: Callable[[RunFigures], float]) -> Seeds:
    """Return by how many percent Dovetail's figure is less than another's in each round."""
    return Seeds(tuple(seed.less(other, figure) for seed in rounds))


def more_than(rounds: Sequence[Round], simulated: str, figure: Callable[[RunFigures], float]) -> Seeds:
    """Return by how many percent Dovetail's figure is more on the cluster than in the simulator in each round."""
    return Seeds(tuple(-seed.less(simulated, figure) for seed in rounds))


def of_run(rounds: Sequence[Round], name: str, figure: Callable[[RunFigures], float]) -> Seeds:
    """Return a figure of one run in each round."""
    return Seeds(tuple(figure(seed.figures[name]) if name in seed.figures else math.nan for seed in rounds))


def of_watch(rounds: Sequence[Round], name: str, figure: Callable[[WatchFigures], float]) -> Seeds:
    """Return a figure of one contender's watch in each round."""
    return Seeds(tuple(figure(seed.watch_figures[name]) for seed in rounds))


def largest(figures: Sequence[Seeds]) -> Seeds:
    """Return the largest mean of absolute values over the rounds; NaN if a value of any figure is NaN."""
    means = [sum(map(abs, seeds.values)) / len(seeds.values) for seeds in figures]
    return Seeds((math.nan if any(map(math.isnan, means)) else max(means),))
