"""Which row of an array is which node, which column is which dimension, and what each node offers.

N nodes, sorted by name; R dimensions: the six, then by name what else some node offers, then what none does.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats, Rows, read_only
from extender.cluster.eligibility import Taint
from extender.cluster.model import Node
from extender.cluster.resources import DEVICE_CLAIMS, DIMENSIONS, IO_DIMENSIONS, PODS, Amounts, is_extended, is_packed

_NOT_SAID: Floats = np.zeros((0, 0))
_NOT_SAID.setflags(write=False)

UNADVERTISED = "unadvertised resources"
"""The last dimension of `layout_of`: all that pods ask for and no node offers. There is nothing of it anywhere."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which row is which node, which column is which dimension, and what each node offers.

    `capacity` [N, R] is infinite where a node does not declare a disk or network rate: we do not limit it there. Of all
    else a node has nothing that it does not advertise, as kube-scheduler sees it. `system` [N, R] is what each has and
    offers to nobody (capacity - allocatable), `threshold` [N] the T_alloc that it states; NaN: none, as where neither
    is given. `soft_taints` are those that only ask pods to stay away (PreferNoSchedule), with the rows of the nodes
    that have them.
    """

    names: tuple[str, ...]
    rows: Mapping[str, int]
    axis: tuple[str, ...]
    columns: Mapping[str, int]
    capacity: Floats
    system: Floats = field(default_factory=lambda: _NOT_SAID)
    threshold: Floats = field(default_factory=lambda: _NOT_SAID)
    soft_taints: Mapping[tuple[Taint, ...], Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.system is _NOT_SAID:
            object.__setattr__(self, "system", np.broadcast_to(0.0, self.capacity.shape))
        if self.threshold is _NOT_SAID:
            object.__setattr__(self, "threshold", np.broadcast_to(np.nan, self.capacity.shape[:1]))

    @property
    def total(self) -> Floats:
        """What all nodes offer together of what shares are of [R]."""
        return total_of(self.capacity, self.axis)

    @property
    def packed(self) -> Floats:
        """What each node offers of the dimensions that say how well a pod suits it [N, R]; infinite of others."""
        return np.where([is_packed(name) for name in self.axis], self.capacity, np.inf)

    def vector(self, amounts: Amounts) -> Floats:
        """Return amounts as a row [R]; what no node offers is added up in the last dimension."""
        row, complete = np.zeros(len(self.axis)), True
        for name, amount in amounts.items():
            column = self.columns.get(name)
            if column is None:
                complete = False
            else:
                row[column] = amount
        if not complete and UNADVERTISED in self.columns:
            row[self.columns[UNADVERTISED]] = sum(amounts[name] for name in self.unadvertised(amounts))
        return row

    def vectors(self, each: Iterable[Amounts]) -> Floats:
        """Return amounts as rows [P, R]; a row is made once for all that are the same."""
        table: list[Floats] = []
        kinds: dict[tuple[tuple[str, float], ...], int] = {}
        rows: list[int] = []
        for amounts in each:
            kind = tuple(amounts.items())
            if kind not in kinds:
                kinds[kind] = len(table)
                table.append(self.vector(amounts))
            rows.append(kinds[kind])
        return np.array(table).reshape(len(table), len(self.axis))[np.array(rows, dtype=np.intp)]

    def unadvertised(self, amounts: Amounts) -> list[str]:
        """Return which of these resources no node offers; with device claims no extended ones: a claim may bring them.

        Where no node says how many pods it takes, nobody counts them.
        """
        claims = amounts.get(DEVICE_CLAIMS, 0.0) > 0
        return [
            name
            for name, amount in amounts.items()
            if amount > 0
            and name not in self.columns
            and name not in (PODS, DEVICE_CLAIMS)
            and not (claims and is_extended(name))
        ]

    def with_nodes(self, nodes: Sequence[Node]) -> "Layout":
        """Return the layout with these nodes after the others, on the same axis."""
        return _layout(
            self.names + tuple(node.name for node in nodes),
            self.axis,
            np.vstack((self.capacity, _capacities(nodes, self.axis))),
            np.vstack((self.system, _systems(nodes, self.axis))),
            np.concatenate((self.threshold, _thresholds(nodes))),
            _with_more(self.soft_taints, _soft_taints(nodes, first=len(self.names))),
        )


def layout_of(nodes: Mapping[str, Node]) -> Layout:
    """Return the layout of these nodes: rows by name, columns the six dimensions, what else they offer, the rest."""
    names = tuple(sorted(nodes))
    offered = {name for node in nodes.values() for name, amount in node.allocatable.items() if amount > 0}
    axis = (*DIMENSIONS, *sorted(offered.difference(DIMENSIONS)), UNADVERTISED)
    rows = [nodes[name] for name in names]
    return _layout(names, axis, _capacities(rows, axis), _systems(rows, axis), _thresholds(rows), _soft_taints(rows))


def total_of(capacity: Floats, axis: Sequence[str]) -> Floats:
    """Return what all nodes offer together, of the dimensions that they limit and that shares are of [R]; 0 of others.

    A place for a pod is no part of a share: small pods would count as much as large ones. A node that does not limit a
    dimension (`capacity` [N, R] is infinite) counts like the mean of those that do: pods on it hold their share, too.
    """
    limited = np.isfinite(capacity) & [name != PODS for name in axis]
    declared = np.where(limited, capacity, 0.0).sum(axis=0)
    return np.asarray(declared * (len(capacity) / np.maximum(limited.sum(axis=0), 1)))


def laid_out(node: Node) -> tuple[object, ...]:
    """Return all of a node that a layout says: while it stays as it is, so does the layout."""
    return (node.allocatable, node.terms, _soft_taints_of(node))


def _layout(
    names: tuple[str, ...],
    axis: tuple[str, ...],
    capacity: Floats,
    system: Floats,
    threshold: Floats,
    soft_taints: Mapping[tuple[Taint, ...], Rows],
) -> Layout:
    return Layout(
        names=names,
        rows={name: row for row, name in enumerate(names)},
        axis=axis,
        columns={name: column for column, name in enumerate(axis)},
        capacity=read_only(capacity),
        system=read_only(system),
        threshold=read_only(threshold),
        soft_taints=soft_taints,
    )


def _soft_taints(nodes: Sequence[Node], first: int = 0) -> dict[tuple[Taint, ...], Rows]:
    """Return the rows of the nodes with soft taints, by these; the `first` of the nodes has this row."""
    rows: defaultdict[tuple[Taint, ...], list[int]] = defaultdict(list)
    for row, node in enumerate(nodes, first):
        if soft := _soft_taints_of(node):
            rows[soft].append(row)
    return {taints: np.array(places, dtype=np.intp) for taints, places in rows.items()}


def _with_more(
    known: Mapping[tuple[Taint, ...], Rows], more: Mapping[tuple[Taint, ...], Rows]
) -> dict[tuple[Taint, ...], Rows]:
    return {
        taints: np.concatenate([rows[taints] for rows in (known, more) if taints in rows])
        for taints in {**known, **more}
    }


def _soft_taints_of(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.taints if taint.effect == "PreferNoSchedule")


def _capacities(nodes: Sequence[Node], axis: Sequence[str]) -> Floats:
    """Return what nodes offer [N, R]: disk and network rates that a node does not declare are unlimited.

    So is, on a node that offers something that is not on the axis, all that is not.
    """
    default = {name: np.inf if name in IO_DIMENSIONS else 0.0 for name in axis}
    known = set(axis)
    rows = [
        [node.allocatable.get(name, default[name]) for name in axis[:-1]] + [np.inf if _offers(node, known) else 0.0]
        for node in nodes
    ]
    return np.array(rows).reshape(len(nodes), len(axis))


def _systems(nodes: Sequence[Node], axis: Sequence[str]) -> Floats:
    """Return what nodes have and offer to nobody [N, R]."""
    rows = [[node.terms.system.get(name, 0.0) for name in axis] for node in nodes]
    return np.array(rows).reshape(len(nodes), len(axis))


def _thresholds(nodes: Sequence[Node]) -> Floats:
    """Return the T_alloc that nodes state [N], NaN where one states none."""
    stated = [node.terms.effective for node in nodes]
    return np.array([np.nan if threshold is None else threshold for threshold in stated], dtype=np.float64)


def _offers(node: Node, besides: Set[str]) -> bool:
    """Say whether a node offers anything besides these."""
    return any(amount > 0 and name not in besides for name, amount in node.allocatable.items())
