"""One job as a DAG of stages, and the machines that it may use.

Symbols: S stages, R resources; a stage has T tasks, which are alike but for their durations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from extender.arrays import Floats, Rows, times_fits
from extender.errors import GraphError


@dataclass(frozen=True, slots=True)
class Parent:
    """A stage that comes before another, by name.

    All of its tasks must have ended before any of the child's begins; `one_to_one`: the child's task n waits for its
    task n only, and both have as many tasks.
    """

    name: str
    one_to_one: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """Tasks that do the same on other data: their `seconds` [T], and what each demands [R]."""

    name: str
    seconds: Floats
    demand: Floats
    parents: tuple[Parent, ...] = ()


@dataclass(frozen=True, slots=True)
class Machines:
    """The job's share of the cluster: so many machines with this `capacity` [R]."""

    count: int
    capacity: Floats

    def at_once(self, demand: Floats) -> int:
        """Return how many tasks of this demand [R] run at a time."""
        each = float(times_fits(self.capacity * (1 + 1e-9), demand))
        return int(min(each * self.count, 2.0**40))


@dataclass(frozen=True, slots=True)
class Edge:
    """The other end of an edge: the row of a stage."""

    row: int
    one_to_one: bool


class Dag:
    """Stages that wait for one another.

    `rows` [S] are all stages with parents before children, ties in the order given; `parents` and `children` of each
    stage are by row; `count`, `work` and the like are by stage too.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        """Check the stages. Raises GraphError, which names stage and field."""
        if not stages:
            raise GraphError("the DAG has no stages; accepted: one or more")
        row_of: dict[str, int] = {}
        for row, stage in enumerate(stages):
            if stage.name in row_of:
                raise GraphError(f"stage {stage.name!r} stands twice; accepted: each name once")
            row_of[stage.name] = row
            _check_numbers(stage, len(stages[0].demand))
        self.stages = stages
        self.count = np.array([len(stage.seconds) for stage in stages])
        self.demand = np.array([stage.demand for stage in stages], dtype=float)
        self.parents = [_edges(stage, row_of, self.count) for stage in stages]
        self.children: list[list[Edge]] = [[] for _ in stages]
        for row, edges in enumerate(self.parents):
            for edge in edges:
                self.children[edge.row].append(Edge(row, edge.one_to_one))
        self.rows = self._sorted()

    def __len__(self) -> int:
        return len(self.stages)

    @cached_property
    def longest(self) -> Floats:
        """The seconds of each stage's longest task [S]."""
        return np.array([stage.seconds.max() for stage in self.stages], dtype=float)

    @cached_property
    def shortest(self) -> Floats:
        """The seconds of each stage's shortest task [S]."""
        return np.array([stage.seconds.min() for stage in self.stages], dtype=float)

    @cached_property
    def total(self) -> Floats:
        """The seconds of all tasks of each stage together [S]."""
        return np.array([stage.seconds.sum() for stage in self.stages], dtype=float)

    def check_fit(self, machines: Machines) -> None:
        """Raise GraphError where a task is larger than a machine."""
        if len(machines.capacity) != self.demand.shape[1]:
            raise GraphError(f"machines have {len(machines.capacity)} resources, tasks {self.demand.shape[1]}")
        if machines.count < 1 or not np.all(machines.capacity >= 0):
            raise GraphError("machines; accepted: one or more, with capacities of 0 or more")
        large = np.flatnonzero((self.demand > machines.capacity * (1 + 1e-9)).any(axis=1))
        if len(large):
            stage = self.stages[int(large[0])]
            resource = int(np.flatnonzero(stage.demand > machines.capacity * (1 + 1e-9))[0])
            raise GraphError(
                f"stage {stage.name!r}: demand: a task takes {stage.demand[resource]:g} of resource {resource}, "
                f"a machine has {machines.capacity[resource]:g}"
            )

    def parts(self) -> list[Rows]:
        """Return the stages in groups that run one after the other, whatever the order inside (Graphene, 4.4).

        A cut lies behind a stage that is before or behind every other, and for all of whose tasks each child waits. The
        time is linear: a stage is behind all that come before it in `rows` if each of them that has no child among them
        is its parent; and likewise backwards.
        """
        behind_all = self._joins(self.rows, self.parents)
        before_all = self._joins(self.rows[::-1], self.children)
        parts, part = [], []
        for row in self.rows.tolist():
            part.append(row)
            barrier = all(not edge.one_to_one for edge in self.children[row])
            if row in behind_all and row in before_all and barrier:
                parts.append(np.array(part))
                part = []
        return [*parts, np.array(part)] if part else parts

    def _joins(self, rows: Rows, edges: Sequence[Sequence[Edge]]) -> set[int]:
        """Return the stages to which all before them in `rows` lead, along these edges."""
        joins, ends = set[int](), set[int]()
        for row in rows.tolist():
            ends -= {edge.row for edge in edges[row]}
            if not ends:
                joins.add(row)
            ends.add(row)
        return joins

    def _sorted(self) -> Rows:
        """Return the rows with parents first. Raises GraphError for a cycle."""
        missing = [len(edges) for edges in self.parents]
        ready = [row for row, count in enumerate(missing) if not count]
        for row in ready:
            for edge in self.children[row]:
                missing[edge.row] -= 1
                if not missing[edge.row]:
                    ready.append(edge.row)
        if len(ready) < len(self):
            rows = cycle_of([[edge.row for edge in edges] for edges in self.parents], missing)
            cycle = [self.stages[row].name for row in rows]
            raise GraphError(f"stages wait for each other: {' -> '.join(cycle)}; accepted: no cycle")
        return np.array(ready)


def cycle_of(parents: Sequence[Sequence[int]], missing: Sequence[int]) -> list[int]:
    """Return the rows along one cycle, the first again at its end, of those that still miss parents."""
    row = next(row for row, count in enumerate(missing) if count)
    seen: dict[int, int] = {}
    path: list[int] = []
    while row not in seen:
        seen[row] = len(path)
        path.append(row)
        row = next(parent for parent in parents[row] if missing[parent])
    return [*path[seen[row] :], row][::-1]


def _check_numbers(stage: Stage, resources: int) -> None:
    named = f"stage {stage.name!r}"
    if not len(stage.seconds):
        raise GraphError(f"{named}: seconds: it has no tasks; accepted: one or more")
    if not np.all(np.isfinite(stage.seconds) & (stage.seconds > 0)):
        raise GraphError(f"{named}: seconds; accepted: numbers above 0")
    if len(stage.demand) != resources:
        raise GraphError(
            f"{named}: demand: {len(stage.demand)} resources; accepted: {resources}, as in the first stage"
        )
    if not np.all(np.isfinite(stage.demand) & (stage.demand >= 0)):
        raise GraphError(f"{named}: demand; accepted: numbers of 0 or more")


def _edges(stage: Stage, row_of: dict[str, int], count: Rows) -> list[Edge]:
    """Return the edges to the parents. Raises GraphError."""
    named, edges, seen = f"stage {stage.name!r}", [], set[str]()
    for parent in stage.parents:
        row = row_of.get(parent.name)
        if row is None:
            raise GraphError(f"{named}: parents: there is no stage {parent.name!r}")
        if parent.name in seen:
            raise GraphError(f"{named}: parents: {parent.name!r} stands twice; accepted: each name once")
        seen.add(parent.name)
        if parent.one_to_one and count[row] != len(stage.seconds):
            raise GraphError(
                f"{named}: parents: {parent.name!r} has {count[row]} tasks, the stage {len(stage.seconds)}; accepted "
                "one to one: as many"
            )
        edges.append(Edge(row, parent.one_to_one))
    return edges
