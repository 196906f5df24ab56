"""Events of pods with the times that the API server states for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.cluster.events import PodSeen, PodsListed


@dataclass(frozen=True, slots=True)
class Moments:
    """When a pod was bound, and when its last container ended, in whole seconds as Kubernetes writes them; or None."""

    bound: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class PodObserved(PodSeen):
    """A pod is there, new or changed."""

    moments: Moments


@dataclass(frozen=True, slots=True)
class PodsObserved(PodsListed):
    """These are all the pods there are, each with its moments."""

    moments: Sequence[Moments]
