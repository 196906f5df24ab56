"""Single DAGs: the order found against the bound and against simple orders (Graphene, 8.3, figure 21, table 7)."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.graph import build
from extender.graph import orders as simple
from extender.graph.replay import replay
from lab.experiments.graphene import overbooking
from lab.experiments.graphene.family import draw, share
from lab.experiments.graphene.overbooking import span
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds
from lab.sim.parallel import Tell

LOADS = (0.5, 1.0, 2.0)
"""All work, in lengths of the longest path; most is to be gained at 1."""
_PERCENTILES = (50, 75, 90)
_QUARTERS = (25, 50, 75, 90)
_PAPER_BOUND = (1.04, 1.13, 1.25)
_PAPER_VS_BFS = {50: 25.0, 75: 57.0}
_STATISTICS = (("depth, median", "5"), ("depth above 10, %", "25"), ("trees, %", "40"), ("four parts or more, %", "24"))


@dataclass(frozen=True, slots=True)
class SingleRun:
    """So many DAGs of a seed, at a load, each with so much effort."""

    seed: int
    load: float
    dags: int
    effort: int | None = None

    @property
    def name(self) -> str:
        """What it is called while it runs."""
        return f"{self.dags} DAGs at load {self.load:g}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class MeasuredDags:
    """A DAG each [D]: the spans of the order found, of others by name, and of the bounds.

    `overbooked`: the spans of orders that take more of a machine than it has. `seconds`: of the processor, to build.
    `drawn` [D, 6]: depth, whether it is a tree, parts, stages, tasks, machines.
    """

    ours: Floats
    spans: Mapping[str, Floats]
    overbooked: Mapping[str, Floats]
    tightest: Floats
    new_lb: Floats
    seconds: Floats
    drawn: Floats


def perform(run: SingleRun, tell: Tell) -> MeasuredDags:
    """Build the orders of all its DAGs."""
    random = np.random.default_rng(run.seed)
    rows, spans, overbooked, drawn = [], list[dict[str, float]](), list[dict[str, float]](), []
    for number in range(run.dags):
        one = draw(random)
        machines = share(one.dag, run.load)
        begin = time.process_time()
        order = build(one.dag, machines, seed=run.seed, effort=run.effort)
        seconds = time.process_time() - begin
        others = {name: simple.baseline(name, one.dag, np.random.default_rng(run.seed)) for name in simple.BASELINES}
        spans.append({name: replay(one.dag, machines, ranks).span for name, ranks in others.items()})
        overbooked.append({name: span(one.dag, machines, rule) for name, rule in overbooking.RULES.items()})
        rows.append((order.span, order.bounds.tightest, order.bounds.new_lb, seconds))
        tasks = int(one.dag.count.sum())
        drawn.append((one.depth, one.tree, one.parts, len(one.dag), tasks, machines.count))
        tell(number + 1, run.dags)
    ours, tightest, new_lb, seconds_of = np.array(rows).T
    return MeasuredDags(
        ours, _by_name(spans), _by_name(overbooked), tightest, new_lb, seconds_of, np.array(drawn, dtype=float)
    )


def _by_name(spans: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    return {name: np.array([each[name] for each in spans]) for name in spans[0]}


@dataclass(frozen=True, slots=True)
class Single:
    """The part: the main load over all seeds, the others over one."""

    dags: int
    seeds: Sequence[int]
    effort: int | None
    name: str = "single"

    def runs(self) -> list[SingleRun]:
        """Return its runs."""
        main = [SingleRun(seed, 1.0, self.dags, self.effort) for seed in self.seeds]
        others = [SingleRun(self.seeds[0], load, self.dags, self.effort) for load in LOADS if load != 1.0]
        return [*main, *others]

    def section(self, outcomes: Mapping[SingleRun, MeasuredDags]) -> Section:
        """Return the section."""
        main = [outcomes[run] for run in self.runs() if run.load == 1.0]
        every = [outcomes[run] for run in self.runs()]
        return Section(
            title="Single DAGs (Graphene, 8.3)",
            about=(
                f"{sum(len(measured.ours) for measured in every)} drawn DAGs; figures at load 1, over seeds "
                f"{self.seeds[0]} to {self.seeds[-1]}. Breadth-first and the others are replayed in the same way."
            ),
            figures=_figures(main),
            listings=[_by_load(self.runs(), outcomes), _by_order(main), _gains(main), _family(main)],
            notes=["Load: all work in lengths of the longest path. The bound is the tightest of ours."],
        )


def _figures(main: Sequence[MeasuredDags]) -> list[Figure]:
    def of(number: Callable[[MeasuredDags, int], float], percentile: int = 0) -> Seeds:
        return Seeds(tuple(number(measured, percentile) for measured in main))

    bound = [
        Figure(f"graphene.bound.p{at}", of(_ratio, at), paper, "times the bound", "x")
        for at, paper in zip(_PERCENTILES, _PAPER_BOUND, strict=True)
    ]
    gains = [
        Figure(
            f"graphene.vs_bfs.p{at}", of(_gained, at), paper, "less than breadth-first", attainable=of(_attainable, at)
        )
        for at, paper in _PAPER_VS_BFS.items()
    ]
    seconds = "of the processor to build an order; the paper: tens of seconds"
    return [
        *bound,
        Figure("graphene.gap_closed", of(_gap_closed), None, "of what is between breadth-first and bound"),
        *gains,
        Figure("graphene.worse_than_baseline", of(_worse), None, "of the DAGs, than the best of the orders below"),
        *(Figure(f"graphene.build_s.p{at}", of(_seconds, at), None, seconds, "s") for at in (50, 99)),
    ]


def _ratio(measured: MeasuredDags, percentile: int) -> float:
    return float(np.percentile(measured.ours / measured.tightest, percentile))


def _gained(measured: MeasuredDags, percentile: int) -> float:
    return float(np.percentile(_gain(measured, measured.ours), percentile))


def _attainable(measured: MeasuredDags, percentile: int) -> float:
    return float(np.percentile(_gain(measured, measured.tightest), percentile))


def _seconds(measured: MeasuredDags, percentile: int) -> float:
    return float(np.percentile(measured.seconds, percentile))


def _gain(measured: MeasuredDags, span: Floats) -> Floats:
    return np.asarray(100 * (1 - span / measured.spans[simple.BREADTH_FIRST]))


def _gap_closed(measured: MeasuredDags, _percentile: int = 0) -> float:
    breadth_first = measured.spans[simple.BREADTH_FIRST]
    gap = breadth_first - measured.tightest
    open_ = gap > measured.tightest * 1e-6
    return float(100 * np.mean((breadth_first - measured.ours)[open_] / gap[open_])) if open_.any() else 100.0


def _worse(measured: MeasuredDags, _percentile: int = 0) -> float:
    best = np.min(list(measured.spans.values()), axis=0)
    return float(100 * np.mean(measured.ours > best * (1 + 1e-9)))


def _by_load(runs: Sequence[SingleRun], outcomes: Mapping[SingleRun, MeasuredDags]) -> Listing:
    lines = []
    for load in LOADS:
        some = [outcomes[run] for run in runs if run.load == load]
        ratio = np.concatenate([measured.ours / measured.tightest for measured in some])
        gain = np.concatenate([_gain(measured, measured.ours) for measured in some])
        attainable = np.concatenate([_gain(measured, measured.tightest) for measured in some])
        closed = np.mean([_gap_closed(measured) for measured in some])
        cells = [f"{np.percentile(ratio, at):.3f}" for at in _PERCENTILES]
        gains = [f"{np.percentile(gain, at):.1f} of {np.percentile(attainable, at):.1f}" for at in (50, 75)]
        lines.append((f"{load:g}", *cells, f"{closed:.0f}", *gains))
    heads = ("load", "p50 of bound", "p75", "p90", "gap closed %", "vs breadth-first p50 %", "p75 %")
    return Listing(heads, lines)


def _by_order(main: Sequence[MeasuredDags]) -> Listing:
    lines = []
    for name in main[0].spans:
        ratio = np.concatenate([measured.spans[name] / measured.tightest for measured in main])
        lines.append((name, *(f"{np.percentile(ratio, at):.3f}" for at in _PERCENTILES)))
    ours = np.concatenate([measured.ours / measured.tightest for measured in main])
    paper = np.concatenate([measured.new_lb / measured.tightest for measured in main])
    lines.append(("ours", *(f"{np.percentile(ours, at):.3f}" for at in _PERCENTILES)))
    lines.append(("the paper's bound", *(f"{np.percentile(paper, 100 - at):.3f}" for at in _PERCENTILES)))
    return Listing(("times the bound, load 1", "p50", "p75", "p90"), lines)


def _gains(main: Sequence[MeasuredDags]) -> Listing:
    """Return the form of the paper's table 7."""
    ours = np.concatenate([_gain(measured, measured.ours) for measured in main])
    lines = [("ours", *(f"{np.percentile(ours, at):.1f}" for at in _QUARTERS))]
    for name in [*main[0].spans, *main[0].overbooked]:
        spans = [{**measured.spans, **measured.overbooked}[name] for measured in main]
        gain = np.concatenate([_gain(measured, span) for measured, span in zip(main, spans, strict=True)])
        lines.append((name, *(f"{np.percentile(gain, at):.1f}" for at in _QUARTERS)))
    return Listing(("less than breadth-first, load 1, %", *(f"p{at}" for at in _QUARTERS)), lines)


def _family(main: Sequence[MeasuredDags]) -> Listing:
    depth, tree, parts, stages, tasks, machines = np.concatenate([measured.drawn for measured in main]).T
    drawn = (np.median(depth), 100 * np.mean(depth > 10), 100 * np.mean(tree), 100 * np.mean(parts >= 4))
    lines = [(name, paper, f"{value:.0f}") for (name, paper), value in zip(_STATISTICS, drawn, strict=True)]
    lines.append(("stages, median", "tens", f"{np.median(stages):.0f}"))
    lines.append(("tasks, median", "thousands", f"{np.median(tasks):,.0f}"))
    lines.append(("machines, median", "", f"{np.median(machines):.0f}"))
    return Listing(("the family", "the paper (2.3)", "drawn"), lines)
