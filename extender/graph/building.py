"""The order of a job's tasks: the best of several, then improved by moving stages (Graphene, 4, and beyond it).

What counts is the span when the order is replayed: tasks start whenever there is room, as on a cluster. The simple
orders are replayed too, as far as the effort reaches, so what is found is no worse than those.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask
from extender.graph import orders
from extender.graph.bounds import Bounds, bounds_of
from extender.graph.dag import Dag, Edge, Machines, Parent, Stage
from extender.graph.placement import most_compact
from extender.graph.replay import Ranks, Replay, Replayed
from extender.graph.subsets import candidates

PAPER, BACKWARDS, MOVED = "troublesome first", "backwards", "moved"
_MEETS = 1 + 1e-6
_FAR = 1.02
"""A run of Tetris that takes so many times the best so far is given up: on large DAGs it takes seconds."""
EFFORT = 30_000
"""Some three seconds."""
_PLAIN_STAGES = 2


@dataclass(frozen=True, slots=True)
class Order:
    """The best order that was found.

    `ranks`: for each stage a rank of each of its tasks [T], the smallest first. `span`: its seconds when replayed.
    `spans`: those of each order that was tried, by its name; `won`: which the best is, or came from. `trouble` [S]:
    the stages that the paper's construction placed first; none where it was left out. `begins`: when each task
    begins [T].
    """

    ranks: Ranks
    span: float
    bounds: Bounds
    spans: dict[str, float]
    won: str
    trouble: Mask
    begins: Sequence[Floats]


def build(
    dag: Dag,
    machines: Machines,
    *,
    seed: int = 1,
    effort: int = EFFORT,
    ended: Callable[[], bool] = lambda: False,
) -> Order:
    """Return the best order that was found until a bound is met, so much effort is spent, or it has `ended`.

    A unit of effort is about one start of some tasks of a stage at one moment, a tenth of a millisecond. `ended` is
    asked between replays and placements; the order by the longest path is tried in any case. Raises GraphError where a
    task is larger than a machine.
    """
    search = _Search(dag, machines, np.random.default_rng(seed), effort, ended)
    search.portfolio()
    search.move()
    return search.outcome()


class _Search:
    def __init__(
        self, dag: Dag, machines: Machines, random: np.random.Generator, effort: int, ended: Callable[[], bool]
    ) -> None:
        self._dag, self._machines, self._random, self._ended = dag, machines, random, ended
        self._effort = effort
        self._bounds = bounds_of(dag, machines)
        self._spans: dict[str, float] = {}
        self._trouble = np.zeros(len(dag), dtype=bool)
        self._ranks: Ranks = []
        self._begins: Sequence[Floats] = []
        self._span, self._won = np.inf, ""

    def outcome(self) -> Order:
        """Return the best so far."""
        return Order(self._ranks, self._span, self._bounds, self._spans, self._won, self._trouble, self._begins)

    def portfolio(self) -> None:
        """Try the simple orders, then the paper's construction."""
        dag, machines = self._dag, self._machines
        self._try(orders.LONGEST_PATH, orders.longest_path(dag))
        drawn = orders.at_random(dag, self._random)
        for name, make in (
            (orders.BREADTH_FIRST, lambda: orders.breadth_first(dag)),
            (orders.LONGEST_WORK, lambda: orders.longest_work(dag, machines)),
            (orders.RANDOM, lambda: drawn),
            (orders.STRIP_PART, lambda: orders.strip_part(dag)),
            (orders.COFFMAN_GRAHAM, lambda: orders.coffman_graham(dag)),
            (orders.TETRIS, self._by_alignment),
            (BACKWARDS, self._backwards),
            (PAPER, self._by_trouble),
        ):
            if self._over():
                return
            self._try(name, make())

    def move(self) -> None:
        """Move a stage, or a part of its tasks, before or behind others, and keep what is no worse."""
        ranks = _settled(self._begins if self._won == orders.TETRIS else self._ranks)
        while not self._over() and len(self._dag) >= _PLAIN_STAGES:
            moved = self._moved(ranks)
            before = self._span
            result = self._replayed(moved, most=before * _MEETS)
            if result.span <= before:
                ranks = moved
                if result.span < before * (1 - 1e-9):
                    self._keep(f"{self._won.removesuffix(', ' + MOVED)}, {MOVED}", moved, result.span, result.begins)

    def _over(self) -> bool:
        return self._span <= self._bounds.tightest * _MEETS or self._effort <= 0 or self._ended()

    def _replayed(self, ranks: Ranks | None, most: float = np.inf) -> Replayed:
        run = Replay(self._dag, self._machines, ranks)
        result = run.run(most)
        self._effort -= run.effort
        return result

    def _try(self, name: str, ranks: Ranks | None) -> None:
        if ranks is None:
            return
        result = self._replayed(ranks)
        self._spans[name] = min(result.span, self._spans.get(name, np.inf))
        if result.span < self._span:
            self._keep(name, ranks, result.span, result.begins)

    def _keep(self, name: str, ranks: Ranks, span: float, begins: Sequence[Floats]) -> None:
        self._spans[name] = self._span = span
        self._won, self._ranks, self._begins = name, ranks, begins

    def _moved(self, ranks: Ranks) -> Ranks:
        """Return other ranks: one stage, or the last part of its tasks, goes where another is."""
        stage, other = self._random.choice(len(ranks), 2, replace=False).tolist()
        place = float(self._random.choice(ranks[other]))
        shifted = ranks[stage].copy()
        tasks = np.ones(len(shifted), dtype=bool)
        if len(shifted) > 1 and self._random.random() < 0.5:
            tasks = np.argsort(np.argsort(shifted)) >= self._random.integers(1, len(shifted))
        shifted[tasks] += place - float(shifted[tasks].min()) + self._random.choice((-0.5, 0.5))
        return [shifted if row == stage else those for row, those in enumerate(ranks)]

    def _by_alignment(self) -> Ranks | None:
        """Keep Tetris' own run if it is the best so far; return the order of its starts, None where it is far worse.

        Replayed, that order may be worse than the run itself: ranks do not say which machine.
        """
        run = self._replayed(None, most=self._span * _FAR)
        if run.span == np.inf:
            return None
        if run.span < self._span:
            self._keep(orders.TETRIS, [np.zeros(len(begins)) for begins in run.begins], run.span, run.begins)
        return run.begins

    def _backwards(self) -> Ranks:
        """Return the order of a run in which time goes backwards, the longest path first."""
        mirrored = _mirrored(self._dag)
        run = Replay(mirrored, self._machines, orders.longest_work(mirrored, self._machines))
        begins = run.run().begins
        self._effort -= run.effort
        ends = [begin + stage.seconds for begin, stage in zip(begins, mirrored.stages, strict=True)]
        return [-end for end in ends]

    def _by_trouble(self) -> Ranks | None:
        """Return the order by the most compact placement of each part (Graphene, figure 12)."""
        dag, offset = self._dag, 0.0
        begins: list[Floats] = [np.zeros(count) for count in dag.count.tolist()]
        for rows in dag.parts():
            placed = None
            for subsets in candidates(dag, self._machines, rows):
                placement = most_compact(dag, self._machines, subsets)
                self._effort -= placement.effort
                if placed is None or placement.span < placed[0].span:
                    placed = placement, subsets.trouble
                if self._effort <= 0 or self._ended():
                    break
            if placed is None:
                return None
            placement, trouble = placed
            self._trouble |= trouble & (len(rows) > _PLAIN_STAGES)
            for row, those in placement.begins.items():
                begins[row] = those - placement.first + offset
            offset += placement.span
        return begins


def _settled(ranks: Ranks) -> Ranks:
    """Return the same order by whole numbers: equal ranks stay equal."""
    everything = np.concatenate([np.asarray(those, dtype=float) for those in ranks])
    _, places = np.unique(everything, return_inverse=True)
    ends = np.cumsum([len(those) for those in ranks])[:-1]
    return [part.astype(float) for part in np.split(places, ends)]


def _mirrored(dag: Dag) -> Dag:
    """Return the DAG with all edges turned round."""
    return Dag(
        [
            Stage(stage.name, stage.seconds, stage.demand, tuple(_turned(dag, edge) for edge in dag.children[row]))
            for row, stage in enumerate(dag.stages)
        ]
    )


def _turned(dag: Dag, edge: Edge) -> Parent:
    return Parent(dag.stages[edge.row].name, edge.one_to_one)
