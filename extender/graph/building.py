"""The order of a job's tasks: the best of several, then improved by moving stages (Graphene, 4, and beyond it).

What counts is the span when the order is replayed: tasks start whenever there is room, as on a cluster. The simple
orders are replayed too, as far as the effort reaches, so what is found is no worse than those.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.graph import orders
from extender.graph.bounds import Bounds, bounds_of
from extender.graph.dag import Dag, Edge, Machines, Parent, Stage
from extender.graph.moves import Moves
from extender.graph.placement import StagePlacement, most_compact
from extender.graph.replay import Ranks, Replay, Replayed, say_nothing
from extender.graph.space import SpentError
from extender.graph.subsets import Subsets, candidates, divide

PAPER, BACKWARDS, MOVED = "troublesome first", "backwards", "moved"
_MEETS, _ROUNDING = 1 + 1e-6, 1e-9
_FAR = 1.02
"""A run of Tetris that takes so many times the best so far is given up: on large DAGs it takes seconds."""
_LEAST_EFFORT, _TASK_EFFORT, _MOST_EFFORT = 3_000, 3, 20_000
_PLAIN_STAGES = 2
_SHORT_SECONDS = 1.0
"""A job that the longest path serves in so little time is over before a better order is found."""
_PAPER_PART = 0.25
"""Of the effort, at most, for the paper's construction."""
_GIVEN_UP = 4
"""A placement that costs so many times the effort of the search is given up: of thousands of stages it takes minutes.
"""


@dataclass(frozen=True, slots=True)
class StageOrder:
    """The best order that was found.

    `ranks`: for each stage a rank of each of its tasks [T], the smallest first. `span`: its seconds when replayed.
    `spans`: those of each order that was tried, by its name; `won`: which the best is, or came from. `trouble` [S]:
    the stages that the paper's construction placed first; none where it was left out. `begins`: when each task
    begins [T].

    Where the search ended within the first replay the order is that of the longest path. Its span is not known then:
    infinity, with no begins.
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
    effort: int | None = None,
    ended: Callable[[], bool] = lambda: False,
) -> StageOrder:
    """Return the best order that was found until a bound is met, so much effort is spent, or it has `ended`.

    A unit of effort is a hundred looks at what a machine has free, about a tenth of a millisecond; by default it is
    `usual_effort`. Effort is counted, not timed, so the same input gives the same order. `ended` is for whoever has a
    clock: it is asked at each moment of a replay, and between placements. Raises GraphError where a task is larger
    than a machine.
    """
    effort = usual_effort(dag) if effort is None else effort
    search = _Search(dag, machines, np.random.default_rng(seed), effort, ended)
    search.portfolio()
    search.improve()
    return search.outcome()


def usual_effort(dag: Dag) -> int:
    """Return so much effort that a DAG of 1,500 tasks takes about a second, and none more than a few."""
    return min(_LEAST_EFFORT + _TASK_EFFORT * int(dag.count.sum()), _MOST_EFFORT)


class _Search:
    def __init__(
        self, dag: Dag, machines: Machines, random: np.random.Generator, effort: int, ended: Callable[[], bool]
    ) -> None:
        self._dag, self._machines, self._random, self._ended = dag, machines, random, ended
        self._effort, self._most = effort, _GIVEN_UP * effort
        self._bounds = bounds_of(dag, machines)
        self._replay = Replay(dag, machines, self._bounds.behind, ended=ended)
        self._mirrored = Replay(_mirrored(dag), machines, ended=ended)
        self._spans: dict[str, float] = {}
        self._trouble = np.zeros(len(dag), dtype=bool)
        self._ranks, self._won = orders.longest_path(dag), orders.LONGEST_PATH
        self._begins: Sequence[Floats] = []
        self._span = np.inf
        self._ordered: tuple[Ranks, Replayed] = [], Replayed(np.inf, (), 0)
        self._from = ""

    def outcome(self) -> StageOrder:
        """Return the best so far."""
        return StageOrder(self._ranks, self._span, self._bounds, self._spans, self._won, self._trouble, self._begins)

    def portfolio(self) -> None:
        """Try the simple orders, then the paper's construction."""
        dag, machines = self._dag, self._machines
        self._try(orders.LONGEST_PATH, self._ranks)
        if self._span <= _SHORT_SECONDS:
            self._effort = 0
        drawn = orders.at_random(dag, self._random)
        for name, make in (
            (orders.BREADTH_FIRST, lambda: orders.breadth_first(dag)),
            (orders.LONGEST_WORK, lambda: orders.longest_work(dag, machines)),
            (orders.SHRINKING_WORK, lambda: orders.shrinking_work(dag, machines)),
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

    def improve(self) -> None:
        """Move stages, or parts of their tasks, and keep what is no worse; what is better is run back and forth.

        Where Tetris' own run is the best, the search goes on from the best order: from a run without one it cannot.
        """
        if self._over() or len(self._dag) < _PLAIN_STAGES:
            return
        ranks, run = self._there_and_back(*self._ordered)
        moves = Moves(self._dag, self._random, run.begins)
        while not self._over():
            moved = moves.of(ranks)
            result = self._replayed(moved, most=run.span * _MEETS)
            if result.span > run.span:
                continue
            if result.span < run.span * (1 - _ROUNDING):
                ranks, run = self._there_and_back(moved, result)
                moves = Moves(self._dag, self._random, run.begins)
            else:
                ranks = moved

    def _there_and_back(self, ranks: Ranks, run: Replayed) -> tuple[Ranks, Replayed]:
        """Run an order backwards in time, its last tasks first, and that again forwards, while it helps.

        Tasks that lie loose in the one run are pushed together by the other (justification; Valls et al. 2005). Return
        the order in whole numbers, and its run.
        """
        self._note(MOVED, ranks, run)
        while not self._over():
            back = self._mirrored.run(self._reversed(run.begins), most=run.span * _FAR)
            self._effort -= back.effort
            if back.span == np.inf:
                break
            again = self._reversed(back.begins)
            result = self._replayed(again, most=run.span)
            if result.span >= run.span * (1 - _ROUNDING):
                break
            ranks, run = again, result
            self._note(MOVED, ranks, run)
        return _settled(ranks), run

    def _reversed(self, begins: Sequence[Floats]) -> Ranks:
        """Return the order in which the tasks end, the last first."""
        return [-(starts + stage.seconds) for starts, stage in zip(begins, self._dag.stages, strict=True)]

    def _over(self) -> bool:
        return self._span <= self._bounds.tightest * _MEETS or self._effort <= 0 or self._ended()

    def _replayed(self, ranks: Ranks | None, most: float = np.inf) -> Replayed:
        if ranks is None or say_nothing(ranks):
            result = self._replay.by_alignment(most)
        else:
            result = self._replay.run(ranks, most)
        self._effort -= result.effort
        return result

    def _try(self, name: str, ranks: Ranks | None) -> None:
        if ranks is None:
            return
        result = self._replayed(ranks)
        if result.span == np.inf:
            return
        self._spans[name] = min(result.span, self._spans.get(name, np.inf))
        if result.span < self._ordered[1].span:
            self._ordered, self._from = (ranks, result), name
        self._note(name, ranks, result)

    def _note(self, name: str, ranks: Ranks, run: Replayed) -> None:
        """Keep what is better than the best so far."""
        if run.span < self._span:
            name = f"{self._from}, {MOVED}" if name == MOVED else name
            self._spans[name] = self._span = run.span
            self._won, self._ranks, self._begins = name, ranks, run.begins

    def _by_alignment(self) -> Ranks | None:
        """Keep Tetris' own run if it is the best so far; return the order of its starts, None where it is far worse.

        Replayed, that order may be worse than the run itself: ranks do not say which machine.
        """
        run = self._replayed(None, most=self._span * _FAR)
        if run.span == np.inf:
            return None
        if run.span < self._span:
            self._note(orders.TETRIS, [np.zeros(len(begins)) for begins in run.begins], run)
        return run.begins

    def _backwards(self) -> Ranks | None:
        """Return the order of a run backwards in time, the longest path first; None where it was given up."""
        run = self._mirrored.run(orders.longest_work(self._mirrored.dag, self._machines))
        self._effort -= run.effort
        return None if run.span == np.inf else self._reversed(run.begins)

    def _by_trouble(self) -> Ranks | None:
        """Return the order by the most compact placement of each part (Graphene, figure 12)."""
        dag, offset = self._dag, 0.0
        begins: list[Floats] = [np.zeros(count) for count in dag.count.tolist()]
        parts, least = dag.parts(), self._effort - int(self._effort * _PAPER_PART)
        for number, rows in enumerate(parts):
            least_here = self._effort - (self._effort - least) // (len(parts) - number)
            placed, trouble = self._part_by_trouble(rows, least_here)
            if placed is None:
                return None
            self._trouble |= trouble
            for row, starts in placed.begins.items():
                begins[row] = starts - placed.first + offset
            offset += placed.span
        return begins

    def _part_by_trouble(self, rows: Rows, least: int) -> tuple[StagePlacement | None, Mask]:
        """Return the most compact placement of a part, and its troublesome stages; stop when so little effort is left.

        A plain part, of a stage or two, is placed with nothing before others.
        """
        dag, machines = self._dag, self._machines
        nothing = np.zeros(len(dag), dtype=bool)
        placed, trouble = None, nothing
        divisions = candidates(dag, machines, rows) if len(rows) > _PLAIN_STAGES else iter(())
        for subsets in divisions:
            placement = self._placement(subsets, placed.span if placed else np.inf)
            if placement is None:
                return placed, trouble
            if placed is None or (placement.span < placed.span and len(placement.begins) == len(rows)):
                placed, trouble = placement, subsets.trouble
            if self._effort <= least or self._ended():
                break
        if placed is None and not self._ended():
            placed = self._placement(divide(dag, rows, nothing))
        return placed, trouble

    def _placement(self, subsets: Subsets, most: float = np.inf) -> StagePlacement | None:
        """Return the most compact placement; None where it was given up."""
        try:
            placement = most_compact(self._dag, self._machines, subsets, most, self._ended, self._most)
        except SpentError:
            self._effort = 0
            return None
        self._effort -= 1 + placement.effort
        return placement


def _settled(ranks: Ranks) -> Ranks:
    """Return the same order by whole numbers: equal ranks stay equal."""
    everything = np.concatenate([np.asarray(of_stage, dtype=float) for of_stage in ranks])
    _, places = np.unique(everything, return_inverse=True)
    ends = np.cumsum([len(of_stage) for of_stage in ranks])[:-1]
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
