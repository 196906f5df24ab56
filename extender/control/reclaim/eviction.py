"""One eviction for a waiting pod, and the ports through which it is written and counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from extender.cluster.model import Pod
from extender.control.pod_shapes import Shape
from extender.control.reclaim.trials import Vain


class Evictor(Protocol):
    """What evicts. Raises ClusterError where that fails."""

    def evict(self, pod: Pod) -> bool:
        """Ask for the eviction of this very pod; False where a PodDisruptionBudget forbids it now."""

    def tell(self, pod: Pod, reason: str, message: str) -> None:
        """Write an event on a pod."""


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
