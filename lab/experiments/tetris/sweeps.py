"""Variants of one thing, each against the same baselines: knobs, ablations, heuristics, load, contention."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.experiments.sections import Figure, Listing, Plot, Section, Spots
from lab.experiments.seeds import Seeds
from lab.experiments.tetris.gains import Results, RunPair, over_seeds, pairs
from lab.experiments.tetris.runs import Setup, TetrisContender
from lab.sim.runs import Run


@dataclass(frozen=True, slots=True)
class Published:
    """What the paper says of a variant, in percent: job time and makespan, against the fair scheduler and DRF."""

    job_time_vs_fair: float | None = None
    job_time_vs_drf: float | None = None
    makespan_vs_fair: float | None = None
    makespan_vs_drf: float | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One point of a sweep. `x` places it on the axis of the sweep's figure, where there is one."""

    label: str
    ours: TetrisContender
    setup: Setup
    x: float | None = None
    paper: Published = Published()


@dataclass(frozen=True, slots=True)
class Sweep:
    """A part of an experiment that varies one thing. `axis` names what is varied; with `rows` each variant has rows."""

    name: str
    title: str
    about: str
    variants: Sequence[Variant]
    baselines: Mapping[str, TetrisContender]
    seeds: Sequence[int]
    axis: str = ""
    notes: Sequence[str] = ()
    rows: bool = False
    slowed_plot: bool = False

    def runs(self) -> list[Run]:
        """Return every run of every variant, and of the baselines in its setup."""
        return [
            run
            for variant in self.variants
            for contender in (variant.ours, *self.baselines.values())
            for seed in self.seeds
            for run in (variant.setup.run(contender, seed), variant.setup.makespan_run(contender, seed))
        ]

    def section(self, results: Results) -> Section:
        """Return how each variant did."""
        pairs_of_variants = [self._pairs(results, variant) for variant in self.variants]
        return Section(
            title=self.title,
            about=self.about,
            figures=[
                row
                for variant, against in zip(self.variants, pairs_of_variants, strict=True)
                for row in self._rows(variant, against)
            ],
            listings=[self._listing(pairs_of_variants)],
            notes=self.notes,
            plots=self._plots(pairs_of_variants),
        )

    def _pairs(self, results: Results, variant: Variant) -> dict[str, list[RunPair]]:
        return {
            name: pairs(results, variant.setup, variant.ours, baseline, self.seeds)
            for name, baseline in self.baselines.items()
        }

    def _rows(self, variant: Variant, against: Mapping[str, Sequence[RunPair]]) -> list[Figure]:
        if not self.rows:
            return []
        paper = variant.paper
        return [
            Figure(
                f"{self.name}.{variant.label}.{quantity}_vs_{name}",
                over_seeds(against[name], figure),
                published,
                attainable=over_seeds(against[name], attainable),
            )
            for quantity, name, figure, attainable, published in (
                ("mean_job_time", "fair", _job_time, _attainable_mean, paper.job_time_vs_fair),
                ("mean_job_time", "drf", _job_time, _attainable_mean, paper.job_time_vs_drf),
                ("makespan", "fair", _makespan, _attainable_makespan, paper.makespan_vs_fair),
                ("makespan", "drf", _makespan, _attainable_makespan, paper.makespan_vs_drf),
            )
            if name in against
        ]

    def _listing(self, pairs_of_variants: Sequence[Mapping[str, Sequence[RunPair]]]) -> Listing:
        names = list(self.baselines)
        heads = (
            self.axis or self.name,
            *(f"job time vs {name}, %" for name in names),
            *(f"makespan vs {name}, %" for name in names),
            *(f"slower than {name}, %" for name in names),
            f"slower than {names[0]} by, mean and worst",
        )
        lines = [
            (
                variant.label,
                *(_percent(over_seeds(against[name], _job_time).mean) for name in names),
                *(_percent(over_seeds(against[name], _makespan).mean) for name in names),
                *(_percent(over_seeds(against[name], _slowed).mean) for name in names),
                ", ".join(_percent(over_seeds(against[names[0]], by).mean) for by in (_slowed_mean, _slowed_worst)),
            )
            for variant, against in zip(self.variants, pairs_of_variants, strict=True)
        ]
        return Listing(heads, lines)

    def _plots(self, pairs_of_variants: Sequence[Mapping[str, Sequence[RunPair]]]) -> list[Plot]:
        spots = Spots(self.name, self.axis or self.name, [variant.label for variant in self.variants], self._places())
        gains = {
            title: {
                name: [over_seeds(against[name], figure) for against in pairs_of_variants] for name in self.baselines
            }
            for title, figure in (("mean job time", _job_time), ("makespan", _makespan))
        }
        drawn = [Plot(self.title, "Improvement over each baseline; bars: the range over seeds.", _gains(spots, gains))]
        if self.slowed_plot:
            slower = {
                title: {
                    name: [over_seeds(against[name], figure) for against in pairs_of_variants]
                    for name in self.baselines
                }
                for title, figure in (
                    ("slowed jobs", _slowed),
                    ("by, mean", _slowed_mean),
                    ("by, worst", _slowed_worst),
                )
            }
            note = (
                "Jobs slower than under each baseline: how many, and by how much in the mean and at worst (figure 9)."
            )
            drawn.append(Plot(f"{self.title}: slowed jobs", note, _slowed_jobs(spots, slower)))
        return drawn

    def _places(self) -> list[float]:
        """Return the places of the variants on the axis: their own `x`, else one after the other."""
        return [float(place) if variant.x is None else variant.x for place, variant in enumerate(self.variants)]


def _gains(spots: Spots, gains: Mapping[str, Mapping[str, Sequence[Seeds]]]) -> Callable[[], str]:
    def draw() -> str:
        from lab.experiments import curves

        return curves.panels("gains", spots, gains, "improvement, %")

    return draw


def _slowed_jobs(spots: Spots, slower: Mapping[str, Mapping[str, Sequence[Seeds]]]) -> Callable[[], str]:
    def draw() -> str:
        from lab.experiments import curves

        return curves.panels("slowed", spots, slower, "%")

    return draw


def _job_time(pair: RunPair) -> float:
    return pair.mean_job_time


def _makespan(pair: RunPair) -> float:
    return pair.makespan


def _attainable_mean(pair: RunPair) -> float:
    return pair.attainable_mean


def _attainable_makespan(pair: RunPair) -> float:
    return pair.attainable_makespan


def _slowed(pair: RunPair) -> float:
    return pair.slowed.percent


def _slowed_mean(pair: RunPair) -> float:
    return pair.slowed.mean


def _slowed_worst(pair: RunPair) -> float:
    return pair.slowed.worst


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1f}"
