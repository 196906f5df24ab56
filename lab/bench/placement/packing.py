"""How much of a cluster each ranking fills: pods of a trace arrive one by one, none leaves.

Every decision is the service's own: `verdict.judge` says where the pod fits, `verdict.Ranker` gives
the levels, and the best level wins, ties at random. A pod that fits nowhere is lost. What is
measured is the allocated share of the resource that is asked for most, once pods that ask for
100 % (or more) of the cluster's capacity of it have arrived: what is short of 100 % is stranded.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from extender.arrays import Floats, Mask, Rows
from extender.cluster.eligibility import Constraints
from extender.cluster.labels import NodeLabels
from extender.cluster.ledger.layout import Layout, layout_of
from extender.cluster.ledger.mix import DeviceAskers
from extender.cluster.ledger.snapshot import Snapshot, no_nominations
from extender.cluster.resources import CPU
from extender.errors import TraceError
from extender.verdict import judge
from lab.bench.placement.rankings import BESIDE, FGD, OURS, Choice, Ranking
from lab.bench.placement.traces import GPU, PodShape, TraceCluster, openb_variants, read_alibaba2017, read_openb
from lab.report.rows import Report, Row

_WHOLE_GPU = 1000

Search = Callable[[Mask], Rows]
"""Which nodes [K] of those where the pod fits [N] are looked at."""


@dataclass(frozen=True, slots=True)
class MeasuredWorkload:
    """A workload, the resource measured (that asked for most), and at which per cents of its capacity asked for.

    `only` names the rankings that are compared, all where it is empty.
    """

    workload: TraceCluster
    resource: str
    measure: str
    asked: tuple[int, ...]
    about: str
    only: tuple[str, ...] = ()

    def compared(self, rankings: Sequence[Ranking]) -> list[Ranking]:
        """Return those of these rankings that are compared here."""
        there = [ranking for ranking in rankings if not self.only or ranking.name in self.only]
        return there if self.workload.gpus else [ranking for ranking in there if ranking.name != FGD]


PUBLISHED: Mapping[str, Mapping[int, float]] = {
    "default": {100: 95.23, 130: 95.39},
    "gpuspec25": {100: 93.91, 130: 94.74},
    "multigpu30": {100: 96.36, 130: 96.46},
    "cpu100": {100: 95.21, 130: 95.35},
    "gpushare60": {100: 91.25, 130: 91.40},
}
"""What fragmentation gradient descent allocates by its authors' own simulator, in the mean of ten seeds (artifact of
Weng et al., ATC 2023): per cent of the GPUs, once so many per cent have been asked for."""


def scenes(directory: Path, *, quick: bool) -> list[MeasuredWorkload]:
    """Return what is replayed; `quick` shrinks the clusters. Raises TraceError."""
    every = 20 if quick else 1
    openb = [read_openb(directory, variant=variant, every=every) for variant in openb_variants(directory)]
    alibaba = read_alibaba2017(directory, machines=10 if quick else 100)
    return [
        *(
            MeasuredWorkload(
                workload,
                GPU,
                "gpu_allocated",
                (100, 130),
                f"GPUs allocated, %, {len(workload.nodes):,} nodes of many shapes",
                only=BESIDE if number else (),
            )
            for number, workload in enumerate(openb)
        ),
        MeasuredWorkload(
            alibaba,
            CPU,
            "cpu_allocated",
            (100, 110, 130),
            f"CPU allocated, %, {len(alibaba.nodes)} equal machines",
        ),
    ]


def measure(
    scenes: Sequence[MeasuredWorkload],
    compared: Sequence[Ranking],
    seeds: Sequence[int],
    advance: Callable[[], None],
) -> Report:
    """Replay every scene with every ranking and seed; calls `advance` after each replay."""
    rows: list[Row] = []
    tables = []
    for scene in scenes:
        filled = {}
        for ranking in scene.compared(compared):
            filled[ranking] = shares(scene, ranking, seeds, advance)
            rows += _rows(scene, ranking, filled[ranking], seeds)
        rows += _against_published(scene, filled, seeds)
        tables.append(_table(scene, filled, seeds))
    return Report(rows, tables)


def every() -> Search:
    """Return the search that finds all nodes where the pod fits."""
    return np.flatnonzero


def shares(
    scene: MeasuredWorkload,
    ranking: Ranking,
    seeds: Sequence[int],
    advance: Callable[[], None],
    search: Callable[[], Search] = every,
) -> Floats:
    """Return the allocated share in per cent for each seed and mark [S, M]; each seed has a `search` of its own."""
    shares = []
    for seed in seeds:
        shares.append(100 * replay(scene, ranking, seed, search()))
        advance()
    return np.array(shares)


def replay(scene: MeasuredWorkload, ranking: Ranking, seed: int, search: Search = np.flatnonzero) -> Floats:
    """Return the allocated share of the measured resource at each mark of the scene [M].

    One seed gives the same arrivals to every ranking and search.
    """
    workload, marks = scene.workload, np.array(scene.asked) / 100
    layout = layout_of({node.name: node for node in workload.nodes})
    arrivals = _arrivals(scene, layout, marks[-1], np.random.default_rng([seed, 0]))
    cluster = _Cluster(layout, workload, ranking, search, np.random.default_rng([seed, 1]))
    placed = np.array([cluster.place(workload.tasks[task]) for task in arrivals.tasks])
    allocated = np.cumsum(np.where(placed, arrivals.shares, 0.0))
    return allocated[np.searchsorted(np.cumsum(arrivals.shares), marks)]


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """The pods in the order they come: the task of each [P], and its share of the measured resource's capacity [P]."""

    tasks: NDArray[np.intp]
    shares: Floats


def _arrivals(scene: MeasuredWorkload, layout: Layout, until: float, draw: np.random.Generator) -> _Arrivals:
    """Draw tasks with replacement, by weight, each with its wave, until more than `until` has been asked for.

    Where tasks are listed, each comes once before that. Raises TraceError where no task asks for anything.
    """
    tasks = scene.workload.tasks
    capacity = layout.capacity[:, layout.columns[scene.resource]].sum()
    shares = np.array([task.pod.demand.get(scene.resource, 0.0) for task in tasks]) / capacity
    waves = np.array([task.wave for task in tasks])
    weights = np.array([task.weight for task in tasks])
    if not shares @ weights > 0:
        raise TraceError(f"{scene.workload.name}: no task asks for {scene.resource}, so nothing can be measured")
    drawn = draw.permutation(len(tasks)) if scene.workload.listed else np.empty(0, dtype=np.intp)
    while shares[drawn].sum() <= until:
        more = draw.choice(len(tasks), 500, p=weights / weights.sum())
        drawn = np.concatenate((drawn, np.repeat(more, waves[more])))
    return _Arrivals(drawn, shares[drawn])


class _Cluster:
    """The nodes as they fill up."""

    def __init__(
        self, layout: Layout, workload: TraceCluster, ranking: Ranking, search: Search, draw: np.random.Generator
    ) -> None:
        empty = np.zeros_like(layout.capacity)
        nobody = no_nominations(len(layout.axis))
        self._snapshot = Snapshot(0, 0, layout, allocated=empty, in_flight=empty, nominations=nobody)
        self._devices = _Devices([workload.gpus.get(name, 0) for name in layout.names])
        self._askers = DeviceAskers()
        self._workload = workload
        self._nodes = {node.name: node for node in workload.nodes}
        self._labels = NodeLabels([self._nodes[name] for name in layout.names])
        self._allowed: dict[Constraints, Mask] = {}
        self._refused: set[Hashable] = set()
        self._ranking, self._search = ranking, search
        self._draw = draw

    def place(self, task: PodShape) -> bool:
        """Allocate a pod of this task on the node that ranks first; False where none can take it."""
        shape = (frozenset(task.pod.demand.items()), task.gpus, task.gpu_milli, task.pod.constraints)
        if shape in self._refused:  # nobody leaves: there is no more room than there was
            return False
        fits = judge(self._snapshot, task.pod).passed & self._devices.fits(task)
        fits &= self._allowed_by(task.pod.constraints)
        rows = self._search(fits)
        if not rows.size:
            self._refused.add(shape)
            return False
        row = self._choose(task, rows)
        allocated = self._snapshot.allocated.copy()
        allocated[row] += self._snapshot.layout.vector(task.pod.demand)
        self._askers.add(task.pod, 1)
        layout = self._snapshot.layout
        mix = self._askers.mix(layout.axis, layout.names, self._nodes)
        self._snapshot = replace(self._snapshot, allocated=allocated, mix=mix)
        self._devices.take(task, row)
        return True

    def _allowed_by(self, constraints: Constraints) -> Mask:
        """Return which nodes [N] have one of the models of GPU that a pod wants."""
        if constraints not in self._allowed:
            self._allowed[constraints] = self._labels.allow(constraints)
        return self._allowed[constraints]

    def _choose(self, task: PodShape, rows: Rows) -> int:
        ranks = self._ranking.ranks(Choice(self._snapshot, task, rows, self._devices.free, self._workload))
        best = rows[ranks == ranks.max()]
        return int(best[self._draw.integers(best.size)])


class _Devices:
    """What is free of each single GPU, in thousandths [N, D]: a pod's part of a GPU must fit on one of them.

    The extender counts a node's GPUs as one resource; in a cluster that shares GPUs its device plugin's own filter does
    this part.
    """

    def __init__(self, gpus: Sequence[int]) -> None:
        present = np.arange(max([*gpus, 1])) < np.array(gpus)[:, np.newaxis]
        self.free = np.where(present, _WHOLE_GPU, 0)
        self._largest = self.free.max(axis=1)
        self._whole = present.sum(axis=1)

    def fits(self, task: PodShape) -> NDArray[np.bool_]:
        """Return which nodes have the GPUs [N]."""
        if task.gpu_milli == _WHOLE_GPU:
            return np.asarray(self._whole >= task.gpus)
        return np.asarray(self._largest >= task.gpu_milli)

    def take(self, task: PodShape, row: int) -> None:
        """Take whole GPUs, or a part of the fullest one that has room."""
        if not task.gpus:
            return
        free = self.free[row]
        enough = np.flatnonzero(free >= task.gpu_milli)
        free[enough[np.argsort(free[enough], kind="stable")][: task.gpus]] -= task.gpu_milli
        self._largest[row] = free.max()
        self._whole[row] = np.count_nonzero(free == _WHOLE_GPU)


def _rows(scene: MeasuredWorkload, ranking: Ranking, shares: Floats, seeds: Sequence[int]) -> list[Row]:
    """Return one row per mark; `shares` [S, M] in per cent."""
    return [
        Row(
            id=f"placement.{scene.workload.name}.{ranking.name}.{scene.measure}.{asked}",
            ours=round(float(column.mean()), 2),
            unit="%",
            note=f"{column.min():.2f} to {column.max():.2f}, seeds {seeds[0]} to {seeds[-1]}; {ranking.note}",
        )
        for asked, column in zip(scene.asked, shares.T, strict=True)
    ]


def _against_published(scene: MeasuredWorkload, filled: Mapping[Ranking, Floats], seeds: Sequence[int]) -> list[Row]:
    """Return our default ranking's rows, and how far they are above what is published; none where it was not run."""
    shares = {ranking.name: percent for ranking, percent in filled.items()}
    published, name = PUBLISHED.get(scene.workload.name, {}), scene.workload.name
    rows = []
    for mark, asked in enumerate(scene.asked if OURS in shares and scene.resource == GPU else ()):
        column = shares[OURS][:, mark]
        paper, note = published.get(asked), f"{column.min():.2f} to {column.max():.2f}, seeds {seeds[0]} to {seeds[-1]}"
        rows.append(Row(f"placement.{name}.{asked}", round(float(column.mean()), 2), "%", paper, note))
        if paper is not None:
            above, against = float(column.mean()) - paper, "FGD as published, ties by name"
        elif FGD in shares:
            above, against = float((column - shares[FGD][:, mark]).mean()), "FGD as run here: none is published"
        else:
            continue
        rows.append(Row(f"placement.{name}.{asked}.vs_fgd", round(above, 2), "points", note=f"above {against}"))
    return rows


def _table(scene: MeasuredWorkload, filled: Mapping[Ranking, Floats], seeds: Sequence[int]) -> Table:
    title = f"{scene.workload.name}: {scene.about}; mean (lowest-highest) of {len(seeds)} seeds"
    table = Table(title=title, title_justify="left")
    table.add_column("ranking")
    for asked in scene.asked:
        table.add_column(f"{asked} % asked", justify="right")
    table.add_column("what it is")
    for ranking, shares in filled.items():
        cells = [f"{column.mean():.1f} ({column.min():.1f}-{column.max():.1f})" for column in shares.T]
        table.add_row(ranking.name, *cells, ranking.note)
    return table
