"""Events of pods with what a recording needs that the service does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.cluster.events import PodSeen, PodsListed
from extender.cluster.peers import ALONE, Peers


@dataclass(frozen=True, slots=True)
class Moments:
    """When a pod was bound, and when its last container ended, in whole seconds as Kubernetes writes them; or None.

    `disrupted` is when it was told to go from outside, in whole seconds too: preempted, evicted, or as its node went.
    `unwritten` are those of its constraints and preferences that a recording does not hold, by name. `peers` is what it
    asks of other pods, which know it by its `labels`.
    """

    bound: float | None = None
    ended: float | None = None
    disrupted: float | None = None
    unwritten: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    peers: Peers = ALONE


@dataclass(frozen=True, slots=True)
class PodObserved(PodSeen):
    """A pod is there, new or changed."""

    moments: Moments


@dataclass(frozen=True, slots=True)
class PodsObserved(PodsListed):
    """These are all the pods there are, each with its moments."""

    moments: Sequence[Moments]
