"""Asks for evictions, and remembers which pods were asked to go and which must be left alone for a while."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import structlog

from extender.cluster.model import Pod
from extender.control.cluster_view import ClusterView
from extender.control.queues.standings import MINIMUM_SHARE
from extender.control.reclaim.eviction import Eviction, Evictor, Listener
from extender.errors import ClusterError

_SPARED_SECONDS, _LONGEST_SPARED_SECONDS = 30.0, 960.0
"""A pod whose PodDisruptionBudget forbids its eviction, or whose eviction failed, is left alone for so long at first,
twice as long each time, and at most."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Spared:
    """Until when a pod is left alone, and for how long that was."""

    until: float
    seconds: float


class EvictionRequests:
    """Requests run in the writers' threads; their outcomes wait in a queue until the loop takes them.

    All times are in flight time, which stands still while we cannot see which pods have gone.
    """

    def __init__(self, cluster: ClusterView, evictor: Evictor, listener: Listener) -> None:
        self._cluster, self._evictor, self._listener = cluster, evictor, listener
        self._asked_at: dict[str, float] = {}
        self._spared: dict[str, _Spared] = {}
        self._outcomes: deque[tuple[Eviction, int]] = deque()

    # -- the loop's thread

    def send(self, eviction: Eviction) -> None:
        """Have a writer ask for the evictions."""
        time = self._cluster.flight_time()
        self._asked_at |= {victim.uid: time for victim in eviction.victims}
        self._cluster.run_soon(lambda: self._evict_all(eviction))

    def refused(self) -> Iterator[tuple[Eviction, Sequence[Pod]]]:
        """Yield the evictions refused since the last call, each with the victims that stay: the first was refused.

        That one is left alone for a while; those after it were never asked.
        """
        while self._outcomes:
            eviction, evicted = self._outcomes.popleft()
            staying = eviction.victims[evicted:]
            if staying:
                self._spare(staying[0])
                for victim in staying:
                    self._asked_at.pop(victim.uid, None)
                yield eviction, staying

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
        self._spared[pod.uid] = _Spared(self._cluster.flight_time() + seconds, seconds)

    # -- the writers' threads

    def _evict_all(self, eviction: Eviction) -> None:
        """Ask for one eviction after the other, until one is refused."""
        evicted = 0
        for victim in eviction.victims:
            if not self._evict(victim, eviction):
                break
            evicted += 1
        self._outcomes.append((eviction, evicted))

    def _evict(self, victim: Pod, eviction: Eviction) -> bool:
        queue, why = eviction.queue, eviction.why
        fields = {"pod": f"{victim.namespace}/{victim.name}", "queue": queue, "why": why}
        try:
            if not self._cluster.leads():
                raise ClusterError("the Lease is no longer ours")
            if not self._evictor.evict(victim):
                log.info("eviction not allowed now", **fields)
                return False
        except ClusterError as error:
            log.warning("eviction failed", **fields, error=str(error))
            return False
        self._listener.note_reclaim(victim, queue, why)
        victim_queue = victim.identity.queue
        log.info("evicted", **fields, victim_queue=victim_queue, node=eviction.node, room_for=eviction.pod.name)
        share = "minimum" if why == MINIMUM_SHARE else "fair"
        message = f"evicted so that queue {queue} gets its {share} share"
        self.tell(victim, "Reclaimed", f"{message}; queue {victim_queue} is above its fair share")
        return True
