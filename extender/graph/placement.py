"""A DAG placed on machines over time: subset by subset, forwards or backwards (Graphene, 4.2 and 4.3, figure 14).

The stages are placed whole and by the mean of their tasks' seconds: what comes of it is an order, which `replay` holds
against the true seconds.
"""

import heapq
from collections.abc import Callable, Iterator

import numpy as np

from extender.arrays import Floats, Mask
from extender.graph.dag import Dag, Machines
from extender.graph.space import FAR, Space
from extender.graph.subsets import Subsets

_LOOKS_PER_EFFORT = 10
_NO_BEGINS: dict[int, Floats] = {}


class StagePlacement:
    """Stages placed on a space: `begins` [T] of each that is placed, by its row."""

    def __init__(self, dag: Dag, seconds: Floats, space: Space, begins: dict[int, Floats]) -> None:
        """Take the seconds of a task of each stage [S]."""
        self._dag, self._seconds = dag, seconds
        self.space, self.begins = space, begins

    @property
    def effort(self) -> int:
        """What it cost, and all that were tried from the same empty space: a tenth of the segments looked at."""
        return self.space.looked[0] // _LOOKS_PER_EFFORT

    @classmethod
    def empty(cls, dag: Dag, machines: Machines, effort: float = np.inf) -> "StagePlacement":
        """Return one on which nothing is placed; placing raises SpentError once it cost more than this effort."""
        return cls(dag, dag.total / dag.count, Space(machines, effort * _LOOKS_PER_EFFORT), dict(_NO_BEGINS))

    @property
    def first(self) -> float:
        """When the first task begins; 0 where nothing is placed."""
        return min((float(begins.min()) for begins in self.begins.values()), default=0.0)

    @property
    def last(self) -> float:
        """When the last task ends; 0 where nothing is placed."""
        ends = (float(begins.max()) + self._seconds.item(row) for row, begins in self.begins.items())
        return max(ends, default=0.0)

    @property
    def span(self) -> float:
        """From the first to the last."""
        return self.last - self.first

    def forwards(self, stages: Mask) -> "StagePlacement":
        """Return it with these stages placed too, parents first, each as early as it can."""
        return self._placed(self.space.clone(), self._release_by_parents, self._order(stages, forwards=True))

    def backwards(self, stages: Mask) -> "StagePlacement":
        """Return it with these stages placed too, children first, each as late as it can."""
        order = self._order(stages, forwards=False)
        placed = self._placed(self.space.mirrored(), self._release_by_children, order)
        return StagePlacement(self._dag, self._seconds, placed.space.mirrored(), placed.begins)

    def either(self, stages: Mask) -> "StagePlacement":
        """Return the more compact of both."""
        if not stages.any():
            return self
        return min((self.forwards(stages), self.backwards(stages)), key=lambda placement: placement.span)

    def _placed(
        self,
        space: Space,
        release: Callable[["StagePlacement", int, float], tuple[Floats, bool]],
        order: Iterator[int],
    ) -> "StagePlacement":
        result = StagePlacement(self._dag, self._seconds, space, self.begins.copy())
        edge_of_all = self.first if release == self._release_by_parents else -self.last
        for row in order:
            releases, mirrored = release(result, row, edge_of_all)
            seconds, count = self._seconds.item(row), self._dag.count.item(row)
            begins = np.empty(count)
            for moment in np.unique(releases).tolist():
                tasks = np.flatnonzero(releases == moment)
                begins[tasks] = space.place(len(tasks), seconds, self._dag.demand[row], moment)
            result.begins[row] = -begins - seconds if mirrored else begins
        return result

    def _order(self, stages: Mask, *, forwards: bool) -> Iterator[int]:
        """Yield the stages as they become ready, of those that are ready the one with the longest tasks."""
        before = self._dag.parents if forwards else self._dag.children
        behind = self._dag.children if forwards else self._dag.parents
        missing = {row: sum(bool(stages[edge.row]) for edge in before[row]) for row in np.flatnonzero(stages).tolist()}
        ready = [(-self._seconds.item(row), row) for row, count in missing.items() if not count]
        heapq.heapify(ready)
        while ready:
            _, row = heapq.heappop(ready)
            yield row
            for edge in behind[row]:
                if edge.row in missing:
                    missing[edge.row] -= 1
                    if not missing[edge.row]:
                        heapq.heappush(ready, (-self._seconds.item(edge.row), edge.row))

    def _release_by_parents(self, result: "StagePlacement", row: int, begin: float) -> tuple[Floats, bool]:
        """Return when each task may begin at the earliest [T]: after its parents that are placed."""
        releases = np.full(self._dag.count[row], -FAR)
        for edge in self._dag.parents[row]:
            if (begins := result.begins.get(edge.row)) is not None:
                ends = begins + self._seconds.item(edge.row)
                releases = np.maximum(releases, ends if edge.one_to_one else ends.max())
        return np.where(releases == -FAR, begin, releases), False

    def _release_by_children(self, result: "StagePlacement", row: int, end: float) -> tuple[Floats, bool]:
        """Return the same with time running backwards: when each task may end at the latest, negative."""
        releases = np.full(self._dag.count[row], -FAR)
        for edge in self._dag.children[row]:
            if (begins := result.begins.get(edge.row)) is not None:
                releases = np.maximum(releases, -begins if edge.one_to_one else -begins.min())
        return np.where(releases == -FAR, end, releases), True


def most_compact(
    dag: Dag,
    machines: Machines,
    subsets: Subsets,
    most: float = np.inf,
    ended: Callable[[], bool] = lambda: False,
    effort: float = np.inf,
) -> StagePlacement:
    """Return the most compact placement with the troublesome stages first, over all orders without a dead end (4.3).

    Where the troublesome stages alone reach over `most` seconds, that placement is returned, which lacks the others. It
    stops with what there is once it has `ended`. Raises SpentError once it cost more than this effort.
    """
    best = trouble = StagePlacement.empty(dag, machines, effort).either(subsets.trouble)
    if trouble.span >= most:
        return trouble
    for placement in _in_all_orders(trouble, subsets, most):
        if best is trouble or placement.span < best.span:
            best = placement
        if ended():
            break
    return best


def _in_all_orders(trouble: StagePlacement, subsets: Subsets, most: float) -> Iterator[StagePlacement]:
    """Yield the placements; those that begin with the siblings only where that keeps below `most` seconds."""
    parents, children, siblings = subsets.parents, subsets.children, subsets.siblings
    yield trouble.forwards(children).backwards(siblings).backwards(parents)
    yield trouble.backwards(parents).forwards(siblings).forwards(children)
    after_siblings = trouble.either(siblings)
    if after_siblings.span < most:
        yield after_siblings.backwards(parents).forwards(children)
        yield after_siblings.forwards(children).backwards(parents)
