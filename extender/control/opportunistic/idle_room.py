"""How much room there is for opportunistic pods on each node (UBIS, algorithm 1; Tetris, 4.1 for young pods).

    T_alloc x allocatable - what is used - what pods need that the measurement does not hold yet

That holds for regular pods as well: what was promised to one that has not begun is idle, and not for long. What a
resize cannot free (pod slots, GPUs and the like) must be free as for a regular pod.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, sum_by
from extender.cluster.ledger.snapshot import Layout, Snapshot
from extender.cluster.resources import DIMENSIONS, PODS
from extender.cluster.usage import Sample, Usage
from extender.control.opportunistic.measured_use import MeasuredUse
from extender.policy import slack

RAMP_UP_SECONDS = 30.0
"""A pod counts by what it is expected to use until a whole window lies after its start, and at least so long."""

LOWEST_PRIORITY = -(2**31)
"""No pod has a lower one."""

SLOTS_KEPT = 0.2
"""The part of a node's pod slots that opportunistic pods leave to regular ones."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """T_alloc: of all nodes but those that state their own; 0 turns a node off."""

    usual: float = 0.8

    def on(self, layout: Layout) -> Floats:
        """Return the threshold of each node of a layout [N]."""
        return np.where(np.isnan(layout.threshold), self.usual, layout.threshold)


def idle_room(
    snapshot: Snapshot, measured: MeasuredUse, usage: Usage, thresholds: Thresholds, expected: Floats | None = None
) -> Floats:
    """Return what opportunistic pods may take of each node [N, R], 0 where its use was not measured.

    `measured` is on the snapshot's rows and columns. `expected` [N, R] is what young regular pods may use beyond what
    was measured of them. Nominated pods and those in flight, regular or not, count with all that they need, as nothing
    of them runs.
    """
    layout = snapshot.layout
    shared = np.array([name in DIMENSIONS for name in layout.axis])
    young, given = _young(snapshot, measured, usage)
    waiting, coming = snapshot.nominations.given_to(layout.capacity.shape, besides=""), _coming(snapshot)
    for more in (expected, waiting, coming):
        given = given if more is None else given + more
    use = slack.ramped_up(measured.used, young, given)
    room = slack.idle_room(use, layout.capacity, thresholds.on(layout))
    return np.where(shared, _known_only(room, measured, layout), _regular_room(snapshot, coming))


def _known_only(room: Floats, measured: MeasuredUse, layout: Layout) -> Floats:
    """Return no room at all where CPU or memory was not measured, or a rate that the node limits [N, R]."""
    missing: Mask = np.isnan(measured.used) & np.isfinite(layout.capacity)
    unknown = np.count_nonzero(missing[:, : len(DIMENSIONS)], axis=1) > 0
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


def _young(snapshot: Snapshot, measured: MeasuredUse, usage: Usage) -> tuple[Floats, Floats]:
    """Return what the measurement holds of young opportunistic pods, and what they count instead [N, R] each.

    What is given to others is in the measurement.
    """
    pods, shape = snapshot.opportunistic, snapshot.layout.capacity.shape
    held = np.zeros(shape)
    if not len(pods.node):
        return held, np.array(snapshot.given)
    node = pods.node
    is_young = ~slack.measured_whole(pods.started, measured.since[node], measured.at[node], RAMP_UP_SECONDS)
    old = sum_by(node[~is_young], pods.demand[~is_young], shape[0])
    young = np.flatnonzero(is_young)
    rows = [_row(usage.pods.get(pods.uids[place]), snapshot.layout) for place in young.tolist()]
    np.add.at(held, node[young], np.array(rows).reshape(len(rows), shape[1]))
    return held, np.maximum(snapshot.given - old, 0.0)


def _row(sample: Sample | None, layout: Layout) -> list[float]:
    return [0.0 if sample is None else sample.amounts.get(name, 0.0) for name in layout.axis]
