"""Who is released without a nomination, so that others see that it waits: kube-scheduler's preemption, autoscalers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from extender.cluster.model import Pod
from extender.cluster.snapshot import Snapshot
from extender.cluster.state import Ledger
from extender.control.backlog import Backlog, Stage, TaskClass
from extender.control.rounds import Rounds
from extender.policy.shares import dominant_shares
from extender.verdict import demand_on, judge

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Outlets:
    """Looks at the classes that a plan could not place."""

    def __init__(self, ledger: Ledger, backlog: Backlog, rounds: Rounds) -> None:
        self._ledger, self._backlog, self._rounds = ledger, backlog, rounds

    def preempting(self, snapshot: Snapshot, left: Sequence[TaskClass]) -> list[TaskClass]:
        """Return the class of highest priority that fits nowhere now, but would if pods of lower priority were gone.

        One pod at a time: until it is nominated or refused nobody knows whose room it will take.
        """
        able = sorted((it for it in left if it.like.may_preempt and not _stuck(it)), key=lambda it: -it.like.priority)
        if not able or self._one_preempts():
            return []
        least = self._ledger.least_priority()
        for it in able:
            if least is None or it.like.priority <= least:
                return []
            if not self._fits(snapshot, it.like) and self._fits(
                snapshot, it.like, gone=self._ledger.below(it.like.priority)
            ):
                return [it]
        return []

    def scaling_up(self, snapshot: Snapshot, left: Sequence[TaskClass], before: float) -> list[TaskClass]:
        """Return classes that have waited since `before`, fit no node now but an empty one, and whose queue is below
        its share with one more of them.
        """  # noqa: D205 - one sentence
        return [
            it
            for it in left
            if self._oldest(it) <= before
            and not self._fits(snapshot, it.like)
            and self._fits_empty(snapshot, it.like)
            and self._within_share(snapshot, it)
        ]

    def _one_preempts(self) -> bool:
        return self._ledger.preempting() > 0

    def _fits(self, snapshot: Snapshot, pod: Pod, gone: Floats | None = None) -> bool:
        allowed = self._rounds.allowed(pod, snapshot.layout)
        if gone is None:
            return bool((judge(snapshot, pod).passed & allowed).any())
        if gone.shape != snapshot.allocated.shape:
            return False
        layout = snapshot.layout
        free = layout.capacity - snapshot.allocated + gone - snapshot.in_flight
        nominated = snapshot.nominations.load(snapshot.allocated.shape, priority=pod.priority, uid=pod.uid)
        if nominated is not None:
            free = free - nominated
        return _somewhere(free, demand_on(layout, pod), allowed)

    def _fits_empty(self, snapshot: Snapshot, pod: Pod) -> bool:
        allowed = self._rounds.allowed(pod, snapshot.layout)
        return _somewhere(snapshot.layout.capacity, demand_on(snapshot.layout, pod), allowed)

    def _within_share(self, snapshot: Snapshot, of: TaskClass) -> bool:
        """Say whether the queue of a class, with one more of it, is at most at its fair share.

        Released pods that kube-scheduler has no room for count as well: they are whom nodes are being made for.
        """
        layout, queue = snapshot.layout, of.job.queue
        classes = self._backlog.classes()
        held = layout.vector(of.like.demand)
        for it in classes:
            if it.job.queue == queue:
                count = sum(len(it.pods[stage]) for stage in (Stage.PENDING, Stage.RUNNING, Stage.NOMINATED))
                held = held + count * layout.vector(it.like.demand)
        share = float(dominant_shares(held[np.newaxis], layout.total)[0])
        others = (it.job.queue for it in classes if self._backlog.held(it) or self._backlog.ready(it))
        names, _, fair = self._rounds.tree.shares([queue, *others])
        return share <= float(fair[list(names).index(queue)])

    def _oldest(self, of: TaskClass) -> float:
        return min((pod.created for pod in of.pods[Stage.READY].values()), default=np.inf)


def _somewhere(free: Floats, demand: Floats, allowed: Mask) -> bool:
    fits = ((free >= demand) | (demand <= 0)).all(axis=1)
    return bool((fits & allowed).any())


def _stuck(of: TaskClass) -> bool:
    """Say whether kube-scheduler refused a pod of the class and could not preempt for it: it will not for the next."""
    return any(pod.unschedulable and pod.nominated is None for pod in of.pods[Stage.PENDING].values())
