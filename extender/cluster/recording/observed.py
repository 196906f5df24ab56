"""Events of pods with what a recording needs that the service does not."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.cluster.events import PodSeen, PodsListed


@dataclass(frozen=True, slots=True)
class Moments:
    """When a pod was bound, and when its last container ended, in whole seconds as Kubernetes writes them; or None.

    `unwritten` are those of its constraints that a recording does not hold, by name.
    """

    bound: float | None = None
    ended: float | None = None
    unwritten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodObserved(PodSeen):
    """A pod is there, new or changed."""

    moments: Moments


@dataclass(frozen=True, slots=True)
class PodsObserved(PodsListed):
    """These are all the pods there are, each with its moments."""

    moments: Sequence[Moments]
