"""What is fitted to what: the free values of a workload, the baselines that are run, and the cells that these give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lab.experiments.fit.published import CAPACITY, DRF, FAIR, SUITE_SECONDS, TABLE_3, TABLE_6, Cell
from lab.sim.engine import clock
from lab.sim.engine.clock import SimulationSettings
from lab.sim.engine.outcome import Outcome
from lab.sim.schedulers.policies import policy
from lab.sim.workloads import specs
from lab.sim.workloads.parameters import MB, Facebook, Parameters, Range, Suite

SETTINGS = SimulationSettings(points=400, loss=1.0)
"""What the experiments' headline runs with: what is published of contention counts."""

Factors = Mapping[str, float]
"""Of each free value the factor on its default."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A value that may change, between the `least` and the `most` of its middle."""

    name: str
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class FitSize:
    """How large the runs of a fit are.

    Each job of the suite has `part` of its tasks: as many jobs as in full then meet on that part of the machines.
    """

    workload: str
    machines: str
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class Target:
    """A workload that is fitted: `group` of the parameters, the free values, and the cells to meet.

    A search begins with the values of `start`, found by hand in short runs of the baselines. `seconds` is how long a
    run should take, 0 if that is not published.
    """

    group: str
    start: Parameters
    knobs: Sequence[Knob]
    cells: Sequence[Cell]
    policies: Sequence[str]
    size: FitSize
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MeasuredCells:
    """The figures of a fit's runs, each the mean over the seeds: of each cell, and the makespan of each policy."""

    cells: tuple[float, ...]
    makespans: tuple[float, ...]

    def misses(self, target: Target) -> tuple[float, ...]:
        """Return ours less the paper's, cell by cell."""
        return tuple(ours - cell.paper for ours, cell in zip(self.cells, target.cells, strict=True))

    def fit(self, target: Target) -> float:
        """Return the largest miss of a cell."""
        return max(abs(miss) for miss in self.misses(target))

    def distance(self, target: Target) -> float:
        """Return what a search makes small: the squared misses, the largest once more, and the length of a run."""
        late = [seconds / target.seconds - 1.0 for seconds in self.makespans] if target.seconds else []
        return sum(miss**2 for miss in self.misses(target)) + self.fit(target) ** 2 + 0.1 * sum(x**2 for x in late)


def measure(target: Target, size: FitSize, seeds: Sequence[int], traces: Path, parameters: Parameters) -> MeasuredCells:
    """Return the figures of the baselines with these parameters. Raises DovetailError."""
    parameters = _with_part(parameters, size.part)
    outcomes = {name: [_run(name, size, seed, traces, parameters) for seed in seeds] for name in target.policies}
    fullness = {name: [run.fullness for run in runs] for name, runs in outcomes.items()}
    return MeasuredCells(
        tuple(cell.ours(fullness[cell.policy]) for cell in target.cells),
        tuple(float(np.mean([run.makespan for run in runs])) for runs in outcomes.values()),
    )


def _with_part(parameters: Parameters, part: float) -> Parameters:
    suite = parameters.suite
    large, medium, small = ((least * part, most * part) for least, most in (suite.large, suite.medium, suite.small))
    return replace(parameters, suite=replace(suite, large=large, medium=medium, small=small))


def with_factors(target: Target, factors: Factors) -> Parameters:
    """Return the values that a search begins with, each times its factor; each stays in the bounds of its knob."""
    group = getattr(target.start, target.group)
    changed = {
        knob.name: _scaled(getattr(group, knob.name), factors.get(knob.name, 1.0), knob) for knob in target.knobs
    }
    return replace(target.start, **{target.group: replace(group, **changed)})


def _scaled(value: float | Range, factor: float, knob: Knob) -> float | Range:
    middle = value if isinstance(value, float | int) else sum(value) / 2
    bounded = min(max(middle * factor, knob.least), knob.most) / middle
    if isinstance(value, tuple):
        return _rounded(value[0] * bounded), _rounded(value[1] * bounded)
    return _rounded(value * bounded)


def _rounded(value: float) -> float:
    """Return three digits: more would be noise of the search."""
    return float(f"{value:.3g}")


def _run(name: str, size: FitSize, seed: int, traces: Path, parameters: Parameters) -> Outcome:
    jobs, machines = specs.workload(size.workload, seed, traces, parameters), specs.machines(size.machines, parameters)
    return clock.run(jobs, machines, policy(name, seed), seed=seed, settings=SETTINGS, policy=name)


SUITE = Target(
    group="suite",
    start=Parameters(
        suite=Suite(
            memory_used=(0.5, 0.8),
            low_cpu=(470, 510),
            high_cpu=(850, 1000),
            cpu_of_large=1.9,
            low_cpu_io=(95 * MB, 190 * MB),
            high_cpu_io=(15 * MB, 30 * MB),
            split=(9e9, 12e9),
            disk=1600 * MB,
            network=1000 * MB,
        )
    ),
    knobs=[
        Knob("memory_used", 0.6, 0.9),
        Knob("low_cpu", 100, 1000),
        Knob("high_cpu", 700, 3500),
        Knob("cpu_of_large", 1, 4),
        Knob("low_cpu_io", 20 * MB, 400 * MB),
        Knob("high_cpu_io", 2 * MB, 100 * MB),
        Knob("split", 1e9, 40e9),
        Knob("disk", 800 * MB, 1600 * MB),
    ],
    cells=TABLE_6,
    policies=(CAPACITY, DRF),
    size=FitSize("suite", "tetris:31", part=1 / 8),
    seconds=SUITE_SECONDS,
)
FACEBOOK = Target(
    group="facebook",
    start=Parameters(facebook=Facebook(cpu=500, memory=1.2e9, disk=26.8 * MB, network=18 * MB, load=1550)),
    knobs=[
        Knob("cpu", 300, 500),
        Knob("memory", 0.6e9, 1.2e9),
        Knob("disk", 2 * MB, 60 * MB),
        Knob("network", 1 * MB, 40 * MB),
        Knob("load", 300, 3000),
    ],
    cells=TABLE_3,
    policies=(FAIR,),
    size=FitSize("swim:fb2010_0,jobs=500", "facebook:100"),
)
TARGETS = {target.group: target for target in (SUITE, FACEBOOK)}
