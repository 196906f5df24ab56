"""What runs, and until when it is expected to, as the planner's arrays: it reserves nodes by them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.reading import taken
from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Running
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass

_KEPT_SECONDS = 5.0
"""What runs is dear to look up, so the answer is kept for so long, but for the pods that have ended."""

_ENDLESS = frozenset({"DaemonSet", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Owners whose pods run until somebody deletes them."""


class _Rows(NamedTuple):
    """What the pods of one class take of nodes: as in `Running`, and the UID of each row's pod."""

    node: Rows
    ends_at: Floats
    demand: Floats
    seconds: Floats
    uids: Sequence[str]


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
        classes = list(self._rows(now, layout)) or [_nothing(layout)]
        node, ends_at, demand, seconds = (np.concatenate(column) for column in list(zip(*classes, strict=True))[:4])
        running = Running(node=node, ends_at=ends_at, demand=demand, seconds=seconds)
        self._kept = _Kept(now, layout, [uid for rows in classes for uid in rows.uids], running)
        return running

    def _rows(self, now: float, layout: Layout) -> Iterator[_Rows]:
        usual = self._backlog.usual_seconds()
        for task_class in self._backlog.classes():
            pods = list(task_class.pods[PodPhase.RUNNING].values())
            if pods:
                make = _rows_of_readers if any(pod.inputs for pod in pods) else _rows_of
                yield make(task_class, pods, task_class.seconds(usual, now), now, layout)

    def _without_ended(self, kept: _Kept) -> Running:
        on_nodes = self._backlog.uids_at(PodPhase.RUNNING)
        runs = np.fromiter(map(on_nodes.__contains__, kept.uids), dtype=np.bool_, count=len(kept.uids))
        running = kept.running
        if runs.all() or running.seconds is None:
            return running
        return Running(running.node[runs], running.ends_at[runs], running.demand[runs], running.seconds[runs])


def _nothing(layout: Layout) -> _Rows:
    return _Rows(np.empty(0, dtype=np.intp), np.empty(0), np.empty((0, len(layout.axis))), np.empty(0), ())


def _rows_of(task_class: TaskClass, pods: Sequence[Pod], seconds: float, now: float, layout: Layout) -> _Rows:
    """Return what the running pods of a class take of their own nodes."""
    pods = [pod for pod in pods if pod.node in layout.rows]
    demand = np.tile(layout.vector(task_class.template.demand), (len(pods), 1))
    opportunistic = np.array([pod.opportunistic for pod in pods], dtype=np.bool_)
    demand[opportunistic, : len(DIMENSIONS)] = 0.0  # CPU, memory and rates come first on every axis
    return _Rows(
        node=np.array([layout.rows[pod.node or ""] for pod in pods], dtype=np.intp),
        ends_at=_ends_at(pods, seconds, now),
        demand=demand,
        seconds=np.full(len(pods), seconds),
        uids=[pod.uid for pod in pods],
    )


def _rows_of_readers(task_class: TaskClass, pods: Sequence[Pod], seconds: float, now: float, layout: Layout) -> _Rows:
    """Return what the running pods of a class take of their own nodes, and of the nodes that they read from."""
    demand = layout.vector(task_class.template.demand)
    takes = [
        (place, name, amounts)
        for place, pod in enumerate(pods)
        if pod.node is not None and pod.node in layout.rows
        for name, amounts in taken(pod, pod.node, layout.rows).items()
    ]
    place = np.array([place for place, _, _ in takes], dtype=np.intp)
    own = [name == pods[place].node for place, name, _ in takes]
    vectors = [demand if amounts is pods[place].demand else layout.vector(amounts) for place, _, amounts in takes]
    return _Rows(
        node=np.array([layout.rows[name] for _, name, _ in takes], dtype=np.intp),
        ends_at=_ends_at(pods, seconds, now)[place],
        demand=np.array(vectors).reshape(len(vectors), len(layout.axis)),
        seconds=np.where(own, seconds, 0.0),  # reading from a node is no task of that node
        uids=[pods[place].uid for place, _, _ in takes],
    )


def _ends_at(pods: Sequence[Pod], seconds: float, now: float) -> Floats:
    """Return when pods are expected to end: one that has run for longer than expected will run as long again.

    A pod that runs until somebody deletes it never ends.
    """
    started = np.fmin(np.array([pod.started for pod in pods], dtype=np.float64), now)  # None: NaN, it starts now
    ends_at = np.maximum(started + seconds, 2 * now - started - seconds)
    owners = [pod.owner_kind for pod in pods]
    return (
        ends_at if _ENDLESS.isdisjoint(owners) else np.where([owner in _ENDLESS for owner in owners], np.inf, ends_at)
    )
