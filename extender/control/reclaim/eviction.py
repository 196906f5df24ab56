"""One eviction for a waiting pod: what is asked for, and the port through which it is counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from extender.cluster.model import Pod
from extender.control.pod_shapes import Shape
from extender.control.queues.standings import MINIMUM_SHARE
from extender.control.reclaim.trials import Vain


class Listener(Protocol):
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


@dataclass(frozen=True, slots=True)
class ReclaimBatch:
    """The requests for one eviction's victims, and who is told."""

    eviction: Eviction
    listener: Listener

    @property
    def victims(self) -> Sequence[Pod]:
        """Who is to go."""
        return self.eviction.victims

    @property
    def fields(self) -> dict[str, object]:
        """What is logged with each."""
        eviction = self.eviction
        return {
            "queue": eviction.queue,
            "why": eviction.why,
            "node": eviction.node,
            "room_for": eviction.pod.name,
        }

    def note_evicted(self, victim: Pod) -> tuple[str, str]:
        """Count an eviction, and return its event."""
        queue, why = self.eviction.queue, self.eviction.why
        self.listener.note_reclaim(victim, queue, why)
        share = "minimum" if why == MINIMUM_SHARE else "fair"
        message = f"evicted so that queue {queue} gets its {share} share"
        return "Reclaimed", f"{message}; queue {victim.identity.queue} is above its fair share"
