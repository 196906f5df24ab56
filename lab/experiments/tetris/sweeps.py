"""Variants of one thing, each against the same baselines: knobs, ablations, heuristics, load, contention."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.experiments.sections import Figure, Listing, Plot, Section, Spots
from lab.experiments.seeds import Seeds
from lab.experiments.tetris.gains import (
    ATTAINABLE_MAKESPAN,
    ATTAINABLE_MEAN,
    MAKESPAN,
    MEAN_JOB_TIME,
    SLOWED,
    SLOWED_MEAN,
    SLOWED_WORST,
    Quantity,
    Results,
    RunPair,
    over_seeds,
    pairs,
)
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
                ("mean_job_time", "fair", MEAN_JOB_TIME, ATTAINABLE_MEAN, paper.job_time_vs_fair),
                ("mean_job_time", "drf", MEAN_JOB_TIME, ATTAINABLE_MEAN, paper.job_time_vs_drf),
                ("makespan", "fair", MAKESPAN, ATTAINABLE_MAKESPAN, paper.makespan_vs_fair),
                ("makespan", "drf", MAKESPAN, ATTAINABLE_MAKESPAN, paper.makespan_vs_drf),
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
                *(_percent(over_seeds(against[name], MEAN_JOB_TIME).mean) for name in names),
                *(_percent(over_seeds(against[name], MAKESPAN).mean) for name in names),
                *(_percent(over_seeds(against[name], SLOWED).mean) for name in names),
                ", ".join(_percent(over_seeds(against[names[0]], by).mean) for by in (SLOWED_MEAN, SLOWED_WORST)),
            )
            for variant, against in zip(self.variants, pairs_of_variants, strict=True)
        ]
        return Listing(heads, lines)

    def _plots(self, pairs_of_variants: Sequence[Mapping[str, Sequence[RunPair]]]) -> list[Plot]:
        spots = Spots(self.name, self.axis or self.name, [variant.label for variant in self.variants], self._places())

        def panels(quantities: Mapping[str, Quantity]) -> dict[str, dict[str, list[Seeds]]]:
            return {
                title: {
                    name: [over_seeds(against[name], quantity) for against in pairs_of_variants]
                    for name in self.baselines
                }
                for title, quantity in quantities.items()
            }

        gains = panels({"mean job time": MEAN_JOB_TIME, "makespan": MAKESPAN})
        drawn = [
            Plot(
                self.title,
                "Improvement over each baseline; bars: the range over seeds.",
                _panels("gains", spots, gains, "improvement, %"),
            )
        ]
        if self.slowed_plot:
            slower = panels({"slowed jobs": SLOWED, "by, mean": SLOWED_MEAN, "by, worst": SLOWED_WORST})
            note = (
                "Jobs slower than under each baseline: how many, and by how much in the mean and at worst (figure 9)."
            )
            drawn.append(Plot(f"{self.title}: slowed jobs", note, _panels("slowed", spots, slower, "%")))
        return drawn

    def _places(self) -> list[float]:
        """Return the places of the variants on the axis: their own `x`, else one after the other."""
        return [float(place) if variant.x is None else variant.x for place, variant in enumerate(self.variants)]


def _panels(
    name: str, spots: Spots, panels: Mapping[str, Mapping[str, Sequence[Seeds]]], unit: str
) -> Callable[[], str]:
    def draw() -> str:
        from lab.experiments import curves

        return curves.panels(name, spots, panels, unit)

    return draw


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1f}"
