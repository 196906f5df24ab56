"""What becomes of a slot whose node kube-scheduler did not ask about: it often asks about a sample of the nodes only.

A pod to which it makes no difference goes to any node. Another goes to the nearest node of the sample. Where that is
farther from its input than the plan's node, the pod waits for a better sample as it would for room, by the same rule
and the same waits: kube-scheduler takes its next sample elsewhere. The time counts for each pod from the first such
answer, so no pod waits for longer than all waits together.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Mask
from extender.control.backlog.task_classes import Job
from extender.control.filter_order.plan_slots import PlanSlot
from extender.planner import LocalityWait, Policy, farthest

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Offer:
    """The nodes that kube-scheduler offers a pod of a job: where it `fits` [N], at which locality `levels` [N].

    `levels` is None where it makes no difference. `usable` are the nodes with room for the pod if they were empty [N].
    """

    uid: str
    job: Job
    fits: Mask
    levels: Counts | None
    usable: Mask


class NodeSample:
    """Since when pods wait for a better sample, and where each job started last. Callers hold the order's lock."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._since: dict[str, float] = {}
        self._level: dict[_Name, int] = {}

    def elsewhere(self, slot: PlanSlot, offer: Offer, now: float) -> PlanSlot | None:
        """Return a pod's slot on the nearest of the offered nodes; None where it waits for nearer ones."""
        levels = offer.levels
        if slot.level < 0 or levels is None:
            return slot.on(None, slot.level)
        nearest = int(levels[offer.fits].min())
        if nearest > slot.level and nearest > self._farthest(slot.level, offer, levels, now):
            return None
        return slot.on(offer.fits & (levels == nearest), nearest)

    def start(self, slot: PlanSlot, job: Job) -> None:
        """Note where a pod of a job passed.

        After one that went far, others of the job do not wait anew until one starts nearer (Delay Scheduling, 3.5.1).
        """
        if slot.farther:
            self._level[job.queue, job.name] = slot.level
        else:
            self._level.pop((job.queue, job.name), None)

    def forget_but(self, waits: Callable[[str], bool], jobs: Collection[_Name]) -> None:
        """Keep only what is known of pods that still wait, by UID, and of these jobs, by queue and name."""
        self._since = {uid: since for uid, since in self._since.items() if waits(uid)}
        self._level = {name: level for name, level in self._level.items() if name in jobs}

    def _farthest(self, level: int, offer: Offer, levels: Counts, now: float) -> int:
        """Return the farthest level at which a pod may start now; it waits at no level without a usable node."""
        waited = now - self._since.setdefault(offer.uid, now)
        last = self._level.get((offer.job.queue, offer.job.name), 0)
        wait = LocalityWait(max(level, last), waited)
        return farthest(self._policy, wait, np.unique(levels[offer.usable]).tolist())
