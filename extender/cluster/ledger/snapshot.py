"""One immutable moment of the cluster: arrays, and the way from names to rows and back.

N nodes, sorted by name; R dimensions: the six, then by name what else some node offers, then what none does.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Mask, Rows
from extender.cluster.eligibility import Taint
from extender.cluster.ledger.mix import NO_MIX, Mix
from extender.cluster.ledger.pod_rows import PodRows, no_pods
from extender.cluster.model import Node, Pod
from extender.cluster.pods.reading import given, taken
from extender.cluster.resources import DEVICE_CLAIMS, DIMENSIONS, IO_DIMENSIONS, PODS, Amounts, is_extended, is_packed

Number = TypeVar("Number", np.float64, np.int64, np.intp)

LOWEST_PRIORITY = -(2**31)
"""That of no pod is lower: what is nominated counts whatever its priority."""

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
        """What all nodes offer together, of the dimensions that they limit and that shares are of [R]; 0 of others.

        A place for a pod is no part of a share: small pods would count as much as large ones.
        """
        limited = np.isfinite(self.capacity) & [name != PODS for name in self.axis]
        return np.asarray(np.where(limited, self.capacity, 0.0).sum(axis=0))

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


@dataclass(frozen=True, slots=True)
class Nominations:
    """Waiting pods that somebody nominated to a node: they count there against pods of equal or lower priority.

    One that will read its input from other nodes has a row for each. `demand` [K, R] is what counts there, `given`
    [K, R] what opportunistic ones need beyond that; nothing where it is not said.
    """

    uids: tuple[str, ...]
    rows: Rows
    priorities: NDArray[np.int64]
    demand: Floats
    given: Floats = field(default_factory=lambda: _NOT_SAID)

    def __post_init__(self) -> None:
        if self.given is _NOT_SAID:
            object.__setattr__(self, "given", np.broadcast_to(0.0, self.demand.shape))

    def load(self, shape: tuple[int, ...], *, priority: int, uid: str) -> Floats | None:
        """Return what nominated pods take from a pod of this priority and UID [N, R]; None where there are none."""
        counts = self.priorities >= priority
        if uid in self.uids:
            counts[[place for place, other in enumerate(self.uids) if other == uid]] = False
        return self._load(shape, self.demand, counts)

    def given_to(self, shape: tuple[int, ...]) -> Floats | None:
        """Return what opportunistic ones need, of any priority [N, R]; None where there are none."""
        return self._load(shape, self.given, np.asarray(self.given.any(axis=1)))

    def _load(self, shape: tuple[int, ...], amounts: Floats, counts: Mask) -> Floats | None:
        """Return what these rows that `counts` marks [K] have of each node [N, R]."""
        if not counts.any():
            return None
        load = np.zeros(shape)
        np.add.at(load, self.rows[counts], amounts[counts])
        return load


def no_nominations(dimensions: int) -> Nominations:
    """Return that nobody is nominated."""
    return Nominations((), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), np.empty((0, dimensions)))


class OpportunisticPods:
    """The opportunistic pods that hold a node of a layout [P], sorted by UID.

    Arrays are made when somebody asks: most who look at a snapshot do not. They are made of those that were asked for
    before, and of what has changed since.
    """

    def __init__(self, holders: Iterable[Pod], layout: Layout) -> None:
        """Take those that hold any node."""
        self.layout = layout
        self._known = no_pods(len(layout.axis))
        self._changes: Mapping[str, Pod | None] = {pod.uid: pod for pod in holders}

    def after(self, changes: Mapping[str, Pod | None]) -> "OpportunisticPods":
        """Return these pods after some have changed, by UID; None: it is none of them any more.

        Where nobody asks for arrays, changes pile up, but not beyond the number of the pods.
        """
        later = OpportunisticPods((), self.layout)
        if "_rows" in vars(self) or len(self._changes) > len(self._known.uids):
            later._known, later._changes = self._rows, changes
        else:
            later._known, later._changes = self._known, {**self._changes, **changes}
        return later

    @cached_property
    def _rows(self) -> PodRows:
        if not self._changes:
            return self._known
        there = (pod for pod in self._changes.values() if pod is not None and pod.holds in self.layout.rows)
        come = sorted(there, key=lambda pod: pod.uid)
        return self._known.changed(self._changes.keys(), _rows_of(come, self.layout))

    @cached_property
    def pods(self) -> Sequence[Pod]:
        """The pods themselves [P]."""
        return tuple(self._rows.pods.tolist())

    @cached_property
    def uids(self) -> Sequence[str]:
        """Their UIDs [P]."""
        return tuple(self._rows.uids.tolist())

    def rows_of(self, uids: Collection[str]) -> Rows:
        """Return the rows of those of these pods that are there, in the order of the rows."""
        return self._rows.rows_of(uids)

    @property
    def node(self) -> Rows:
        """The row of the node that each holds [P]."""
        return self._rows.node

    @property
    def demand(self) -> Floats:
        """What each needs of its own node beyond what it counts there [P, R]: its part of the snapshot's `given`."""
        return self._rows.demand

    @property
    def started(self) -> Floats:
        """When each started, in seconds since the epoch [P]; infinite where it has not yet."""
        return self._rows.started

    @property
    def priority(self) -> NDArray[np.int64]:
        """The priority of each [P]."""
        return self._rows.priority


def _rows_of(pods: Sequence[Pod], layout: Layout) -> PodRows:
    """Return the rows of opportunistic pods that hold nodes of a layout, in this order."""
    vectors: list[Floats] = []
    kinds: dict[tuple[object, ...], int] = {}  # pods of a class are alike
    rows: list[int] = []
    for pod in pods:
        node = pod.node or ""
        kind = (tuple(pod.demand.items()), pod.inputs, node if pod.inputs else "")
        if kind not in kinds:
            kinds[kind] = len(kinds)
            vectors.append(layout.vector(given(pod, node, layout.rows)[node]))
        rows.append(kinds[kind])
    started = [np.inf if pod.started is None else pod.started for pod in pods]
    return PodRows(
        np.array([pod.uid for pod in pods], dtype=np.object_),
        np.fromiter(pods, dtype=np.object_, count=len(pods)),
        np.array([layout.rows[pod.node or ""] for pod in pods], dtype=np.intp),
        np.array(vectors).reshape(len(vectors), len(layout.axis))[np.array(rows, dtype=np.intp)],
        np.array(started, dtype=np.float64),
        np.array([pod.priority for pod in pods], dtype=np.int64),
    )


_NOBODY = OpportunisticPods((), Layout((), {}, (), {}, _NOT_SAID))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at one version: what is allocated for certain, and what pods in flight may add [N, R].

    That is the first book, of what counts as regular. The second says what opportunistic pods need beyond it: `given`
    [N, R], of those on nodes and of those in flight, and `opportunistic`, those on nodes one by one. Both are empty
    where they are not said. `placed` [N, R] is the part of `in_flight` of pods whose node is known. `assumed` counts
    the pods that ever took off, `flights` those in flight, `heard` the events taken in. `mix` is what pods on nodes
    ask for, of those that ask for devices. `empty` [N, R] is what nodes have free once all pods are gone that may go:
    not those of DaemonSets, nor static ones. Where it is not said it is what they offer.
    """

    version: int
    assumed: int
    layout: Layout
    allocated: Floats
    in_flight: Floats
    nominations: Nominations
    flights: int = 0
    heard: int = 0
    given: Floats = field(default_factory=lambda: _NOT_SAID)
    opportunistic: OpportunisticPods = _NOBODY
    placed: Floats = field(default_factory=lambda: _NOT_SAID)
    empty: Floats = field(default_factory=lambda: _NOT_SAID)
    mix: Mix = NO_MIX

    def __post_init__(self) -> None:
        for book in ("given", "placed"):
            if getattr(self, book) is _NOT_SAID:
                object.__setattr__(self, book, np.broadcast_to(0.0, self.allocated.shape))
        if self.empty is _NOT_SAID:
            object.__setattr__(self, "empty", self.layout.capacity)
        if self.opportunistic is _NOBODY:
            object.__setattr__(self, "opportunistic", OpportunisticPods((), self.layout))

    def free(self, priority: int = LOWEST_PRIORITY) -> Floats:
        """Return what is free as regular for a pod of a priority [N, R], once what is in flight or nominated is there.

        Below 0 where a node is promised more than once.
        """
        free = self.layout.capacity - self.allocated - self.in_flight
        nominated = self.nominations.load(free.shape, priority=priority, uid="")
        return free if nominated is None else free - nominated

    def with_nodes(self, nodes: Sequence[Node]) -> "Snapshot":
        """Return a snapshot that also knows these empty nodes, after the others, on the same axis."""
        layout, axis = self.layout, self.layout.axis
        more = _capacities(nodes, axis)
        return replace(
            self,
            layout=_layout(
                layout.names + tuple(node.name for node in nodes),
                axis,
                np.vstack((layout.capacity, more)),
                np.vstack((layout.system, _systems(nodes, axis))),
                np.concatenate((layout.threshold, _thresholds(nodes))),
                _with_more(layout.soft_taints, _soft_taints(nodes, first=len(layout.names))),
            ),
            allocated=read_only(np.vstack((self.allocated, np.zeros_like(more)))),
            in_flight=read_only(np.vstack((self.in_flight, np.zeros_like(more)))),
            given=read_only(np.vstack((self.given, np.zeros_like(more)))),
            placed=read_only(np.vstack((self.placed, np.zeros_like(more)))),
            empty=read_only(np.vstack((self.empty, more))),
            mix=self.mix.with_nodes(len(nodes)),
        )


def read_only(array: NDArray[Number]) -> NDArray[Number]:
    """Return the array itself, no longer to be written to."""
    array.setflags(write=False)
    return array


def layout_of(nodes: Mapping[str, Node]) -> Layout:
    """Return the layout of these nodes: rows by name, columns the six dimensions, what else they offer, the rest."""
    names = tuple(sorted(nodes))
    offered = {name for node in nodes.values() for name, amount in node.allocatable.items() if amount > 0}
    axis = (*DIMENSIONS, *sorted(offered.difference(DIMENSIONS)), UNADVERTISED)
    rows = [nodes[name] for name in names]
    return _layout(names, axis, _capacities(rows, axis), _systems(rows, axis), _thresholds(rows), _soft_taints(rows))


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
    return {taints: np.array(there, dtype=np.intp) for taints, there in rows.items()}


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


def nominations_of(pods: Iterable[Pod], layout: Layout) -> Nominations:
    """Return what nominated pods take of the nodes that they wait for, and of those that they will read from."""
    taking: list[tuple[Pod, int, Amounts, Amounts]] = []
    for pod in pods:
        node = pod.awaited or ""
        if node in layout.rows:
            counts, beyond = taken(pod, node, layout.rows), given(pod, node, layout.rows)
            taking += [
                (pod, layout.rows[name], counts.get(name, {}), beyond.get(name, {})) for name in {**counts, **beyond}
            ]
    shape = (len(taking), len(layout.axis))
    return Nominations(
        uids=tuple(pod.uid for pod, *_ in taking),
        rows=read_only(np.array([row for _, row, *_ in taking], dtype=np.intp)),
        priorities=read_only(np.array([pod.priority for pod, *_ in taking], dtype=np.int64)),
        demand=read_only(np.array([layout.vector(counts) for *_, counts, _ in taking]).reshape(shape)),
        given=read_only(np.array([layout.vector(beyond) for *_, beyond in taking]).reshape(shape)),
    )
