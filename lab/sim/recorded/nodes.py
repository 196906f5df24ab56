"""Recorded nodes as machines: what each offers of all that pods asked for, its labels and its taints."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.model import Node
from extender.cluster.recording.lines import NodeLine, PodLine
from extender.cluster.resources import DIMENSIONS, IO_DIMENSIONS, PODS, Amounts


@dataclass(frozen=True, slots=True)
class Columns:
    """The resources that are counted: `axis` [R] has the six dimensions, then by name what some node offers.

    Of what pods ask for, `unknown` are those resources that no node offers.
    """

    axis: tuple[str, ...]
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, nodes: Iterable[NodeLine], pods: Sequence[PodLine]) -> "Columns":
        """Return those of a recording. Places for pods count where one node has fewer of them than there were pods."""
        nodes = list(nodes)
        asked = {name for pod in pods for name in pod.demand} - {*DIMENSIONS, PODS}
        offered = {name for node in nodes for name in node.offers}
        axis = asked & offered
        if min((node.offers.get(PODS, np.inf) for node in nodes), default=np.inf) < len(pods):
            axis.add(PODS)
        return cls((*DIMENSIONS, *sorted(axis)), tuple(sorted(asked - offered)))

    def demands(self, pods: Sequence[PodLine]) -> Floats:
        """Return what each pod asks for [P, R]."""
        return np.array([self._row(pod.demand) for pod in pods]).reshape(-1, len(self.axis))

    def offers(self, node: NodeLine) -> Floats:
        """Return what a node offers [R]: infinite of a disk or network that it does not limit."""
        return np.array([node.offers.get(name, np.inf if name in IO_DIMENSIONS else 0.0) for name in self.axis])

    def _row(self, amounts: Amounts) -> list[float]:
        return [amounts.get(name, 0.0) for name in self.axis]


def capacity_of(offers: Floats, taken: Floats, demand: Floats, node: Rows) -> Floats:
    """Return what nodes have for the pods that are replayed [N, R]: `offers` [N, R] without what is `taken` of them.

    A node has as much as any one pod had that ran there: `demand` [T, R] on `node` [T]. What is not limited is as much
    as all pods want together.
    """
    finite = np.isfinite(offers)
    unlimited = np.where(finite.all(axis=0), 0.0, demand.sum(axis=0) + 1.0)
    capacity = np.where(finite, np.maximum(offers - taken, 0.0), unlimited)
    np.maximum.at(capacity, node, demand)
    return capacity


def node_of(line: NodeLine) -> Node:
    """Return a node as the service knows it."""
    return Node(line.name, line.offers, labels=line.labels, taints=line.taints, unschedulable=line.unschedulable)


def rows_of(nodes: Mapping[str, NodeLine]) -> dict[str, int]:
    """Return the row of each node, by name."""
    return {name: row for row, name in enumerate(sorted(nodes))}
