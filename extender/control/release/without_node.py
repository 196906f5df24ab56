"""Who is released without a nomination, so that others see that it waits: kube-scheduler's preemption, autoscalers."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats, fits
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.plan_input.builder import PlanInputBuilder
from extender.control.release.refusals import is_refused
from extender.policy.shares import dominant_shares
from extender.verdict import demand_on


class WithoutNode:
    """Looks at the classes that a plan could not place."""

    def __init__(self, ledger: Ledger, backlog: Backlog, input_builder: PlanInputBuilder) -> None:
        self._ledger, self._backlog, self._input_builder = ledger, backlog, input_builder

    def preempting(self, snapshot: Snapshot, left: Sequence[TaskClass]) -> list[TaskClass]:
        """Return the class of highest priority that fits nowhere now, but would if pods of lower priority were gone.

        One pod at a time: until it is nominated or refused nobody knows whose room it will take.
        """
        least = self._ledger.least_priority()
        if least is None or self._ledger.preempting() > 0:
            return []
        able = [it for it in left if it.like.priority > least and it.like.may_preempt and not _stuck(it)]
        now, once_gone = _Room(snapshot, self._input_builder), _Room(snapshot, self._input_builder, self._ledger)
        for it in sorted(able, key=lambda it: -it.like.priority):
            if not now.has(it.like) and once_gone.has(it.like):
                return [it]
        return []

    def scaling_up(self, snapshot: Snapshot, left: Sequence[TaskClass], before: float, most: int) -> list[TaskClass]:
        """Return at most so many classes that have waited since `before`, those that did for longest first.

        They fit no node now but an empty one, and their queues stay within their shares with one more of each.
        """
        since = {it: self._oldest(it) for it in left}
        waiting = sorted((it for it in left if since[it] <= before), key=lambda it: (since[it], it.name))
        if not waiting or most <= 0:
            return []
        layout = snapshot.layout
        now, empty = _Room(snapshot, self._input_builder), _Room(snapshot, self._input_builder, empty=True)
        held, fair = self._shares(snapshot, waiting)
        found: list[TaskClass] = []
        for it in waiting:
            queue = it.job.queue
            more = held[queue] + layout.vector(it.like.demand)
            within = float(dominant_shares(more[np.newaxis], layout.total)[0]) <= fair[queue]
            if within and not now.has(it.like) and empty.has(it.like):
                held[queue] = more
                found.append(it)
            if len(found) == most:
                break
        return found

    def _shares(self, snapshot: Snapshot, waiting: Sequence[TaskClass]) -> tuple[dict[str, Floats], dict[str, float]]:
        """Return what the queues of these classes hold [R], and their fair shares.

        Released pods that kube-scheduler has no room for count as well: they are whom nodes are being made for.
        """
        layout, classes = snapshot.layout, self._backlog.classes()
        queues = {it.job.queue for it in waiting}
        held = {queue: np.zeros(len(layout.axis)) for queue in queues}
        for it in classes:
            count = sum(len(it.pods[stage]) for stage in (PodPhase.PENDING, PodPhase.RUNNING, PodPhase.NOMINATED))
            if count and it.job.queue in queues:
                held[it.job.queue] += count * layout.vector(it.like.demand)
        others = (it.job.queue for it in classes if self._backlog.committed(it) or self._backlog.ready(it))
        names, _, fair = self._input_builder.tree.shares([*queues, *others])
        return held, dict(zip(names, fair.tolist(), strict=True))

    def _oldest(self, of: TaskClass) -> float:
        return min((pod.created for pod in of.pods[PodPhase.READY].values()), default=np.inf)


class _Room:
    """Where pods fit at one moment: now, once pods of lower priority are gone (of a ledger), or on `empty` nodes.

    What is free is the same for all pods of a priority, and the answer for all that ask for the same.
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
        return bool((fits(free, demand) & self._input_builder.allowed(pod, layout)).any())

    def _free_for(self, priority: int) -> Floats | None:
        """Return what is free for pods of a priority [N, R]; None where the nodes have changed meanwhile."""
        snapshot = self._snapshot
        if self._empty:
            return snapshot.layout.capacity
        free = snapshot.layout.capacity - snapshot.allocated - snapshot.in_flight
        nominated = snapshot.nominations.load(free.shape, priority=priority, uid="")
        if nominated is not None:
            free -= nominated
        if self._below is None:
            return free
        gone = self._below.below(priority)
        return free + gone if gone.shape == free.shape else None


def _stuck(of: TaskClass) -> bool:
    """Say whether kube-scheduler refused a pod of the class and could not preempt for it: it will not for the next."""
    return any(is_refused(pod) for pod in of.pods[PodPhase.PENDING].values())
