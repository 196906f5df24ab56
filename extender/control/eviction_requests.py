"""Asks for evictions, and remembers which pods were asked to go and which must be left alone for a while.

Reclaim and preemption share one of these, so that nobody is asked twice.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from extender.cluster.model import Pod
from extender.control.cluster_view import ClusterView
from extender.errors import ClusterError

_SPARED_SECONDS, _LONGEST_SPARED_SECONDS = 30.0, 960.0
"""A pod whose PodDisruptionBudget forbids its eviction, or whose eviction failed, is left alone for so long at first,
twice as long each time, and at most."""

log = structlog.get_logger()


class Evictor(Protocol):
    """What evicts. Raises ClusterError where that fails."""

    def evict(self, pod: Pod) -> bool:
        """Ask for the eviction of this very pod; False where a PodDisruptionBudget forbids it now."""

    def tell(self, pod: Pod, reason: str, message: str) -> None:
        """Write an event on a pod."""


@dataclass(frozen=True, slots=True)
class EvictionBatch:
    """Evictions of `victims` that are asked for one after the other, until one is refused; its `fields` are logged.

    `note_evicted` notes that a victim was asked to go, in a writer's thread. It returns the reason and the words of the
    event that the victim gets.
    """

    victims: Sequence[Pod]
    fields: Callable[[Pod], Mapping[str, object]]
    note_evicted: Callable[[Pod], tuple[str, str]]


@dataclass(slots=True)
class _Spared:
    """Until when a pod of an owner is left alone, and for how long that was."""

    until: float
    seconds: float
    owner: str


class EvictionRequests:
    """Requests run in the writers' threads; all else is for the thread of the loops that ask.

    All times are in flight time, which stands still while we cannot see which pods have gone.
    """

    def __init__(self, cluster: ClusterView, evictor: Evictor) -> None:
        self._cluster, self._evictor = cluster, evictor
        self._asked_at: dict[str, float] = {}
        self._spared: dict[str, _Spared] = {}

    # -- the loops' thread

    def send(self, batch: EvictionBatch, done: Callable[[int], None]) -> None:
        """Have a writer ask for the evictions; `done` is told there how many were asked before one was refused."""
        time = self._cluster.flight_time()
        self._asked_at |= {victim.uid: time for victim in batch.victims}
        self._cluster.run_soon(lambda: done(self._evict_all(batch)))

    def refuse(self, staying: Sequence[Pod]) -> None:
        """Note who stays: the first was refused and is left alone for a while, those after it were never asked."""
        self._spare(staying[0])
        for victim in staying:
            self._asked_at.pop(victim.uid, None)

    def in_order(self, victims: Sequence[Pod]) -> Sequence[Pod]:
        """Return victims in the order in which to ask: those first whose owner's pods were refused lately.

        A PodDisruptionBudget is for all of these: it refuses again, and then nobody else has gone in vain.
        """
        refused = {spared.owner for spared in self._spared.values()}
        return sorted(victims, key=lambda victim: victim.owner not in refused)

    def asked(self) -> Collection[str]:
        """Return the pods that were asked to go, by UID, and are still there."""
        return self._asked_at.keys()

    def spared(self) -> Collection[str]:
        """Return the pods, by UID, that are not to be asked now, as their eviction was refused lately."""
        time = self._cluster.flight_time()
        return {uid for uid, spared in self._spared.items() if time < spared.until}

    def expire(self) -> None:
        """Forget refusals that are old, and requests that are fulfilled or that the watch should have shown by now."""
        time = self._cluster.flight_time()
        self._spared = {
            uid: spared for uid, spared in self._spared.items() if time - spared.until < _LONGEST_SPARED_SECONDS
        }
        self._asked_at = {uid: since for uid, since in self._asked_at.items() if self._is_pending(uid, time - since)}

    def tell(self, pod: Pod, reason: str, message: str) -> None:
        """Write an event on a pod; one that cannot be written is lost."""
        try:
            self._evictor.tell(pod, reason, message)
        except ClusterError as error:
            log.warning("event lost", error=str(error))

    def _is_pending(self, uid: str, seconds: float) -> bool:
        pod = self._cluster.backlog.pod(uid)
        return pod is not None and (pod.leaving or seconds <= self._cluster.assume_seconds)

    def _spare(self, pod: Pod) -> None:
        before = self._spared.get(pod.uid)
        seconds = _SPARED_SECONDS if before is None else min(2 * before.seconds, _LONGEST_SPARED_SECONDS)
        self._spared[pod.uid] = _Spared(self._cluster.flight_time() + seconds, seconds, pod.owner)

    # -- the writers' threads

    def _evict_all(self, batch: EvictionBatch) -> int:
        """Ask for one eviction after the other, until one is refused; return how many were not."""
        for place, victim in enumerate(batch.victims):
            if not self._evict(victim, batch):
                return place
        return len(batch.victims)

    def _evict(self, victim: Pod, batch: EvictionBatch) -> bool:
        fields = {"pod": victim.full_name, **batch.fields(victim)}
        try:
            if not self._cluster.leads():
                raise ClusterError("the Lease is no longer ours")
            if not self._evictor.evict(victim):
                log.info("eviction not allowed now", **fields)
                return False
        except ClusterError as error:
            log.warning("eviction failed", **fields, error=str(error))
            return False
        log.info("evicted", **fields, victim_queue=victim.identity.queue)
        self.tell(victim, *batch.note_evicted(victim))
        return True
