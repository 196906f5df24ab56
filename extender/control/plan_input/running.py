"""What runs, and until when it is expected to, as the planner's arrays: it reserves nodes by them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.reading import taken
from extender.cluster.waiting import Running
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass

_KEPT_SECONDS = 5.0
"""What runs is dear to look up, so the answer is kept for so long, but for the pods that have ended."""

_ENDLESS = ("DaemonSet", "ReplicaSet", "ReplicationController", "StatefulSet")
"""Owners whose pods run until somebody deletes them."""


class _Row(NamedTuple):
    """What one pod takes of one node."""

    node: int
    ends_at: float
    demand: Floats
    seconds: float
    uid: str


@dataclass(frozen=True, slots=True)
class _Kept:
    """What ran `at` a time, by the rows of a layout, and the UID of each row's pod."""

    at: float
    layout: Layout
    uids: Sequence[str]
    running: Running


class RunningTasks:
    """Looks at the pods of a backlog that are on nodes. Under its lock; one thread."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._kept: _Kept | None = None

    def at(self, now: float, layout: Layout) -> Running:
        """Return what runs at `now`. Pods that started in the last seconds may be missing; those that ended never are
        there, as their room is free already.
        """  # noqa: D205 - one sentence
        kept = self._kept
        if kept is not None and kept.layout is layout and 0 <= now - kept.at < _KEPT_SECONDS:
            return self._without_ended(kept)
        rows = list(self._rows(now, layout))
        running = Running(
            node=np.array([row.node for row in rows], dtype=np.intp),
            ends_at=np.array([row.ends_at for row in rows], dtype=np.float64),
            demand=np.array([row.demand for row in rows]).reshape(len(rows), len(layout.axis)),
            seconds=np.array([row.seconds for row in rows], dtype=np.float64),
        )
        self._kept = _Kept(now, layout, [row.uid for row in rows], running)
        return running

    def _rows(self, now: float, layout: Layout) -> Iterator[_Row]:
        usual = self._backlog.usual_seconds()
        for task_class in self._backlog.classes():
            pods = task_class.pods[PodPhase.RUNNING]
            if pods:
                yield from _rows_of(task_class, pods.values(), task_class.seconds(usual, now), now, layout)

    def _without_ended(self, kept: _Kept) -> Running:
        on_nodes = self._backlog.uids_at(PodPhase.RUNNING)
        runs = np.fromiter((uid in on_nodes for uid in kept.uids), dtype=np.bool_, count=len(kept.uids))
        running = kept.running
        if runs.all() or running.seconds is None:
            return running
        return Running(running.node[runs], running.ends_at[runs], running.demand[runs], running.seconds[runs])


def _rows_of(task_class: TaskClass, pods: Iterable[Pod], seconds: float, now: float, layout: Layout) -> Iterator[_Row]:
    """Yield what the running pods of a class take of their own nodes, and of the nodes that they read from."""
    demand = layout.vector(task_class.template.demand)
    for pod in pods:
        node = pod.node or ""
        if node not in layout.rows:
            continue
        for name, amounts in taken(pod, node, layout.rows).items():
            yield _Row(
                node=layout.rows[name],
                ends_at=_ends_at(pod, seconds, now),
                demand=demand if amounts is pod.demand else layout.vector(amounts),
                seconds=seconds if name == node else 0.0,  # reading from a node is no task of that node
                uid=pod.uid,
            )


def _ends_at(pod: Pod, seconds: float, now: float) -> float:
    """Return when a pod is expected to end: one that has run for longer than expected will run as long again.

    A pod that runs until somebody deletes it never ends.
    """
    if pod.owner_kind in _ENDLESS:
        return math.inf
    started = now if pod.started is None else min(pod.started, now)
    return max(started + seconds, 2 * now - started - seconds)
