"""Recorded nodes as machines: what each offers of all that pods asked for, its labels and taints, from when to when."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.eligibility import Constraints
from extender.cluster.recording.lines import NodeLine, PodLine
from extender.cluster.resources import CPU, DIMENSIONS, IO_DIMENSIONS, MEMORY, PODS, Amounts
from lab.sim.workloads.workload import UNLIMITED, Machines, NodeChange

History = Mapping[str, Sequence[tuple[float, NodeLine | None]]]
"""What each node was from which time on, by its name; None: it was gone. The times ascend."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The resources that are counted: `axis` [R] has the six dimensions, then by name what some node offers.

    Of what pods ask for, `unknown` are those resources that no node offers.
    """

    axis: tuple[str, ...]
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, nodes: Iterable[NodeLine], pods: Sequence[PodLine], services: Sequence[PodLine]) -> "Columns":
        """Return those of a recording. Places for pods count only where CPU and memory do not run out before them."""
        nodes = list(nodes)
        asked = {name for pod in pods for name in pod.demand} - {*DIMENSIONS, PODS}
        offered = {name for node in nodes for name in node.offers}
        axis = asked & offered
        taken = max(Counter(pod.node for pod in services).values(), default=0)
        sums = {name: np.cumsum(sorted(pod.demand.get(name, 0.0) for pod in pods)) for name in (CPU, MEMORY)}
        if any(node.offers.get(PODS, np.inf) - taken < _most_pods(node, sums) for node in nodes):
            axis.add(PODS)
        return cls((*DIMENSIONS, *sorted(axis)), tuple(sorted(asked - offered)))

    def demands(self, pods: Sequence[PodLine]) -> Floats:
        """Return what each pod asks for [P, R]."""
        return np.array([self._row(pod.demand) for pod in pods]).reshape(-1, len(self.axis))

    def offers(self, node: NodeLine | None) -> Floats:
        """Return what a node offers [R]: infinite of a disk or network that it does not limit, 0 once it is gone."""
        if node is None:
            return np.zeros(len(self.axis))
        return np.array([node.offers.get(name, np.inf if name in IO_DIMENSIONS else 0.0) for name in self.axis])

    def _row(self, amounts: Amounts) -> list[float]:
        return [amounts.get(name, 0.0) for name in self.axis]


def _most_pods(node: NodeLine, sums: Mapping[str, Floats]) -> int:
    """Return how many pods may run on a node at once; `sums` [P] is what the smallest of them ask for together."""
    return min(int(np.searchsorted(asked, node.offers.get(name, np.inf), side="right")) for name, asked in sums.items())


class Versions:
    """All that nodes were [V], by node and time: whose `row`, `since` when, the `node` (None: it was gone).

    `capacity` [V, R] is what it had for the pods that are replayed.
    """

    def __init__(self, history: History, columns: Columns, services: Sequence[PodLine], begun: float) -> None:
        """Take what nodes were; `services` take of their nodes what they ask for, all the time."""
        self.rows = {name: row for row, name in enumerate(sorted(history))}
        lines = [(self.rows[name], at - begun, line) for name in self.rows for at, line in history[name]]
        self.row = np.array([row for row, _, _ in lines], dtype=np.intp)
        self.since = np.array([max(at, 0.0) for _, at, _ in lines])
        self.node = [None if line is None else line.node() for _, _, line in lines]
        self._columns = columns
        taken = np.zeros((len(self.rows), len(columns.axis)))
        np.add.at(taken, self.rows_of(services), columns.demands(services))
        self.capacity = np.array([columns.offers(line) for _, _, line in lines]) - taken[self.row]

    def rows_of(self, pods: Sequence[PodLine]) -> Rows:
        """Return the row of the node of each pod [P]."""
        return np.array([self.rows[str(pod.node)] for pod in pods], dtype=np.intp)

    def hold(self, demand: Floats, node: Rows, bound: Floats) -> None:
        """Have nodes be large enough for each pod [T] by itself that was `bound` there, whatever the services take.

        What is not limited is as much as all pods want together, and more.
        """
        finite = np.isfinite(self.capacity)
        unlimited = np.maximum(demand.sum(axis=0), UNLIMITED)
        self.capacity = np.where(finite, np.maximum(self.capacity, 0.0), unlimited)
        present = np.flatnonzero([version is not None for version in self.node])
        span = 1.0 + max(float(bound.max(initial=0.0)), float(self.since.max(initial=0.0)))
        at = np.searchsorted(self.row[present] * span + self.since[present], node * span + bound, side="right") - 1
        first = np.searchsorted(self.row[present], node)  # of one that was bound before its node was seen
        np.maximum.at(self.capacity, present[np.maximum(at, first)], demand)

    def take(self, need: Floats, constraints: Constraints) -> bool:
        """Say whether some node, at some time, takes a pod that needs this [R]."""
        fits = np.flatnonzero((need <= self.capacity).all(axis=1))
        nodes = (self.node[version] for version in fits.tolist())
        return any(node is not None and node.allows(constraints) for node in nodes)

    def machines(self, name: str, end: float) -> Machines:
        """Return the machines of a recording that ended at `end`.

        What they offer is the most that they ever did. Labels and taints are those that each had for longest.
        """
        last = np.append(self.row[1:] != self.row[:-1], True)
        seconds = np.where(last, end, np.append(self.since[1:], end)) - self.since
        most = np.zeros((len(self.rows), len(self._columns.axis)))
        np.maximum.at(most, self.row, self.capacity)
        longest: dict[int, int] = {}
        for version, (row, node) in enumerate(zip(self.row.tolist(), self.node, strict=True)):
            if node is not None and (row not in longest or seconds[version] > seconds[longest[row]]):
                longest[row] = version
        nodes = tuple(node for row in sorted(longest) if (node := self.node[longest[row]]) is not None)
        return Machines(name, most, axis=self._columns.axis, nodes=nodes, changes=self._changes())

    def _changes(self) -> tuple[NodeChange, ...]:
        """Return the changes of those nodes that came, went or changed, by time."""
        always = (np.bincount(self.row) == 1)[self.row] & (self.since == 0.0)
        changes = [
            NodeChange(float(self.since[version]), int(self.row[version]), self.node[version], self.capacity[version])
            for version in np.flatnonzero(~always).tolist()
        ]
        first = np.append(True, self.row[1:] != self.row[:-1])
        nothing = np.zeros(len(self._columns.axis))
        late = np.flatnonzero(first & (self.since > 0.0)).tolist()
        absent = [NodeChange(0.0, int(self.row[version]), None, nothing) for version in late]
        return tuple(sorted([*absent, *changes], key=lambda change: change.at))
