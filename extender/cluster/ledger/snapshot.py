"""One immutable moment of the cluster, as arrays: who holds what, who is on the way, who is nominated.

Rows and columns are those of its layout: N nodes, R dimensions.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Mask, Rows, read_only
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.mix import NO_MIX, Mix
from extender.cluster.ledger.pod_rows import PodRows, no_pods
from extender.cluster.model import Node, Pod
from extender.cluster.pods.reading import given, taken
from extender.cluster.resources import Amounts

LOWEST_PRIORITY = -(2**31)
"""That of no pod is lower: what is nominated counts whatever its priority."""

_NOT_SAID: Floats = np.zeros((0, 0))
_NOT_SAID.setflags(write=False)


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
        holding = (pod for pod in self._changes.values() if pod is not None and pod.holds in self.layout.rows)
        come = sorted(holding, key=lambda pod: pod.uid)
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
        layout = self.layout.with_nodes(nodes)
        more = layout.capacity[len(self.layout.names) :]
        return replace(
            self,
            layout=layout,
            allocated=read_only(np.vstack((self.allocated, np.zeros_like(more)))),
            in_flight=read_only(np.vstack((self.in_flight, np.zeros_like(more)))),
            given=read_only(np.vstack((self.given, np.zeros_like(more)))),
            placed=read_only(np.vstack((self.placed, np.zeros_like(more)))),
            empty=read_only(np.vstack((self.empty, more))),
            mix=self.mix.with_nodes(len(nodes)),
        )


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
    return Nominations(
        uids=tuple(pod.uid for pod, *_ in taking),
        rows=read_only(np.array([row for _, row, *_ in taking], dtype=np.intp)),
        priorities=read_only(np.array([pod.priority for pod, *_ in taking], dtype=np.int64)),
        demand=read_only(layout.vectors(counts for *_, counts, _ in taking)),
        given=read_only(layout.vectors(beyond for *_, beyond in taking)),
    )
