"""What runs, and until when it is expected to, as the planner's arrays: it reserves nodes by them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.reading import taken
from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Running
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass

_KEPT_SECONDS = 5.0
"""What runs is dear to look up, so the answer is kept for so long, but for the pods that have ended."""

ENDLESS = frozenset({"DaemonSet", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Owners whose pods run until somebody deletes them."""


class _Rows(NamedTuple):
    """What the pods of one class take of nodes [T], while nothing `changes` there.

    `uids` and `started` are those of each row's pod; NaN: that is not known. `endless` runs until somebody deletes it.
    `own`: this is the pod's own node, not one that it reads from.
    """

    task_class: TaskClass
    changes: int
    node: Rows
    started: Floats
    endless: Mask
    own: Mask
    demand: Floats
    uids: Sequence[str]

    @property
    def is_as_made(self) -> bool:
        return self.changes == self.task_class.changes_on_nodes


@dataclass(frozen=True, slots=True)
class _Kept:
    """What ran `at` a time, by the rows of a layout, and class by class in the same order."""

    at: float
    layout: Layout
    classes: Sequence[_Rows]
    running: Running


class RunningTasks:
    """Looks at the pods of a backlog that are on nodes. Under its lock; one thread.

    Cost follows the classes of which a pod on a node has changed, not all pods.
    """

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
        before = {} if kept is None or kept.layout is not layout else {rows.task_class: rows for rows in kept.classes}
        classes = list(self._rows(layout, before))
        running = self._running(classes, now, layout)
        self._kept = _Kept(now, layout, classes, running)
        return running

    def _rows(self, layout: Layout, before: Mapping[TaskClass, _Rows]) -> Iterator[_Rows]:
        for task_class in self._backlog.classes():
            pods = task_class.pods[PodPhase.RUNNING]
            if pods:
                rows = before.get(task_class)
                yield rows if rows is not None and rows.is_as_made else _rows_of(task_class, pods.values(), layout)

    def _running(self, classes: Sequence[_Rows], now: float, layout: Layout) -> Running:
        if not classes:
            return Running(np.empty(0, dtype=np.intp), np.empty(0), np.empty((0, len(layout.axis))), np.empty(0))
        usual = self._backlog.usual_seconds()
        seconds = np.repeat(
            [rows.task_class.seconds(usual, now) for rows in classes], [len(rows.node) for rows in classes]
        )
        started = np.fmin(np.concatenate([rows.started for rows in classes]), now)  # not known: it starts now
        # A pod past its expected end is taken to run on for as long as it is late.
        ends_at = np.maximum(started + seconds, 2 * now - started - seconds)
        return Running(
            node=np.concatenate([rows.node for rows in classes]),
            ends_at=np.where(np.concatenate([rows.endless for rows in classes]), np.inf, ends_at),
            demand=np.concatenate([rows.demand for rows in classes]),
            seconds=np.where(np.concatenate([rows.own for rows in classes]), seconds, 0.0),
        )

    def _without_ended(self, kept: _Kept) -> Running:
        on_nodes, running = self._backlog.uids_at(PodPhase.RUNNING), kept.running
        runs = np.ones(len(running.node), dtype=np.bool_)
        begun = 0
        for rows in kept.classes:
            end = begun + len(rows.uids)
            if not rows.is_as_made:
                runs[begun:end] = [uid in on_nodes for uid in rows.uids]
            begun = end
        if runs.all() or running.seconds is None:
            return running
        return Running(running.node[runs], running.ends_at[runs], running.demand[runs], running.seconds[runs])


def _rows_of(task_class: TaskClass, running: Iterable[Pod], layout: Layout) -> _Rows:
    """Return what the running pods of a class take of their own nodes, and of those that they read from."""
    pods = [pod for pod in running if pod.node in layout.rows]
    demand = layout.vector(task_class.template.demand)
    if any(pod.inputs for pod in pods):
        takes = [
            (pod, name, demand if amounts is pod.demand else layout.vector(amounts))
            for pod in pods
            for name, amounts in taken(pod, pod.node or "", layout.rows).items()
        ]
        pods, names = [pod for pod, _, _ in takes], [name for _, name, _ in takes]
        amounts = np.array([vector for _, _, vector in takes]).reshape(len(takes), len(layout.axis))
    else:
        names, amounts = [pod.node or "" for pod in pods], np.tile(demand, (len(pods), 1))
        amounts[np.array([pod.opportunistic for pod in pods], dtype=np.bool_), : len(DIMENSIONS)] = (
            0.0  # these come first on every axis
        )
    endless = [pod.owner_kind in ENDLESS for pod in pods]
    return _Rows(
        task_class,
        task_class.changes_on_nodes,
        node=np.array([layout.rows[name] for name in names], dtype=np.intp),
        started=np.array([pod.started for pod in pods], dtype=np.float64),
        endless=np.array(endless, dtype=np.bool_),
        own=np.array([name == pod.node for pod, name in zip(pods, names, strict=True)], dtype=np.bool_),
        demand=amounts,
        uids=[pod.uid for pod in pods],
    )
