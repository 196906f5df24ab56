"""Runs of one seed side by side: on clusters by contender, and in the simulator by name."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from extender.app.ordering import policy_of
from extender.planner import Planner, Scheduler
from lab.experiments.cluster.figures import Fared, Watched, fared, mean_of, watched
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
"""Dovetail as on a cluster; its planner if it knows and chooses where everything is read; and a plain stock."""

LATENCIES = (0.1, 0.2, 0.3, 0.4)
"""How often, in seconds, the simulator looks at what has ended: about as quickly as a control plane tells.

Ties and rounding make makespans of one seed differ by several percent, whatever the scheduler: so it is the mean.
"""


@dataclass(frozen=True)
class Round:
    """What became of one seed."""

    scene: ClusterSetup
    observed: Mapping[ClusterContender, Observed]
    simulated: Mapping[str, Sequence[Outcome]]

    @cached_property
    def outcomes(self) -> dict[str, Sequence[Outcome]]:
        """The runs that have come to their end, by name."""
        ended = {who.name: [it.outcome] for who, it in self.observed.items() if it.outcome is not None}
        return {**ended, **self.simulated}

    @cached_property
    def fared(self) -> dict[str, Fared]:
        """Those in numbers."""
        jobs, machines = self.scene.workload, self.scene.machines
        return {name: mean_of([fared(jobs, machines, it) for it in runs]) for name, runs in self.outcomes.items()}

    @cached_property
    def watched(self) -> dict[str, Watched]:
        """What the watches showed, by contender's name."""
        return {who.name: watched(it.history) for who, it in self.observed.items()}

    def less(self, than: str, figure: Callable[[Fared], float]) -> float:
        """Return by how many percent Dovetail's figure is less than another's; not a number if either has not ended."""
        if DOVETAIL.name not in self.fared or than not in self.fared:
            return math.nan
        return improvement(figure(self.fared[than]), figure(self.fared[DOVETAIL.name]))


def names_of(scenes: Sequence[ClusterSetup], contenders: Sequence[ClusterContender]) -> list[str]:
    """Return what the runs on clusters are called where it is shown how far they are."""
    return [_name(who, scene) for scene in scenes for who in contenders]


def run_round(
    programs: Mapping[str, Path], scene: ClusterSetup, contenders: Sequence[ClusterContender], show: Show
) -> Round:
    """Run one seed: simulated first, then on a fresh control plane by one contender after the other."""
    schedulers: Mapping[str, Callable[[], Scheduler]] = {
        SIM: lambda: SimulatedControl(settings_of(scene), scene.machines),
        SIM_ALL: lambda: Planner(policy_of(settings_of(scene))),
        SIM_KUBE: lambda: RandomSource(KubeDefault(scene.seed), scene.seed),
    }
    simulated = {
        name: [simulate(scene, make(), name, seconds) for seconds in LATENCIES] for name, make in schedulers.items()
    }
    observed = {who: run(programs, scene, who, _shown(show, _name(who, scene))) for who in contenders}
    return Round(scene, observed, simulated)


def _name(who: ClusterContender, scene: ClusterSetup) -> str:
    return f"{who.name}, seed {scene.seed}"


def _shown(show: Show, name: str) -> Callable[[int, int], None]:
    return lambda ended, total: show(name, ended, total)


def less_than(rounds: Sequence[Round], than: str, figure: Callable[[Fared], float]) -> Seeds:
    """Return by how many percent Dovetail's figure is less than another's in each round."""
    return Seeds(tuple(it.less(than, figure) for it in rounds))


def more_than(rounds: Sequence[Round], simulated: str, figure: Callable[[Fared], float]) -> Seeds:
    """Return by how many percent Dovetail's figure is more on the cluster than in the simulator in each round."""
    return Seeds(tuple(-it.less(simulated, figure) for it in rounds))


def of_run(rounds: Sequence[Round], name: str, figure: Callable[[Fared], float]) -> Seeds:
    """Return a figure of one run in each round."""
    return Seeds(tuple(figure(it.fared[name]) if name in it.fared else math.nan for it in rounds))


def of_watch(rounds: Sequence[Round], name: str, figure: Callable[[Watched], float]) -> Seeds:
    """Return a figure of one contender's watch in each round."""
    return Seeds(tuple(figure(it.watched[name]) for it in rounds))


def largest(several: Sequence[Seeds]) -> Seeds:
    """Return the mean over the rounds that is farthest from 0, without its sign; not a number where one is none."""
    means = [math.nan if any(map(math.isnan, it.values)) else abs(it.mean) for it in several]
    return Seeds((math.nan if any(map(math.isnan, means)) else max(means),))
