"""Promotion: an opportunistic pod becomes regular in place when regular room appears on its node (UBIS, IV.D).

Before new regular work, but not before somebody who has an older claim to that room: a waiting pod of a higher
priority, or of a queue that has less of its share (C3 before algorithm 1). The pod is not restarted.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
import structlog

from extender.arrays import Floats, Mask, Rows, fits
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import ONLY
from extender.control.cluster_view import ClusterView
from extender.control.plan_input.builder import PlanInput
from extender.planner.opportunistic import promotions

SHOWS_SECONDS = 60.0
"""A promotion that does not show after so long has failed: the kubelet cannot grant it, and it is taken back."""

RESTS_SECONDS = 300.0

log = structlog.get_logger()


class Resizes(Protocol):
    """What changes a pod's requests. Raises ClusterError."""

    def demote(self, pod: Pod, memory_bytes: int) -> int:
        """Take a pod's requests back to nothing."""

    def restore(self, pod: Pod) -> int:
        """Bring a pod's requests back."""


class Promoter:
    """Promotes opportunistic pods. One thread: that of the release loop; the writes run in others.

    `count` is how many were promoted, as far as that showed.
    """

    def __init__(self, cluster: ClusterView, resizes: Resizes, note: Callable[[Pod], object]) -> None:
        self._cluster, self._resizes, self._note = cluster, resizes, note
        self._under_way: dict[str, float] = {}
        self._rests_until: dict[str, float] = {}

    def step(self, snapshot: Snapshot, plan_input: PlanInput | None, now: float) -> Snapshot:
        """Begin the promotions that are due; return the cluster with their room taken."""
        self._see_outcomes(now)
        pods = snapshot.opportunistic
        if not len(pods.pods):
            return snapshot
        under_way = np.array([uid in self._under_way for uid in pods.uids], dtype=np.bool_)
        taken = self._taken(snapshot, under_way.nonzero()[0])
        may = ~under_way & np.array([self._may(pod) for pod in pods.pods], dtype=np.bool_)
        if not may.any():
            return taken
        load = snapshot.nominations.load(snapshot.layout.capacity.shape, priority=-(2**31), uid="")
        free = taken.layout.capacity - taken.allocated - taken.in_flight - (0.0 if load is None else load)
        if plan_input is not None and plan_input.classes:
            may &= self._nobody_before(snapshot, plan_input, free)
        chosen = promotions(free, pods.node, pods.demand, pods.started, may=may)
        for place in chosen.tolist():
            self._begin(pods.pods[place], now)
        return self._taken(taken, chosen)

    def _may(self, pod: Pod) -> bool:
        stays = pod.regular_requests is None or pod.choice == ONLY or pod.leaving
        return not stays and pod.uid not in self._rests_until

    def _nobody_before(self, snapshot: Snapshot, plan_input: PlanInput, free: Floats) -> Mask:
        """Return whose node nobody waits for who comes first [P]: a higher priority, or a queue with less."""
        pods, waiting = snapshot.opportunistic, plan_input.waiting
        nodes, place = np.unique(pods.node, return_inverse=True)
        wants = fits(free[nodes][np.newaxis], waiting.demand[:, np.newaxis]) & (waiting.count > 0)[:, np.newaxis]
        if waiting.barred is not None:
            wants &= ~waiting.barred[:, nodes]
        priority = np.zeros(len(waiting.count)) if waiting.priority is None else waiting.priority
        share = self._shares(plan_input)
        queues = [task_class.job.queue for task_class in plan_input.classes]
        may = np.ones(len(pods.pods), dtype=np.bool_)
        for row in np.flatnonzero(wants.any(axis=1)).tolist():
            less = share.get(queues[row], 0.0)
            first = (pods.priority < priority[row]) | np.array(
                [less < share.get(pod.identity.queue, 0.0) for pod in pods.pods], dtype=np.bool_
            )
            may &= ~(first & wants[row, place])
        return may

    def _shares(self, plan_input: PlanInput) -> dict[str, float]:
        """Return what each queue has of its fair share."""
        shares = plan_input.usage.by_queue()
        return {queue: share / fair if fair > 0 else np.inf for queue, (share, fair) in shares.items()}

    def _taken(self, snapshot: Snapshot, places: Rows) -> Snapshot:
        """Return the cluster as if these opportunistic pods were regular."""
        if not len(places):
            return snapshot
        pods, allocated = snapshot.opportunistic, snapshot.allocated.copy()
        np.add.at(allocated, pods.node[places], pods.demand[places])
        return replace(snapshot, allocated=allocated)

    def _begin(self, pod: Pod, now: float) -> None:
        self._under_way[pod.uid] = now + SHOWS_SECONDS
        self._cluster.run_soon(lambda: self._write(pod, lambda: self._resizes.restore(pod)))

    def _see_outcomes(self, now: float) -> None:
        """Note whose promotion shows, and take back those that do not in time."""
        self._rests_until = {uid: until for uid, until in self._rests_until.items() if now < until}
        for uid, until in list(self._under_way.items()):
            pod = self._cluster.backlog.pod(uid)
            if pod is None or not pod.opportunistic:
                del self._under_way[uid]
                if pod is not None:
                    self._note(pod)
            elif now >= until:
                del self._under_way[uid]
                self._rests_until[uid] = now + RESTS_SECONDS
                self._take_back(pod)

    def _take_back(self, pod: Pod) -> None:
        self._cluster.run_soon(lambda: self._write(pod, lambda: self._resizes.demote(pod, 0)))

    def _write(self, pod: Pod, write: Callable[[], object]) -> None:
        """Write, if we still lead. What fails shows as a promotion that does not come."""
        try:
            if self._cluster.leads():
                write()
        except Exception as error:  # whatever it is: the next look goes by what the watch shows
            log.warning("resize failed", pod=f"{pod.namespace}/{pod.name}", error=str(error) or repr(error))
