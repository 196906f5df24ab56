"""Pods that are released to no node, so that others see that they wait: kube-scheduler's preemption, autoscalers."""

import math
from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats, Mask, fits
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.resources import IO_DIMENSIONS
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.plan_input.builder import PlanInputBuilder
from extender.control.queues.usage import QueueUsage
from extender.control.release.refusals import is_refused
from extender.policy.shares import dominant_shares
from extender.verdict import demand_on

_RELEASED = (PodPhase.PENDING, PodPhase.UNGATED)

_NODES_TRIED = 16
"""On so many nodes it is looked at whom kube-scheduler would evict there for a pod."""


class WithoutNode:
    """Looks at the classes that a plan could not place."""

    def __init__(self, ledger: Ledger, backlog: Backlog, input_builder: PlanInputBuilder) -> None:
        self._ledger, self._backlog, self._input_builder = ledger, backlog, input_builder

    def preempting(self, snapshot: Snapshot, left: Sequence[TaskClass]) -> list[TaskClass]:
        """Return the class of highest priority that fits nowhere now, but would once kube-scheduler has evicted for it.

        At most one, and none while another preempts: until that is nominated or refused, nobody knows whose room it
        takes. Who is short of disk or network only has nobody evicted: released, it would see its room go to others.
        """
        least = self._ledger.least_priority()
        if least is None or self._ledger.preempting() > 0:
            return []
        with self._backlog.lock:
            eligible = [
                task_class
                for task_class in left
                if task_class.template.priority > least and task_class.template.may_preempt and not _stuck(task_class)
            ]
        now, evicting = _Room(snapshot, self._input_builder), _Room(snapshot, self._input_builder, self._ledger)
        for task_class in sorted(eligible, key=lambda task_class: -task_class.template.priority):
            if not now.has(task_class.template) and evicting.has(task_class.template):
                return [task_class]
        return []

    def scaling_up(self, snapshot: Snapshot, left: Sequence[TaskClass], before: float, most: int) -> list[TaskClass]:
        """Return at most so many classes that have waited since `before`, those that have waited for longest first.

        They fit no node now but an empty one. Their queues stay within their fair shares with one more pod of each; a
        queue that has nothing yet may have one pod that is larger than that, else no node would ever be made for it.
        """
        since = {task_class: self._oldest(task_class) for task_class in left}
        waited = [task_class for task_class in left if since[task_class] <= before]
        waiting = sorted(waited, key=lambda task_class: (since[task_class], task_class.name))
        if not waiting or most <= 0:
            return []
        layout = snapshot.layout
        now, empty = _Room(snapshot, self._input_builder), _Room(snapshot, self._input_builder, empty=True)
        usage = self._usage(snapshot)
        row_of, committed = {name: row for row, name in enumerate(usage.queues)}, usage.regular
        chosen: list[TaskClass] = []
        for task_class in waiting:
            # Holds at each turn: `committed` counts a pod of each class chosen so far.
            row, pod = row_of.get(task_class.job.queue), task_class.template
            if row is None or now.has(pod) or not empty.has(pod):
                continue
            more = committed[row] + layout.vector(pod.demand)
            if not committed[row].any() or dominant_shares(more, usage.total) <= usage.fair[row]:
                committed[row] = more
                chosen.append(task_class)
            if len(chosen) == most:
                break
        return chosen

    def _usage(self, snapshot: Snapshot) -> QueueUsage:
        """Return what queues have, with the released pods that have no node: nodes are being made for them."""
        usage, layout = self._input_builder.usage(snapshot), snapshot.layout
        nodeless = [pod for phase in _RELEASED for pod in self._backlog.at(phase) if pod.awaited is None]
        return usage.with_more((pod.identity.queue, layout.vector(pod.counted)) for pod in nodeless)

    def _oldest(self, task_class: TaskClass) -> float:
        """Return when the first in line of its pods that may be released was created; infinite where there is none."""
        with self._backlog.lock:
            return next((pod.created for pod in task_class.pods[PodPhase.READY].values()), np.inf)


class _Room:
    """Where pods fit: now, once kube-scheduler has evicted pods of a ledger for them, or on `empty` nodes.

    What is free is computed once for all pods of a priority, and the answer once for all pods that ask for the same.
    """

    def __init__(
        self, snapshot: Snapshot, input_builder: PlanInputBuilder, below: Ledger | None = None, *, empty: bool = False
    ) -> None:
        self._snapshot, self._input_builder, self._below, self._empty = snapshot, input_builder, below, empty
        self._free: dict[int, Floats | None] = {}
        self._fits: dict[tuple[object, ...], bool] = {}

    def has(self, pod: Pod) -> bool:
        """Say whether a pod fits on some node that it may use."""
        key = (tuple(sorted(pod.demand.items())), pod.constraints, pod.priority, pod.inputs)
        if key not in self._fits:
            self._fits[key] = self._somewhere(pod)
        return self._fits[key]

    def _somewhere(self, pod: Pod) -> bool:
        if pod.priority not in self._free:
            self._free[pod.priority] = self._free_for(pod.priority)
        free, layout = self._free[pod.priority], self._snapshot.layout
        if free is None:
            return False
        demand = demand_on(layout, pod)
        fitting = fits(free, demand) & self._input_builder.allowed_nodes.allowed(pod, layout)
        return bool(fitting.any()) if self._below is None else self._is_cured(pod, demand, fitting, self._below)

    def _is_cured(self, pod: Pod, demand: Floats, nodes: Mask, ledger: Ledger) -> bool:
        """Say whether a pod with this demand [R] or [N, R] fits on one of these nodes [N] once others are evicted.

        kube-scheduler does so where it sees no room itself. Some such nodes are tried, those first that lack least of
        what it does not count.
        """
        layout, free = self._snapshot.layout, self._snapshot.free(pod.priority)
        counted, demands = _counted(layout), np.broadcast_to(demand, free.shape)
        rows = (nodes & ~fits(free[:, counted], demands[:, counted])).nonzero()[0]
        lacks = np.maximum(demands[rows] - free[rows], 0.0)[:, ~counted].sum(axis=1)
        for row in rows[np.argsort(lacks, kind="stable")][:_NODES_TRIED].tolist():
            lower = sorted(ledger.holding(layout.names[row], below=pod.priority), key=_importance)
            takes = layout.vectors(other.counted for other in lower)
            if _fits_without_least(takes, free[row], demands[row], counted):
                return True
        return False

    def _free_for(self, priority: int) -> Floats | None:
        """Return what is free for pods of a priority [N, R]; None where the nodes have changed meanwhile."""
        snapshot = self._snapshot
        if self._empty:
            return snapshot.empty
        free = snapshot.free(priority)
        if self._below is None:
            return free
        gone = self._below.below(priority)
        return free + gone if gone.shape == free.shape else None


def _fits_without_least(takes: Floats, free: Floats, demand: Floats, counted: Mask) -> bool:
    """Say whether a demand [R] fits beside what is `free` [R] once kube-scheduler has evicted pods that take [P, R].

    It lets as few go as the demand needs by what it has `counted` [R]: it keeps all that it can, in their order.
    """
    left, needed = free + takes.sum(axis=0) - demand, demand > 0
    for kept in takes:
        if (kept <= left)[needed & counted].all():
            left = left - kept
    return bool((left >= 0)[needed].all())


def _counted(layout: Layout) -> Mask:
    """Say which dimensions kube-scheduler counts itself [R]."""
    return np.array([name not in IO_DIMENSIONS for name in layout.axis], dtype=np.bool_)


def _importance(pod: Pod) -> tuple[int, float]:
    """Return by what kube-scheduler orders pods that it may evict, the most important first."""
    return -pod.priority, math.inf if pod.started is None else pod.started


def _stuck(task_class: TaskClass) -> bool:
    """Say whether kube-scheduler refuses a pod of the class and cannot preempt for it: nor can it for the next."""
    return any(is_refused(pod) for phase in _RELEASED for pod in task_class.pods[phase].values())
