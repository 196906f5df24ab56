"""To which nodes the volumes of pods tie them: read once by the service's own client; nothing is written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from extender.adapters.kube.api import Api
from extender.adapters.kube.volumes import claims, volumes
from extender.adapters.kube.watching import listed
from extender.cluster.eligibility import Terms
from extender.cluster.model import Claim, Pod, Volume
from extender.cluster.recording.lines import VOLUMES
from extender.cluster.recording.observed import Moments, PodsObserved

if TYPE_CHECKING:
    from extender.cluster.events import ClaimsListed, VolumesListed


@dataclass(frozen=True, slots=True)
class Bound:
    """Which volume a claim is bound to, and which nodes can use a volume; None: all."""

    volume: Mapping[str, str]
    affinity: Mapping[str, Terms | None]

    @classmethod
    def of(cls, claims: Iterable[Claim], volumes: Iterable[Volume]) -> "Bound":
        """Return who is bound to what."""
        return cls({one.name: one.volume for one in claims}, {one.name: one.affinity for one in volumes})

    def tied(self, pods: PodsObserved) -> PodsObserved:
        """Return the pods, each tied to the nodes that can use its volumes.

        Where a claim has no volume yet, or one that is not there, its pod still has what is not known.
        """
        both = [self._tied(pod, moments) for pod, moments in zip(pods.pods, pods.moments, strict=True)]
        return PodsObserved([pod for pod, _ in both], [moments for _, moments in both])

    def _tied(self, pod: Pod, moments: Moments) -> tuple[Pod, Moments]:
        if not pod.claims:
            return pod, moments
        bound = [self.volume.get(claim, "") for claim in pod.claims]
        demands = [terms for name in bound if (terms := self.affinity.get(name)) is not None]
        pod = replace(pod, constraints=replace(pod.constraints, volumes=tuple(dict.fromkeys(demands))))
        if all(name in self.affinity for name in bound):
            moments = replace(moments, unwritten=tuple(what for what in moments.unwritten if what != VOLUMES))
        return pod, moments


def read_bound(api: Api) -> Bound:
    """Return all claims and volumes of a cluster. Raises ClusterError where they cannot be read."""
    of_claims, of_volumes = claims(), volumes()
    every_claim = cast("ClaimsListed", of_claims.listed(listed(api, of_claims.path)[0]))
    every_volume = cast("VolumesListed", of_volumes.listed(listed(api, of_volumes.path)[0]))
    return Bound.of(every_claim.claims, every_volume.volumes)
