"""How much room there is for opportunistic pods on each node (UBIS, algorithm 1; Tetris, 4.1 for young pods).

    T_alloc x allocatable - what is used - what pods need that the measurement does not hold yet

The window of a measurement still holds pods that have ended: these are taken off what is used.

With `auto` it is T_preempt x allocatable - the larger of the node's predicted peak (`predicted`) and what is used -
what pods need that is in neither.

Young regular pods count as well as opportunistic ones: what was promised to one that has not begun is idle, and not for
long. What a resize cannot free (pod slots, GPUs and the like) must be free as for a regular pod.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats, Mask, Rows, sum_by
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import LOWEST_PRIORITY, Snapshot
from extender.cluster.model import Pod
from extender.cluster.resources import DIMENSIONS, PODS
from extender.cluster.usage import Usage
from extender.control.idle_room.measured_use import MeasuredUse
from extender.policy import slack
from extender.policy.peak import auto_room

SLOTS_KEPT = 0.2
"""The part of a node's pod slots that opportunistic pods leave to regular ones."""


Expected = Callable[[Sequence[Pod], Floats], Floats]
"""Says what pods [P] that need `demand` [P, R] are expected to use [P, R]."""


@dataclass(frozen=True, slots=True)
class Young:
    """What a measurement `held` of young pods, and what is `expected` of them instead, on their nodes [N, R]."""

    held: Floats
    expected: Floats

    @classmethod
    def of(cls, layout: Layout, node: Rows, held: Floats, expected: Floats) -> "Young":
        """Return the books of pods [P] on the rows `node` [P], by what is `held` and `expected` of each [P, R]."""
        book = cls(np.zeros(layout.capacity.shape), np.zeros(layout.capacity.shape))
        np.add.at(book.held, node, held)
        np.add.at(book.expected, node, slack.at_least_measured(expected, held))
        return book


@dataclass(frozen=True, slots=True)
class Thresholds:
    """T_alloc: of all nodes, None where their predicted peaks decide (`auto`); not of those that state their own.

    0 turns a node off. `evict_at` is T_preempt by resource: up to it the peak may rise, where the peak decides.
    `peaks` [N, R] are of all pods that run but the young; without them such a node has no room.
    """

    usual: float | None = 0.8
    evict_at: Mapping[str, float] = field(default_factory=dict)
    peaks: Floats | None = None

    def on(self, layout: Layout) -> Floats:
        """Return the threshold of each node of a layout [N], NaN where its predicted peak decides."""
        usual = np.nan if self.usual is None else self.usual
        return np.where(np.isnan(layout.threshold), usual, layout.threshold)

    def most(self, layout: Layout) -> Floats:
        """Return up to what a predicted peak may rise [N, R]: above it pods would be started to be evicted."""
        return np.asarray(layout.capacity * [self.evict_at.get(name, 1.0) for name in layout.axis])


def idle_room(
    snapshot: Snapshot,
    measured: MeasuredUse,
    usage: Usage,
    thresholds: Thresholds,
    young_regular: Young | None = None,
    expected: Expected | None = None,
) -> Floats:
    """Return what opportunistic pods may take of each node [N, R], 0 where its use was not measured.

    `measured` is on the snapshot's rows and columns. Young opportunistic pods count with what is `expected` of them
    (None: all that they need). Nominated pods and those in flight, regular or not, count with all that they need, as
    nothing of them runs.
    """
    layout = snapshot.layout
    shared = np.array([name in DIMENSIONS for name in layout.axis])
    held, counted = _young(snapshot, measured, usage, expected)
    waiting, coming = snapshot.nominations.given_to(layout.capacity.shape), _coming(snapshot)
    for more in (None if young_regular is None else young_regular.expected, waiting, coming):
        counted = counted if more is None else counted + more
    for more in (None if young_regular is None else young_regular.held, measured.gone):
        held = held if more is None else held + more
    use = slack.ramped_up(measured.used, held, counted)
    threshold = thresholds.on(layout)
    room = slack.idle_room(use, layout.capacity, threshold)
    if thresholds.peaks is not None:
        by_peak = auto_room(thresholds.most(layout), np.maximum(use, thresholds.peaks + counted))
        room = np.where(np.isnan(threshold)[:, np.newaxis], by_peak, room)
    return np.where(shared, _known_only(room, measured, layout), _regular_room(snapshot, coming))


def unmeasured(measured: MeasuredUse, layout: Layout) -> Mask:
    """Return what was not measured of each node and keeps it from having idle room [N, D], of the shared dimensions."""
    missing: Mask = np.isnan(measured.used) & np.isfinite(layout.capacity)
    return missing[:, : len(DIMENSIONS)]


def _known_only(room: Floats, measured: MeasuredUse, layout: Layout) -> Floats:
    """Return no room at all where CPU or memory was not measured, or a rate that the node limits [N, R]."""
    unknown = np.count_nonzero(unmeasured(measured, layout), axis=1) > 0
    return np.where(unknown[:, np.newaxis], 0.0, room)


def _coming(snapshot: Snapshot) -> Floats:
    """Return what pods that do not run yet count as regular [N, R]: those in flight, and nominated ones."""
    nominated = snapshot.nominations.load(snapshot.layout.capacity.shape, priority=LOWEST_PRIORITY, uid="")
    return snapshot.in_flight if nominated is None else snapshot.in_flight + nominated


def _regular_room(snapshot: Snapshot, coming: Floats) -> Floats:
    """Return what is free as regular [N, R] besides what is `coming`, with some pod slots less."""
    layout = snapshot.layout
    free = layout.capacity - snapshot.allocated - coming
    if PODS in layout.columns:
        column = layout.columns[PODS]
        free[:, column] -= SLOTS_KEPT * layout.capacity[:, column]
    return np.asarray(np.maximum(free, 0.0))


def _young(snapshot: Snapshot, measured: MeasuredUse, usage: Usage, expected: Expected | None) -> tuple[Floats, Floats]:
    """Return what the measurement holds of young opportunistic pods, and what they count instead [N, R] each.

    The second holds also what pods in flight need, and what pods elsewhere read from the node. Such readers are in the
    measurement as well once they run: they count twice rather than not at all.
    """
    pods, layout = snapshot.opportunistic, snapshot.layout
    if not len(pods.node):
        return np.zeros(layout.capacity.shape), np.array(snapshot.given)
    node = pods.node
    is_young = ~slack.measured_whole(pods.started, measured.since[node], measured.at[node])
    # 1. Whoever was measured whole is in the measurement. The young are as well, in part: they count apart.
    rows = np.flatnonzero(is_young)
    young, demand = [pods.pods[row] for row in rows.tolist()], pods.demand[rows]
    counts = demand if expected is None else expected(young, demand)
    book = Young.of(layout, node[rows], measured_of(young, usage, layout), counts)
    # 2. The rest of what is given belongs to pods in flight, and to pods elsewhere that read from the node.
    others = snapshot.given - sum_by(node, pods.demand, len(layout.names))
    return book.held, np.maximum(others, 0.0) + book.expected


def measured_of(pods: Sequence[Pod], usage: Usage, layout: Layout) -> Floats:
    """Return what was measured of pods [P, R], 0 where nothing was."""
    use = np.zeros((len(pods), len(layout.axis)))
    for row, pod in enumerate(pods):
        sample = usage.pods.get(pod.uid)
        if sample is not None:
            use[row, : len(DIMENSIONS)] = [sample.amounts.get(name, 0.0) for name in DIMENSIONS]
    return use
