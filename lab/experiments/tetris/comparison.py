"""The main comparisons: our planner beside the paper's baselines and its simple upper bound, on one workload."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.cluster.resources import DIMENSIONS
from lab.experiments.sections import Figure, Listing, Plot, Section
from lab.experiments.seeds import Seeds
from lab.experiments.tetris.gains import Results, RunPair, pairs
from lab.experiments.tetris.runs import Contender, RunSummary, Setup
from lab.sim.runs import Run

OURS, BOUND = Contender("tetris"), Contender("upper-bound")
FAIR, DRF, CAPACITY = Contender("slot-fair"), Contender("drf"), Contender("capacity")

_IO = ("disk-read", "disk-write", "network-in", "network-out")


@dataclass(frozen=True, slots=True)
class Against:
    """Our planner beside one baseline, over the seeds, and the bound beside the same."""

    ours: Sequence[RunPair]
    bound: Sequence[RunPair]


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A number of the paper's and how ours is found, against the baseline of this name."""

    id: str
    baseline: str
    find: Callable[[Against], Seeds]
    paper: float | None
    note: Callable[[Mapping[str, Against]], str]


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """A part of an experiment: these baselines, our planner and the bound in one setup."""

    name: str
    title: str
    about: str
    setup: Setup
    baselines: Mapping[str, Contender]
    claims: Sequence[PaperClaim]
    seeds: Sequence[int]
    notes: Sequence[str] = ()

    @property
    def contenders(self) -> list[Contender]:
        """All contenders that are compared."""
        return [*self.baselines.values(), OURS, BOUND]

    def runs(self) -> list[Run]:
        """Return each contender's runs for each seed."""
        return [
            run
            for contender in self.contenders
            for seed in self.seeds
            for run in (self.setup.run(contender, seed), self.setup.makespan_run(contender, seed))
        ]

    def section(self, results: Results) -> Section:
        """Return the paper's numbers beside ours, and the figures of each contender."""
        against = {name: self._against(results, baseline) for name, baseline in self.baselines.items()}
        return Section(
            title=self.title,
            about=self.about,
            figures=[
                Figure(claim.id, claim.find(against[claim.baseline]), claim.paper, claim.note(against))
                for claim in self.claims
            ],
            listings=[self._listing(results), self._tightness(results)],
            notes=self.notes,
            plots=self._plots(results, against),
        )

    def _against(self, results: Results, baseline: Contender) -> Against:
        ours, bound = (pairs(results, self.setup, contender, baseline, self.seeds) for contender in (OURS, BOUND))
        return Against(ours, bound)

    def _listing(self, results: Results) -> Listing:
        """Return the figures of each contender, the mean over the seeds."""
        heads = (
            "policy",
            "makespan s",
            "job time s",
            "median",
            "p90",
            "slow-down",
            "running",
            "local",
            "over-allocated",
        )
        return Listing(heads, [self._line(results, contender) for contender in self.contenders])

    def _line(self, results: Results, contender: Contender) -> tuple[str, ...]:
        summaries = [results[self.setup.run(contender, seed)] for seed in self.seeds]
        makespan = np.mean([results[self.setup.makespan_run(contender, seed)].makespan for seed in self.seeds])
        return (
            contender.policy,
            f"{makespan:,.0f}",
            f"{_mean(summaries, lambda run: float(run.job_seconds.mean())):,.0f}",
            f"{_mean(summaries, lambda run: float(np.median(run.job_seconds))):,.0f}",
            f"{_mean(summaries, lambda run: float(np.percentile(run.job_seconds, 90))):,.0f}",
            f"{_mean(summaries, lambda run: run.slow_down):.2f}",
            f"{_mean(summaries, lambda run: run.running):,.0f}",
            ""
            if any(math.isnan(run.locality) for run in summaries)
            else f"{_mean(summaries, lambda run: run.locality):.0%}",
            f"{_mean(summaries, lambda run: float(run.fullness.over_allocated.max())):.0%}",
        )

    def _tightness(self, results: Results) -> Listing:
        """Return the probability that a machine's load is above 75, 90 and 100 % (Tetris, table 6)."""
        lines = []
        for contender in self.contenders:
            high = np.mean([results[self.setup.run(contender, seed)].fullness.high for seed in self.seeds], axis=0)
            lines.append(
                (contender.policy, *(" ".join(f"{part:.2f}" for part in high[:, at]) for at in range(len(DIMENSIONS))))
            )
        return Listing(("load above 75 90 100 %", *DIMENSIONS), lines)

    def _plots(self, results: Results, against: Mapping[str, Against]) -> list[Plot]:
        changes = {
            f"vs {name}": np.concatenate([pair.changes for pair in gains.ours]) for name, gains in against.items()
        }
        series = {
            contender.policy: results[self.setup.run(contender, self.seeds[0])].series for contender in self.contenders
        }
        one_run = f"One run, of seed {self.seeds[0]}."

        def draw_changes() -> str:
            from lab.experiments.tetris import figures

            return figures.changes(self.name, changes, "Change in job time with our planner")

        def draw_running() -> str:
            from lab.experiments.tetris import figures

            return figures.running(self.name, series)

        def draw_use() -> str:
            from lab.experiments.tetris import figures

            return figures.use(self.name, series)

        return [
            Plot(f"{self.name}: job time", "The jobs of all seeds, as in the paper's figures 4a and 7.", draw_changes),
            Plot(f"{self.name}: running tasks", f"{one_run} As in the paper's figure 5a.", draw_running),
            Plot(
                f"{self.name}: use of each dimension",
                f"{one_run} As in figures 5b and 5c; dotted: what tasks want, more than there is where over-allocated.",
                draw_use,
            ),
        ]


def _mean(summaries: Sequence[RunSummary], figure: Callable[[RunSummary], float]) -> float:
    return float(np.mean([figure(run) for run in summaries]))
