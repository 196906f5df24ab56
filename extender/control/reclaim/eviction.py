"""One eviction for a waiting pod: what is asked for, and who is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from extender.cluster.model import Pod
from extender.control.eviction_requests import EvictionBatch
from extender.control.pod_shapes import Shape
from extender.control.queues.standings import MINIMUM_SHARE
from extender.control.reclaim.trials import Vain


class EvictionListener(Protocol):
    """Who is told of what was done (metrics)."""

    def note_reclaim(self, victim: Pod, queue: str, why: str) -> None:
        """Note an eviction for a queue."""

    def note_vain(self, vain: Vain) -> None:
        """Note evictions whose room was not used by the pod that they were made for."""


@dataclass(slots=True, eq=False)
class Eviction:
    """A waiting pod, the node that it gets, and the victims there. `since` and `promised_at` are in flight time.

    `level` is the locality level of that node for the pod, None where it makes no difference.
    """

    pod: Pod
    queue: str
    why: str
    node: str
    level: int | None
    victims: Sequence[Pod]
    since: float
    promised_at: float
    shape: Shape


def batch_of(eviction: Eviction, listener: EvictionListener) -> EvictionBatch:
    """Return the requests for one eviction's victims; the listener is told of each."""
    queue, why = eviction.queue, eviction.why

    def note_evicted(victim: Pod) -> tuple[str, str]:
        listener.note_reclaim(victim, queue, why)
        share = "minimum" if why == MINIMUM_SHARE else "fair"
        message = f"evicted so that queue {queue} gets its {share} share"
        return "Reclaimed", f"{message}; queue {victim.identity.queue} is above its fair share"

    fields = {"queue": queue, "why": why, "node": eviction.node, "room_for": eviction.pod.name}
    return EvictionBatch(eviction.victims, lambda _: fields, note_evicted)
