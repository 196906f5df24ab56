"""Young regular pods: those that began within the window, or half a minute ago. No measurement holds them whole yet."""

from collections.abc import Iterator, Sequence

import numpy as np

from extender.cluster.ledger.layout import Layout
from extender.cluster.model import Pod
from extender.cluster.usage import Usage
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.idle_room.measured_use import MeasuredUse
from extender.control.idle_room.room import Expected, Young, measured_of
from extender.policy.slack import RAMP_UP_SECONDS, measured_whole

LATE_SECONDS = 120.0
"""Pods of a class start in the order in which they got their nodes, give or take so much."""


_OLDER_IN_A_ROW = 32
"""After so many pods of a class that are older, all before them are."""


def starting(
    backlog: Backlog, layout: Layout, measured: MeasuredUse, usage: Usage, expected: Expected | None = None
) -> Young:
    """Return what the measurement holds of young regular pods, and what they count instead.

    That is what is `expected` of them (None: all that they need). Cost follows the young pods, not all: of each class
    the last ones are looked at. Pods that take no part in the backlog are not known here.
    """
    nothing = np.zeros(layout.capacity.shape)
    is_measured = np.isfinite(measured.at)
    if not is_measured.any():
        return Young(nothing, nothing)
    earliest = min(measured.since[is_measured].min(), measured.at[is_measured].min() - RAMP_UP_SECONDS) - LATE_SECONDS
    candidates = _candidates(backlog, layout, earliest)
    if not candidates:
        return Young(nothing, nothing)
    rows = np.array([layout.rows[pod.node or ""] for pod in candidates], dtype=np.intp)
    began = np.array([_began(pod) for pod in candidates])
    young = np.flatnonzero(~measured_whole(began, measured.since[rows], measured.at[rows]))
    pods = [candidates[place] for place in young.tolist()]
    demand = layout.vectors(pod.demand for pod in pods)
    return Young.of(
        layout, rows[young], measured_of(pods, usage, layout), demand if expected is None else expected(pods, demand)
    )


def _candidates(backlog: Backlog, layout: Layout, earliest: float) -> Sequence[Pod]:
    """Return the regular pods on nodes of the layout that began after `earliest`."""
    with backlog.lock:
        return [
            pod
            for task_class in backlog.classes()
            for pod in began_after(task_class, earliest)
            if pod.node in layout.rows and not pod.opportunistic
        ]


def began_after(task_class: TaskClass, earliest: float) -> Iterator[Pod]:
    """Yield the pods of a class on nodes that began after `earliest`, and those that have not begun; last come first.

    Pods come about in the order in which they begin, but one that is resized comes anew. So the look ends once so many
    in a row are older. Hold the backlog's lock.
    """
    older = 0
    for pod in reversed(task_class.pods[PodPhase.RUNNING].values()):
        older = older + 1 if _began(pod) <= earliest else 0
        if older > _OLDER_IN_A_ROW:
            return
        if not older:
            yield pod


def _began(pod: Pod) -> float:
    return np.inf if pod.started is None else pod.started
