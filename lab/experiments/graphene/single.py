"""Single DAGs: the order found against the bound and against simple orders (Graphene, 8.3, figure 21, table 7)."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.graph import Dag, build, orders
from lab.experiments.graphene.overbooking import TEZ
from lab.experiments.graphene.table7 import PAPER, QUARTERS, beyond, less, rows, share, with_paper, within
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds
from lab.sim.parallel import Tell
from lab.sim.workloads.dags import draw

LOADS = (0.5, 1.0, 2.0)
"""All work, in lengths of the longest path; most is to be gained at 1."""
_PERCENTILES = (50, 75, 90)
_PAPER_BOUND = (1.04, 1.13, 1.25)
_PAPER_OURS = (7, 25, 57, 74)
_PAPER_VS_BFS = {50: 25.0, 75: 57.0}
_STATISTICS = (
    ("depth, median", "5"),
    ("depth above 10, %", "25"),
    ("trees, %", "40"),
    ("four parts or more, %", "24"),
    ("80 % of the work or more without parents, %", "18"),
    ("80 % of the work or more on the longest path, %", "23"),
    ("stages, median", "tens"),
    ("tasks, median", "thousands"),
    ("machines, median", ""),
)
_MOST_OF_THE_WORK = 0.8
_CUT_INTO = 4


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
    `drawn` [D, 8]: depth, whether it is a tree, parts, how much of the work has no parents and how much is on the
    longest path, stages, tasks, machines.
    """

    ours: Floats
    spans: Mapping[str, Floats]
    overbooked: Mapping[str, Floats]
    tightest: Floats
    new_lb: Floats
    seconds: Floats
    drawn: Floats

    @property
    def all_spans(self) -> dict[str, Floats]:
        """Those of all simple orders."""
        return {**self.overbooked, **self.spans}


def perform(run: SingleRun, tell: Tell) -> MeasuredDags:
    """Build the orders of all its DAGs."""
    random = np.random.default_rng(run.seed)
    measures, spans, overbooked, drawn = [], list[dict[str, float]](), list[dict[str, float]](), []
    for number in range(run.dags):
        one = draw(random)
        machines = share(one.dag, run.load)
        begin = time.process_time()
        order = build(one.dag, machines, seed=run.seed, effort=run.effort)
        seconds = time.process_time() - begin
        spans.append(within(one.dag, machines, run.seed))
        overbooked.append(beyond(one.dag, machines, run.seed))
        measures.append((order.span, order.bounds.tightest, order.bounds.new_lb, seconds))
        tasks = int(one.dag.count.sum())
        drawn.append((one.depth, one.tree, one.parts, *work_lies(one.dag), len(one.dag), tasks, machines.count))
        tell(number + 1, run.dags)
    ours, tightest, new_lb, seconds_of = np.array(measures).T
    return MeasuredDags(
        ours, _by_name(spans), _by_name(overbooked), tightest, new_lb, seconds_of, np.array(drawn, dtype=float)
    )


def work_lies(dag: Dag) -> tuple[float, float]:
    """Return how much of the work has no parents, and how much is on the longest path (figure 7).

    Work counts by the resource of which most is asked.
    """
    asked = dag.demand * (dag.count * dag.longest)[:, np.newaxis]
    work = asked[:, asked.sum(axis=0).argmax()]
    first = [not edges for edges in dag.parents]
    path = orders.path_to_end(dag, dag.longest)
    row = int(path.argmax())
    on_path = [row]
    while dag.children[row]:
        row = max((edge.row for edge in dag.children[row]), key=lambda child: float(path[child]))
        on_path.append(row)
    return float(work[first].sum() / work.sum()), float(work[on_path].sum() / work.sum())


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
                f"{self.seeds[0]} to {self.seeds[-1]}. Simple orders are replayed in the same way, or overbook."
            ),
            figures=_figures(main),
            listings=[_by_load(self.runs(), outcomes), _by_order(main), _gains(main), _family(main)],
            notes=["Load: all work in lengths of the longest path. The bound is the tightest of ours."],
        )


def _figures(main: Sequence[MeasuredDags]) -> list[Figure]:
    def of(number: Callable[[MeasuredDags], float]) -> Seeds:
        return Seeds(tuple(number(measured) for measured in main))

    bound = [
        Figure(f"graphene.bound.p{at}", of(_ratio(at)), paper, "times the bound", "x")
        for at, paper in zip(_PERCENTILES, _PAPER_BOUND, strict=True)
    ]
    closed = [
        Figure(row, Seeds(tuple(_gap_closed(measured, base) for measured in main)), None, f"from {base} to the bound")
        for row, base in (("graphene.gap_closed", TEZ), ("graphene.gap_closed_all", orders.BREADTH_FIRST))
    ]
    seconds = "of the processor to build an order; the paper: tens of seconds"
    return [
        *bound,
        *closed,
        *(_vs_bfs(f"graphene.vs_bfs.p{at}", main, TEZ, at, _PAPER_VS_BFS[at]) for at in _PAPER_VS_BFS),
        *(_vs_bfs(f"graphene.vs_bfs_all.p{at}", main, orders.BREADTH_FIRST, at, None) for at in _PAPER_VS_BFS),
        Figure("graphene.worse_than_baseline", of(_worse), None, "of the DAGs, than the best of the orders below"),
        *(Figure(f"graphene.build_s.p{at}", of(_seconds(at)), None, seconds, "s") for at in (50, 99)),
    ]


def _ratio(percentile: int) -> Callable[[MeasuredDags], float]:
    return lambda measured: float(np.percentile(measured.ours / measured.tightest, percentile))


def _seconds(percentile: int) -> Callable[[MeasuredDags], float]:
    return lambda measured: float(np.percentile(measured.seconds, percentile))


def _vs_bfs(row: str, main: Sequence[MeasuredDags], base: str, percentile: int, paper: float | None) -> Figure:
    """Return what a DAG gains at a percentile beside a simple order, and what it could gain at most."""
    gained = [_percentile(less(measured.ours, measured.all_spans[base]), percentile) for measured in main]
    attainable = [_percentile(less(measured.tightest, measured.all_spans[base]), percentile) for measured in main]
    return Figure(row, Seeds(tuple(gained)), paper, f"less than {base}", attainable=Seeds(tuple(attainable)))


def _percentile(values: Floats, at: int) -> float:
    return float(np.percentile(values, at))


def _gap_closed(measured: MeasuredDags, base: str) -> float:
    span = measured.all_spans[base]
    gap = span - measured.tightest
    open_ = gap > measured.tightest * 1e-6
    return float(100 * np.mean((span - measured.ours)[open_] / gap[open_])) if open_.any() else 100.0


def _worse(measured: MeasuredDags) -> float:
    best = np.min(list(measured.spans.values()), axis=0)
    return float(100 * np.mean(measured.ours > best * (1 + 1e-9)))


def _by_load(runs: Sequence[SingleRun], outcomes: Mapping[SingleRun, MeasuredDags]) -> Listing:
    lines = []
    for load in LOADS:
        some = [outcomes[run] for run in runs if run.load == load]
        ratio = np.concatenate([measured.ours / measured.tightest for measured in some])
        gain = np.concatenate([less(measured.ours, measured.all_spans[TEZ]) for measured in some])
        attainable = np.concatenate([less(measured.tightest, measured.all_spans[TEZ]) for measured in some])
        closed = np.mean([_gap_closed(measured, TEZ) for measured in some])
        cells = [f"{np.percentile(ratio, at):.3f}" for at in _PERCENTILES]
        gains = [f"{np.percentile(gain, at):.1f} of {np.percentile(attainable, at):.1f}" for at in (50, 75)]
        lines.append((f"{load:g}", *cells, f"{closed:.0f}", *gains))
    heads = ("load", "p50 of bound", "p75", "p90", "gap closed %", "vs breadth-first p50 %", "p75 %")
    return Listing(heads, lines)


def _by_order(main: Sequence[MeasuredDags]) -> Listing:
    lines = []
    for name in main[0].all_spans:
        ratio = np.concatenate([measured.all_spans[name] / measured.tightest for measured in main])
        lines.append((name, *(f"{np.percentile(ratio, at):.3f}" for at in _PERCENTILES)))
    ours = np.concatenate([measured.ours / measured.tightest for measured in main])
    paper = np.concatenate([measured.new_lb / measured.tightest for measured in main])
    lines.append(("ours", *(f"{np.percentile(ours, at):.3f}" for at in _PERCENTILES)))
    lines.append(("the paper's bound", *(f"{np.percentile(paper, 100 - at):.3f}" for at in _PERCENTILES)))
    return Listing(("times the bound, load 1", "p50", "p75", "p90"), lines)


def _gains(main: Sequence[MeasuredDags]) -> Listing:
    """Return the paper's table 7, with the paper's figures in brackets."""
    spans = {name: np.concatenate([each.all_spans[name] for each in main]) for name in main[0].all_spans}
    ours = np.concatenate([measured.ours for measured in main])
    published = {"ours": _PAPER_OURS, **PAPER}
    lines = [
        (name, *with_paper(gains, published.get(name)))
        for name, gains in rows({"ours": ours, **spans}).items()
        if name != TEZ
    ]
    return Listing((f"less than {TEZ}, load 1, %", *(f"p{at}" for at in QUARTERS)), lines)


def _family(main: Sequence[MeasuredDags]) -> Listing:
    depth, tree, parts, unconstrained, on_path, *sizes = np.concatenate([measured.drawn for measured in main]).T
    drawn = [
        np.median(depth),
        *(100 * np.mean(true) for true in (depth > 10, tree, parts >= _CUT_INTO)),
        *(100 * np.mean(part >= _MOST_OF_THE_WORK) for part in (unconstrained, on_path)),
        *(np.median(size) for size in sizes),
    ]
    lines = [(name, paper, f"{value:,.0f}") for (name, paper), value in zip(_STATISTICS, drawn, strict=True)]
    return Listing(("the family", "the paper (2.3)", "drawn"), lines)
