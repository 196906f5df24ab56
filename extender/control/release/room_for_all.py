"""Pods that surely find room: their gate is removed and nothing else is written, as `filter` chooses their node.

A nomination is a write of its own, and keeps room for who was chosen to have it. Where there is room for all, it would
keep what nobody else wants.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, times_fits
from extender.cluster.eligibility import Constraints
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import ONLY
from extender.control.backlog.backlog import PodPhase, TaskClass
from extender.control.cluster_view import ClusterView
from extender.control.filter_order.calm import is_particular
from extender.control.filter_order.plan_slots import SPARE_PART
from extender.control.release.sending import ROOM_FOR_ALL, Release

_ON_NO_NODE = (PodPhase.READY, PodPhase.PENDING, PodPhase.UNGATED)
_NEEDING_A_PLAN = (PodPhase.NOMINATED, PodPhase.UNGATED)

LANDING_SECONDS = 2.0
"""A pod that was released without a node is waited for no longer: kube-scheduler may be down."""


@dataclass(slots=True)
class _Wanted:
    """How many pods with the same constraints want a node; `most` is the largest demand in each resource [R]."""

    most: Floats
    count: int = 0


class RoomForAll:
    """Releases held pods without a plan and without a node. One thread: the release loop's."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster, self._backlog = cluster, cluster.backlog
        self._out: dict[str, float] = {}

    def forget_landed(self, now: float) -> None:
        """Forget the pods that are bound or refused, and those that have been on their way for too long."""
        self._out = {uid: until for uid, until in self._out.items() if now < until and self._is_out(uid)}

    @property
    def awaits(self) -> bool:
        """Whether pods are on their way to no node of ours: a plan would not know which room they take."""
        return bool(self._out)

    def take(self, snapshot: Snapshot, slots: int, now: float) -> list[Release] | None:
        """Claim at most so many pods, of each class in turn; None where somebody may have to wait for others."""
        with self._backlog.lock:
            # 1. See what waits, and whether a plan is needed to say where it goes.
            held = [task_class for task_class in self._backlog.classes() if task_class.pods[PodPhase.READY]]
            if self._is_plan_needed(held) or not self._find_room(snapshot):
                return None
            # 2. Take a pod of each class, and again, until no slot is left, or no pod.
            taken: list[Pod] = []
            while held:
                turn, held = held[: slots - len(taken)], []
                for task_class in turn:
                    pod = self._backlog.take(task_class, now, now + self._cluster.assume_seconds)
                    if pod is not None:
                        taken.append(pod)
                        held.append(task_class)
        self._out |= {pod.uid: now + LANDING_SECONDS for pod in taken}
        return [Release(pod, None, ROOM_FOR_ALL) for pod in taken]

    def _is_out(self, uid: str) -> bool:
        """Say whether a pod is released, or being so, and is neither bound nor refused."""
        position, pod = self._backlog.find(uid), self._backlog.pod(uid)
        if position is None or pod is None or position[1] not in _ON_NO_NODE or uid in self._backlog.writes.backoff:
            return False
        return not pod.unschedulable

    def _is_plan_needed(self, held: Sequence[TaskClass]) -> bool:
        """Say whether it matters where a held pod starts, or with whom, or a released one is refused or nominated."""
        if self._cluster.awaiting_evictions or any(map(self._backlog.uids_at, _NEEDING_A_PLAN)):
            return True
        for task_class in held:
            template = task_class.template
            if is_particular(task_class) or template.choice == ONLY or not self._backlog.is_ours(template):
                return True
        return any(pod.nominated is not None for pod in self._backlog.at(PodPhase.PENDING))

    def _find_room(self, snapshot: Snapshot) -> bool:
        """Say whether all pods that are on no node yet surely find one.

        They do where they need a part of the room at most, as if each were as large as the largest in every resource,
        and where as large a part of the nodes has room for one: kube-scheduler asks about a sample.
        """
        layout = snapshot.layout
        free, part = snapshot.free(), 0.0
        for constraints, wanted in self._wanted(snapshot).items():
            allowed = self._cluster.input_builder.allowed_nodes.allowed_by(constraints, layout)
            times = times_fits(free[allowed], wanted.most)
            if times.sum() == 0 or (times >= 1).mean() < SPARE_PART:
                return False
            part += wanted.count / float(times.sum())
        return part <= SPARE_PART

    def _wanted(self, snapshot: Snapshot) -> dict[Constraints, _Wanted]:
        """Return what pods on no node want, by their constraints."""
        zero = np.zeros(len(snapshot.layout.axis))
        wanted: defaultdict[Constraints, _Wanted] = defaultdict(lambda: _Wanted(zero))
        for task_class in self._backlog.classes():
            count = sum(len(task_class.pods[phase]) for phase in _ON_NO_NODE)
            if count:
                group = wanted[task_class.template.constraints]
                group.most = np.maximum(group.most, snapshot.layout.vector(task_class.template.demand))
                group.count += count
        return wanted
