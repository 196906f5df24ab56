"""What becomes of a turn whose node kube-scheduler did not ask about: it asks about those it found, often a sample.

A pod to which it is all the same goes anywhere. Another goes to the nearest of those asked about; but where these are
farther from its input than the node that the plan has for it, it waits for a better sample as it would for room, by the
same rule and the same waits: kube-scheduler begins its next one at another node. The time is counted by the clock for
each pod, from the first such answer, so that none waits for longer than the waits in all.
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
    """What kube-scheduler offers a pod of a job: the nodes where it `fits` [N], and how `far` each is from its input.

    None: it is all the same. `usable` are those that would have room for it if they were empty [N].
    """

    uid: str
    job: Job
    fits: Mask
    far: Counts | None
    usable: Mask


class NodeSample:
    """Since when pods wait for a better sample, and how far from its input each job started last. One thread."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._since: dict[str, float] = {}
        self._level: dict[_Name, int] = {}

    def elsewhere(self, place: PlanSlot, offer: Offer, now: float) -> PlanSlot | None:
        """Return a pod's turn on the nearest of the nodes that are offered; None where it waits for nearer ones."""
        far = offer.far
        if place.level < 0 or far is None:
            return place.on(None, place.level)
        nearest = int(far[offer.fits].min())
        if nearest > place.level and nearest > self._may(place.level, offer, far, now):
            return None
        return place.on(offer.fits & (far == nearest), nearest)

    def start(self, place: PlanSlot, job: Job) -> None:
        """Take note of where a pod of a job passed.

        Those of the job that come after one that went far do not wait anew until one starts nearer (3.5.1).
        """
        if place.farther:
            self._level[job.queue, job.name] = place.level
        else:
            self._level.pop((job.queue, job.name), None)

    def forget_but(self, waits: Callable[[str], bool], jobs: Collection[_Name]) -> None:
        """Keep only what is known of pods that still wait, by UID, and of these jobs, by queue and name."""
        self._since = {uid: since for uid, since in self._since.items() if waits(uid)}
        self._level = {name: level for name, level in self._level.items() if name in jobs}

    def _may(self, level: int, offer: Offer, far: Counts, now: float) -> int:
        """Return the farthest level at which a pod may start now; it does not wait where there is no node for it."""
        waited = now - self._since.setdefault(offer.uid, now)
        last = self._level.get((offer.job.queue, offer.job.name), 0)
        wait = LocalityWait(max(level, last), waited)
        return farthest(self._policy, wait, np.unique(far[offer.usable]).tolist())
