"""The main comparisons: our planner beside the paper's baselines and its simple upper bound, on one workload."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.cluster.resources import DIMENSIONS
from lab.experiments.fit.published import Cell, high_loads
from lab.experiments.sections import Figure, Listing, Plot, Section
from lab.experiments.seeds import Seeds
from lab.experiments.tetris.gains import Results, RunPair, over_seeds, pairs
from lab.experiments.tetris.runs import RunSummary, Setup, TetrisContender
from lab.sim.runs import Run

OURS, PAPER, BOUND = TetrisContender("tetris"), TetrisContender("paper"), TetrisContender("upper-bound")
"""Ours, ours without what the paper does not have (critical jobs first), and the simple upper bound (2.2.3)."""
FAIR, CAPACITY = TetrisContender("slot-fair"), TetrisContender("capacity")
DRF, EXACT_DRF = TetrisContender("drf-yarn"), TetrisContender("drf")
"""The paper's DRF is YARN's, which rounds requests up (5.1); beside it one that gives each task its exact request."""


@dataclass(frozen=True, slots=True)
class Against:
    """Our planner beside one baseline, over the seeds, and the bound beside the same."""

    ours: Sequence[RunPair]
    bound: Sequence[RunPair]


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A number of the paper's and how ours is found, against the baseline of this name.

    `attainable`: what no scheduler could have more of (None: not known).
    """

    id: str
    baseline: str
    find: Callable[[Against], Seeds]
    paper: float | None
    note: Callable[[Mapping[str, Against]], str]
    attainable: Callable[[RunPair], float] | None = None


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """A part of an experiment: these baselines, our planner and the bound in one setup.

    `beside` is the same setup with contention that wastes nothing, printed beside each number (None: not run). `cells`
    are those of the paper's tables to which the workload was fitted.
    """

    name: str
    title: str
    about: str
    setup: Setup
    baselines: Mapping[str, TetrisContender]
    claims: Sequence[PaperClaim]
    seeds: Sequence[int]
    notes: Sequence[str] = ()
    beside: Setup | None = None
    cells: Sequence[Cell] = ()

    @property
    def contenders(self) -> list[TetrisContender]:
        """All contenders that are compared."""
        return [*self.baselines.values(), OURS, PAPER, BOUND]

    def runs(self) -> list[Run]:
        """Return each contender's runs for each seed."""
        return [
            run
            for setup in (self.setup, *([self.beside] if self.beside else []))
            for contender in self.contenders
            for seed in self.seeds
            for run in (setup.run(contender, seed), setup.makespan_run(contender, seed))
        ]

    def section(self, results: Results) -> Section:
        """Return the paper's numbers beside ours, and the figures of each contender."""
        against = {name: self._against(results, baseline) for name, baseline in self.baselines.items()}
        figures = self._figures(against)
        without = self._without_loss(results)
        papers = self._by_papers_policy(results)
        return Section(
            title=self.title,
            about=self.about,
            figures=[*figures, *self._fit(results)],
            listings=[
                _side_by_side(figures, {"the paper's policy": papers, "with loss 0": without}),
                self._listing(results),
                self._tightness(results),
            ],
            notes=self.notes,
            plots=self._plots(results, against),
            more=[*papers, *without],
        )

    def _figures(self, against: Mapping[str, Against]) -> list[Figure]:
        return [
            Figure(
                claim.id,
                claim.find(against[claim.baseline]),
                claim.paper,
                claim.note(against),
                attainable=over_seeds(against[claim.baseline].ours, claim.attainable) if claim.attainable else None,
            )
            for claim in self.claims
        ]

    def _without_loss(self, results: Results) -> list[Figure]:
        """Return the same figures where contention wastes nothing, each as `ID.loss_0`."""
        if self.beside is None:
            return []
        plain = replace(self, setup=self.beside, beside=None)
        against = {name: plain._against(results, baseline) for name, baseline in self.baselines.items()}
        return [replace(figure, id=f"{figure.id}.loss_0") for figure in plain._figures(against)]

    def _by_papers_policy(self, results: Results) -> list[Figure]:
        """Return the same figures of the planner without our rule for critical jobs, each as `ID.paper_policy`."""
        against = {name: self._against(results, baseline, PAPER) for name, baseline in self.baselines.items()}
        return [replace(figure, id=f"{figure.id}.paper_policy") for figure in self._figures(against)]

    def _fit(self, results: Results) -> list[Figure]:
        """Return the largest miss of a cell, the mean over the seeds."""
        if not self.cells:
            return []
        misses = {}
        for cell in self.cells:
            runs = [results[self.setup.run(TetrisContender(cell.policy), seed)] for seed in self.seeds]
            misses[cell.name] = cell.ours([run.fullness for run in runs]) - cell.paper
        worst = max(misses, key=lambda name: abs(misses[name]))
        note = f"the largest miss of a cell of the paper's table: {worst}, by {misses[worst]:+.2f}"
        return [Figure(f"{self.name}.fit", Seeds((abs(misses[worst]),)), None, note, "p")]

    def _against(self, results: Results, baseline: TetrisContender, planner: TetrisContender = OURS) -> Against:
        ours, bound = (pairs(results, self.setup, contender, baseline, self.seeds) for contender in (planner, BOUND))
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

    def _line(self, results: Results, contender: TetrisContender) -> tuple[str, ...]:
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
        """Return the probability that a machine's load is above 75, 90, 95 and 100 % (Tetris, tables 3 and 6)."""
        reading = self.cells[0].reading if self.cells else "high"
        lines = []
        for contender in self.contenders:
            high = high_loads([results[self.setup.run(contender, seed)].fullness for seed in self.seeds], reading)
            lines.append(
                (contender.policy, *(" ".join(f"{part:.2f}" for part in high[:, at]) for at in range(len(DIMENSIONS))))
            )
        return Listing(("load above 75 90 95 100 %", *DIMENSIONS), lines)

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


def _side_by_side(figures: Sequence[Figure], beside: Mapping[str, Sequence[Figure]]) -> Listing:
    """Return each number beside the same under other conditions, by their heads; none where these were not run."""
    columns = {head: others for head, others in beside.items() if others}
    lines = [
        (
            figure.id,
            "" if figure.paper is None else f"{figure.paper:g}",
            *(f"{one.ours.mean:.1f}" for one in (figure, *others)),
        )
        for figure, *others in zip(figures, *columns.values(), strict=True)
    ]
    return Listing(("id", "paper", "ours", *columns), lines)


def _mean(summaries: Sequence[RunSummary], figure: Callable[[RunSummary], float]) -> float:
    return float(np.mean([figure(run) for run in summaries]))
