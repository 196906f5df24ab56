"""What queues have of the cluster, and what they should have: one formula, for the plan, for reclaim and for people.

A pod holds room, and what it demands is committed to its queue, when it is on a node, or on its way to one: nominated,
or being released (`Backlog.coming`). A released pod that is not nominated holds no room, as one that kube-scheduler
refused, or never tries: else a queue with such pods would get nothing in their place. The pod's `schedulerName` makes
no difference. A queue is active when something is committed to it or one of its pods may be released; other
queues have no fair share, nor has one that has nothing but pods that no node could hold (`plan_input.claims`). A
queue's share is the dominant share of what is committed to it (DRF).

There are two books, with a share each: what pods count as regular, and what opportunistic ones need beyond that.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.resources import DIMENSIONS
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.queues.tree import QueueTree
from extender.policy.shares import dominant_shares


@dataclass(frozen=True, slots=True)
class CommittedPods:
    """How many pods of each class [C] are on nodes, and on their way to one (`coming`): opportunistic ones apart."""

    classes: Sequence[TaskClass]
    on_nodes: Counts
    coming: Counts
    opportunistic_on_nodes: Counts
    opportunistic_coming: Counts

    @property
    def counts(self) -> Counts:
        """How many regular pods of each class hold room [C]."""
        return self.on_nodes + self.coming

    @property
    def opportunistic(self) -> Counts:
        """How many opportunistic pods of each class are on nodes or on their way [C]."""
        return self.opportunistic_on_nodes + self.opportunistic_coming

    def at(self, rows: Sequence[int]) -> "CommittedPods":
        """Return those of the classes of these rows."""
        counts = (self.on_nodes, self.coming, self.opportunistic_on_nodes, self.opportunistic_coming)
        return CommittedPods([self.classes[row] for row in rows], *(count[rows] for count in counts))


@dataclass(frozen=True, slots=True)
class QueueUsage:
    """The active `queues` [Q], sorted by name.

    `on_nodes` [Q, R] is what their pods on nodes count as regular, `coming` [Q, R] what those on their way to one do;
    `opportunistic` [Q, R] is what opportunistic ones of both need beyond that. `fair` [Q] are their fair shares,
    `total` [R] is the cluster.
    """

    queues: Sequence[str]
    on_nodes: Floats
    coming: Floats
    opportunistic: Floats
    fair: Floats
    total: Floats

    @property
    def regular(self) -> Floats:
        """What is committed to each queue as regular [Q, R]."""
        return self.on_nodes + self.coming

    def share(self, queues: Collection[str]) -> float:
        """Return the share of these queues together, of what counts as regular."""
        rows = self._rows(queues)
        return self._share(self.on_nodes[rows] + self.coming[rows])

    def opportunistic_share(self, queues: Collection[str]) -> float:
        """Return the share of these queues together in the second book."""
        return self._share(self.opportunistic[self._rows(queues)])

    def fair_share(self, queues: Collection[str]) -> float | None:
        """Return the fair share of these queues together; None where none of them is active."""
        rows = self._rows(queues)
        return sum(self.fair[rows].tolist()) if rows else None

    def by_queue(self) -> Mapping[str, tuple[float, float]]:
        """Return the share and the fair share of each queue."""
        shares = dominant_shares(self.regular, self.total)
        return dict(zip(self.queues, zip(shares.tolist(), self.fair.tolist(), strict=True), strict=True))

    def with_more(self, demands: Iterable[tuple[str, Floats]]) -> "QueueUsage":
        """Return the usage with one more pod on its way for each queue and demand [R]; fair shares stay."""
        coming, row_of = self.coming.copy(), {name: row for row, name in enumerate(self.queues)}
        for queue, demand in demands:
            if queue in row_of:
                coming[row_of[queue]] += demand
        return replace(self, coming=coming)

    def _share(self, amounts: Floats) -> float:
        return float(dominant_shares(amounts.sum(axis=0), self.total))

    def _rows(self, queues: Collection[str]) -> list[int]:
        """Return the rows of those of these queues that are active."""
        places = ((bisect_left(self.queues, name), name) for name in sorted(queues))
        return [row for row, name in places if row < len(self.queues) and self.queues[row] == name]


def committed_pods(backlog: Backlog, classes: Sequence[TaskClass]) -> CommittedPods:
    """Return how many pods of these classes hold room."""
    with backlog.lock:
        on_nodes = [len(task_class.pods[PodPhase.RUNNING]) for task_class in classes]
        return in_two_books(classes, on_nodes, backlog.coming(), backlog.opportunistic())


def in_two_books(
    classes: Sequence[TaskClass],
    on_nodes: Sequence[int],
    coming: Mapping[TaskClass, int],
    opportunistic: tuple[Mapping[TaskClass, int], Mapping[TaskClass, int]],
) -> CommittedPods:
    """Return how many pods of these classes hold room, of all that are `on_nodes` [C] and `coming`.

    `opportunistic` says how many of both are.
    """
    opportunistic_on_nodes, opportunistic_coming = (_counts(classes, book) for book in opportunistic)
    return CommittedPods(
        classes,
        np.array(on_nodes, dtype=np.int64) - opportunistic_on_nodes,
        _counts(classes, coming) - opportunistic_coming,
        opportunistic_on_nodes,
        opportunistic_coming,
    )


def active_classes(backlog: Backlog, classes: Sequence[TaskClass]) -> tuple[CommittedPods, Sequence[int]]:
    """Return those of these classes that are of active queues, and how many pods of each may be released [C]."""
    with backlog.lock:
        ready = [backlog.ready(task_class) for task_class in classes]
        pods = committed_pods(backlog, classes)
    active_rows = (np.array(ready, dtype=np.int64) + pods.counts + pods.opportunistic).nonzero()[0]
    active = {classes[row].job.queue for row in active_rows.tolist()}
    rows = [row for row, task_class in enumerate(classes) if task_class.job.queue in active]
    return pods.at(rows), [ready[row] for row in rows]


def usage_of(pods: CommittedPods, demand: Floats, tree: QueueTree, total: Floats, claiming: Set[str]) -> QueueUsage:
    """Return what active queues have; `pods` are those of all their classes, `demand` [C, R] is that of one pod.

    Only the queues `claiming` one have a fair share.
    """
    queues, rows, fair = tree.shares([task_class.job.queue for task_class in pods.classes], claiming)
    return QueueUsage(
        queues=queues,
        on_nodes=regular_by(rows, pods.on_nodes, pods.opportunistic_on_nodes, demand, len(queues)),
        coming=regular_by(rows, pods.coming, pods.opportunistic_coming, demand, len(queues)),
        opportunistic=opportunistic_by(rows, pods.opportunistic, demand, len(queues)),
        fair=fair,
        total=total,
    )


def regular_by(rows: Rows, regular: Counts, opportunistic: Counts, demand: Floats, groups: int) -> Floats:
    """Return what pods of both kinds count as regular for each of so many groups [G, R]: see `committed_by`."""
    committed = committed_by(rows, regular, demand, groups)
    if opportunistic.any():
        kept = demand.copy()
        kept[:, : len(DIMENSIONS)] = 0.0  # CPU, memory and rates come first on every axis
        committed += committed_by(rows, opportunistic, kept, groups)
    return committed


def opportunistic_by(rows: Rows, opportunistic: Counts, demand: Floats, groups: int) -> Floats:
    """Return what opportunistic pods need beyond what they count, for each of so many groups [G, R]."""
    committed = committed_by(rows, opportunistic, demand, groups)
    committed[:, len(DIMENSIONS) :] = 0.0
    return committed


def committed_by(rows: Rows, pods: Counts, demand: Floats, groups: int) -> Floats:
    """Return what is committed to each of so many groups [G, R]: `rows` [C] say whose the `pods` [C] of classes are.

    `demand` [C, R] is that of one pod.
    """
    committed = np.zeros((groups, demand.shape[1]))
    some = pods.nonzero()[0]  # most classes only wait
    np.add.at(committed, rows[some], demand[some] * pods[some, np.newaxis])
    return committed


def _counts(classes: Sequence[TaskClass], counts: Mapping[TaskClass, int]) -> Counts:
    if not counts:
        return np.zeros(len(classes), dtype=np.int64)
    return np.array([counts.get(task_class, 0) for task_class in classes], dtype=np.int64)
