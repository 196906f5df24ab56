"""What queues have of the cluster, and what they should have: one formula, for the plan, for reclaim and for people.

A pod holds room, and what it demands is committed to its queue, when it is on a node, or on its way to one: nominated,
being released, or released and not refused (`Backlog.coming`). A released pod that kube-scheduler refused, and that is
not nominated, holds no room: else a queue with such pods would get nothing in their place. The pod's `schedulerName`
makes no difference. A queue is active when something is committed to it or one of its pods may be released; other
queues have no fair share. A queue's share is the dominant share of what is committed to it (DRF).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.queues.tree import QueueTree
from extender.policy.shares import dominant_shares


@dataclass(frozen=True, slots=True)
class CommittedPods:
    """How many pods of each class [C] are on nodes, and on their way to one (`coming`)."""

    classes: Sequence[TaskClass]
    on_nodes: Counts
    coming: Counts

    @property
    def counts(self) -> Counts:
        """How many pods of each class hold room [C]."""
        return self.on_nodes + self.coming


@dataclass(frozen=True, slots=True)
class QueueUsage:
    """The active `queues` [Q], by name.

    `on_nodes` [Q, R] is what their pods on nodes demand, `coming` [Q, R] what those on their way to one demand; `fair`
    [Q] are their fair shares, `total` [R] is the cluster.
    """

    queues: Sequence[str]
    on_nodes: Floats
    coming: Floats
    fair: Floats
    total: Floats

    @property
    def committed(self) -> Floats:
        """What is committed to each queue [Q, R]."""
        return self.on_nodes + self.coming

    def share(self, queues: Collection[str]) -> float:
        """Return the share of these queues together."""
        return float(dominant_shares(self.committed[self._rows(queues)].sum(axis=0), self.total))

    def fair_share(self, queues: Collection[str]) -> float | None:
        """Return the fair share of these queues together; None where none of them is active."""
        rows = self._rows(queues)
        return sum(self.fair[rows].tolist()) if rows else None

    def by_queue(self) -> Mapping[str, tuple[float, float]]:
        """Return the share and the fair share of each queue."""
        shares = dominant_shares(self.committed, self.total)
        return dict(zip(self.queues, zip(shares.tolist(), self.fair.tolist(), strict=True), strict=True))

    def with_more(self, demands: Iterable[tuple[str, Floats]]) -> "QueueUsage":
        """Return the usage with one more pod on its way for each queue and demand [R]; fair shares stay."""
        coming = self.coming.copy()
        for queue, demand in demands:
            coming[self._rows({queue})] += demand
        return replace(self, coming=coming)

    def _rows(self, queues: Collection[str]) -> list[int]:
        return [row for row, name in enumerate(self.queues) if name in queues]


def committed_pods(backlog: Backlog, classes: Sequence[TaskClass]) -> CommittedPods:
    """Return how many pods of these classes hold room."""
    with backlog.lock:
        coming = backlog.coming()
        on_nodes = [len(task_class.pods[PodPhase.RUNNING]) for task_class in classes]
        return CommittedPods(
            classes,
            np.array(on_nodes, dtype=np.int64),
            np.array([coming.get(task_class, 0) for task_class in classes], dtype=np.int64),
        )


def active_classes(backlog: Backlog, classes: Sequence[TaskClass]) -> tuple[CommittedPods, Sequence[int]]:
    """Return those of these classes that are of active queues, and how many pods of each may be released [C]."""
    with backlog.lock:
        ready = [backlog.ready(task_class) for task_class in classes]
        pods = committed_pods(backlog, classes)
    active_rows = np.logical_or(np.array(ready, dtype=np.int64), pods.counts).nonzero()[0]
    active = {classes[row].job.queue for row in active_rows.tolist()}
    rows = [row for row, task_class in enumerate(classes) if task_class.job.queue in active]
    inside = CommittedPods([classes[row] for row in rows], pods.on_nodes[rows], pods.coming[rows])
    return inside, [ready[row] for row in rows]


def usage_of(pods: CommittedPods, demand: Floats, tree: QueueTree, total: Floats) -> QueueUsage:
    """Return what active queues have; `pods` are those of all their classes, `demand` [C, R] is that of one pod."""
    queues, rows, fair = tree.shares([task_class.job.queue for task_class in pods.classes])
    return QueueUsage(
        queues=queues,
        on_nodes=committed_by(rows, pods.on_nodes, demand, len(queues)),
        coming=committed_by(rows, pods.coming, demand, len(queues)),
        fair=fair,
        total=total,
    )


def committed_by(rows: Rows, pods: Counts, demand: Floats, groups: int) -> Floats:
    """Return what is committed to each of so many groups [G, R]: `rows` [C] say whose the `pods` [C] of classes are.

    `demand` [C, R] is that of one pod.
    """
    committed = np.zeros((groups, demand.shape[1]))
    some = pods.nonzero()[0]  # most classes only wait
    np.add.at(committed, rows[some], demand[some] * pods[some, np.newaxis])
    return committed
