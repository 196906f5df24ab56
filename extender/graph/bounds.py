"""How long a DAG takes at least, whatever the order (Graphene, 6, figure 17).

A stage of the DAG counts by one of two times: what its shortest task takes, or what all of it takes when nothing else
runs, `whole`. A path may count a stage whole that all of its tasks stand between two others (all of the parent's tasks
before, all of the child's behind); of the others on a path one may count whole.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Rows
from extender.graph.dag import Dag, Edge, Machines
from extender.graph.windows import Windows

_OfStage = Callable[[int], float]
_Arrival = tuple[bool, float, float]
"""Whether a path came by a barrier, its length, and its length if one stage on it was counted whole."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds of a DAG's seconds on a share of machines.

    `cp_len`: the longest path of tasks. `t_work`: all work, as if the machines were one. `mod_cp`: of the longest path
    one stage counts whole. `new_lb`: the sum over the parts between cuts, the paper's best. `tightest` is ours: stages
    count whole as tasks fit on machines, and what lies between a head and a tail must run there (`windows`).
    `behind` [S]: how long it takes at least from when any task of a stage begins until all have ended.
    """

    cp_len: float
    t_work: float
    mod_cp: float
    new_lb: float
    tightest: float
    behind: Floats


def bounds_of(dag: Dag, machines: Machines) -> Bounds:
    """Return all bounds. Raises GraphError where a task is larger than a machine."""
    dag.check_fit(machines)
    measures = Measures(dag, machines)
    everything = _Part(measures, dag.rows, np.zeros(len(dag), dtype=np.intp), 0)
    part_of = np.empty(len(dag), dtype=np.intp)
    parts = dag.parts()
    for number, rows in enumerate(parts):
        part_of[rows] = number
    windows, new_lb, tightest = Windows(dag, machines, measures.packed), 0.0, 0.0
    behind = dag.shortest.copy()
    for number, rows in enumerate(parts):
        part = _Part(measures, rows, part_of, number)
        known = max(part.cp_len(), part.t_work(), part.longest_path(measures.pooled), part.of_groups(measures.pooled))
        new_lb += known
        packed = max(part.longest_path(measures.packed), part.of_groups(measures.packed))
        between, tail = windows.bound(rows)
        tightest += max(known, packed, between)
        behind[rows] += tail - tightest
    behind += tightest
    return Bounds(
        cp_len=everything.cp_len(),
        t_work=everything.t_work(),
        mod_cp=everything.one_whole_stage(),
        new_lb=new_lb,
        tightest=tightest,
        behind=behind,
    )


class Measures:
    """What stages take: `work` [S, R] of the machines, in seconds of all of them; and alone.

    `pooled` and `packed` [S] are `whole` times: on one machine as large as all, and on machines.
    """

    def __init__(self, dag: Dag, machines: Machines) -> None:
        self.dag = dag
        capacity = machines.count * machines.capacity
        per_second = np.divide(dag.demand, capacity, out=np.zeros_like(dag.demand), where=capacity > 0)
        self.work = per_second * dag.total[:, np.newaxis]
        self.pooled = np.maximum(self.work.max(axis=1, initial=0.0), dag.longest)
        at_once = [machines.at_once(demand) for demand in dag.demand]
        waves = [_waves(stage.seconds, slots) for stage, slots in zip(dag.stages, at_once, strict=True)]
        self.packed = np.maximum(self.pooled, waves)


class _Part:
    """The bounds of the stages of one part alone; `part_of` [S] says which part each stage is in."""

    def __init__(self, measures: Measures, rows: Rows, part_of: Rows, number: int) -> None:
        self._measures, self._dag, self._rows = measures, measures.dag, rows
        self._part_of, self._number = part_of, number

    def _inside(self, edges: Sequence[Edge]) -> Iterator[Edge]:
        return (edge for edge in edges if self._part_of[edge.row] == self._number)

    def t_work(self) -> float:
        """Return equation 1b."""
        return float(self._measures.work[self._rows].sum(axis=0).max(initial=0.0))

    def cp_len(self) -> float:
        """Return equation 1a, task by task."""
        ends: dict[int, Floats] = {}
        for row in self._rows.tolist():
            ready: Floats | float = 0.0
            for edge in self._inside(self._dag.parents[row]):
                ready = np.maximum(ready, ends[edge.row] if edge.one_to_one else ends[edge.row].max())
            ends[row] = ready + self._dag.stages[row].seconds
        return float(max(end.max() for end in ends.values()))

    def one_whole_stage(self) -> float:
        """Return equation 1c: the shortest task of each stage along a path, and one stage whole."""
        return self._along_paths(self._dag.shortest.item, self._measures.pooled.item, barriers=False)

    def longest_path(self, whole: Floats) -> float:
        """Return the same where stages that a path's edges stand around count whole as well."""
        return self._along_paths(self._dag.shortest.item, whole.item, barriers=True)

    def of_groups(self, whole: Floats) -> float:
        """Return the longest path over groups: stages with the same parents and children, all with barriers (6)."""
        dag, groups = self._dag, dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]]()
        for row in self._rows.tolist():
            edges = [*dag.parents[row], *dag.children[row]]
            if edges and not any(edge.one_to_one for edge in edges):
                parents = tuple(sorted(edge.row for edge in dag.parents[row]))
                children = tuple(sorted(edge.row for edge in dag.children[row]))
                groups.setdefault((parents, children), []).append(row)
        together, shortest = dict[int, float](), dict[int, float]()
        for rows in groups.values():
            if len(rows) > 1:
                work = float(self._measures.work[rows].sum(axis=0).max(initial=0.0))
                together |= dict.fromkeys(rows, max(work, float(whole[rows].max())))
                shortest |= dict.fromkeys(rows, float(dag.shortest[rows].max()))
        if not together:
            return 0.0
        return self._along_paths(
            lambda row: shortest.get(row, dag.shortest.item(row)),
            lambda row: together.get(row, whole.item(row)),
            barriers=True,
        )

    def _along_paths(self, shortest: _OfStage, whole: _OfStage, *, barriers: bool) -> float:
        """Return the longest path.

        What a stage adds is settled by the edge into it and by the edge out of it. A path is known up to each stage,
        without it, by whether it came by a barrier: before and after the one stage was counted whole.
        """
        dag, best = self._dag, 0.0
        before: dict[int, list[_Arrival]] = {}
        for row in self._rows.tolist():
            arrivals: list[_Arrival] = [(True, 0.0, -np.inf)]
            for edge in self._inside(dag.parents[row]):
                takes = shortest(edge.row), whole(edge.row)
                arrivals.append(_left(before[edge.row], *takes, barrier=not edge.one_to_one, counts=barriers))
            before[row] = _best_of(arrivals)
            best = max(best, *_left(before[row], shortest(row), whole(row), barrier=True, counts=barriers)[1:])
        return best


def _waves(seconds: Floats, at_once: int) -> float:
    """Return how long tasks [T] take at least if so many run at a time."""
    longest = np.sort(seconds)[::-1]
    if len(longest) <= at_once:
        return float(longest[0])
    # Of the longest k * at_once + 1 tasks some k + 1 follow each other; each takes no less than the shortest of them.
    waves = np.arange(1, (len(longest) - 1) // at_once + 1)
    chains = longest[waves * at_once] * (waves + 1)
    return float(max(longest.sum() / at_once, chains.max()))


def _left(before: list[_Arrival], shortest: float, whole: float, *, barrier: bool, counts: bool) -> _Arrival:
    """Return the longest path through a stage and out by an edge that is a `barrier` or not."""
    plain = used = -np.inf
    for came_by_barrier, plain_before, used_before in before:
        adds = whole if counts and came_by_barrier and barrier else shortest
        plain = max(plain, plain_before + adds)
        used = max(used, plain_before + whole, used_before + adds)
    return barrier, plain, used


def _best_of(arrivals: list[_Arrival]) -> list[_Arrival]:
    """Return the longest arrivals, by barrier and without."""
    best: list[_Arrival] = []
    for barrier in (True, False):
        alike = [arrival for arrival in arrivals if arrival[0] is barrier]
        if alike:
            best.append((barrier, max(arrival[1] for arrival in alike), max(arrival[2] for arrival in alike)))
    return best
