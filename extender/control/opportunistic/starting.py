"""What regular pods may use that is not measured yet: those that began within the window, or half a minute ago."""

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Layout
from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.opportunistic.idle_room import RAMP_UP_SECONDS
from extender.control.opportunistic.measured_use import MeasuredUse
from extender.policy.slack import measured_whole

_LATE_SECONDS = 120.0
"""Pods of a class start in the order in which they got their nodes, give or take so much."""


def starting(backlog: Backlog, layout: Layout, measured: MeasuredUse) -> Floats:
    """Return what young regular pods may use [N, R]: all that they need, as nobody measured what they do.

    Cost follows the young pods, not all: of each class the last ones are looked at. Pods that take no part in the
    backlog are not known here.
    """
    expected = np.zeros(layout.capacity.shape)
    known = np.isfinite(measured.at)
    if not known.any():
        return expected
    earliest = min(measured.since[known].min(), measured.at[known].min() - RAMP_UP_SECONDS) - _LATE_SECONDS
    node: list[int] = []
    started: list[float] = []
    demand: list[Floats] = []
    with backlog.lock:
        for task_class in backlog.classes():
            vector = None
            for pod in reversed(task_class.pods[PodPhase.RUNNING].values()):
                began = np.inf if pod.started is None else pod.started
                if began <= earliest:
                    break
                row = layout.rows.get(pod.node or "")
                if row is not None and not pod.opportunistic:
                    vector = layout.vector(pod.demand) if vector is None else vector
                    node.append(row)
                    started.append(began)
                    demand.append(vector)
    if node:
        rows, began_at = np.array(node, dtype=np.intp), np.array(started)
        old = measured_whole(began_at, measured.since[rows], measured.at[rows], RAMP_UP_SECONDS)
        np.add.at(expected, rows[~old], np.array(demand)[~old])
    return expected
