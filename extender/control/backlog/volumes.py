"""Where the volumes of pods are: which claim is bound to which volume, and which nodes can use that volume.

A claim that is not bound, or bound to an unknown volume, restricts no node: kube-scheduler will find it a volume.
"""

from collections.abc import Collection

from extender.cluster.eligibility import Terms
from extender.cluster.events import (
    ClaimGone,
    ClaimSeen,
    ClaimsListed,
    VolumeEvent,
    VolumeGone,
    VolumeSeen,
    VolumesListed,
)
from extender.cluster.model import Claim, Pod, Volume


class Volumes:
    """Claims and volumes as the watches report them. Under the backlog's lock."""

    def __init__(self) -> None:
        self._volume_of_claim: dict[str, str] = {}
        self._claims_of_volume: dict[str, set[str]] = {}
        self._affinity_of_volume: dict[str, Terms] = {}
        self._users_of_claim: dict[str, set[str]] = {}

    def use(self, pod: Pod) -> None:
        """Note that a pod uses its claims."""
        for claim in pod.claims:
            self._users_of_claim.setdefault(claim, set()).add(pod.uid)

    def leave(self, pod: Pod) -> None:
        """Note that a pod uses its claims no more."""
        for claim in pod.claims:
            _remove(self._users_of_claim, claim, pod.uid)

    def affinities(self, pod: Pod) -> tuple[Terms, ...]:
        """Return what the volumes of a pod demand of its node, each demand once."""
        demands = (self._affinity(claim) for claim in pod.claims)
        return tuple(dict.fromkeys(terms for terms in demands if terms is not None))

    def apply(self, event: VolumeEvent) -> set[str]:
        """Take one event in; return the UIDs of the pods for which a volume's demand has changed."""
        before = {claim: self._affinity(claim) for claim in self._concerned(event)}
        self._take(event)
        changed = [claim for claim, affinity in before.items() if self._affinity(claim) != affinity]
        return {uid for claim in changed for uid in self._users_of_claim.get(claim, ())}

    def _affinity(self, claim: str) -> Terms | None:
        return self._affinity_of_volume.get(self._volume_of_claim.get(claim, ""))

    def _concerned(self, event: VolumeEvent) -> Collection[str]:
        """Return the claims whose volume, or its demand, an event may change."""
        match event:
            case ClaimSeen(claim):
                return (claim.name,)
            case ClaimGone(name):
                return (name,)
            case VolumeSeen(volume):
                return self._claims_of_volume.get(volume.name, ())
            case VolumeGone(name):
                return self._claims_of_volume.get(name, ())
            case _:
                return self._users_of_claim

    def _take(self, event: VolumeEvent) -> None:
        match event:
            case ClaimSeen(claim):
                self._bind(claim)
            case ClaimGone(name):
                self._bind(Claim(name))
            case ClaimsListed(claims):
                self._volume_of_claim, self._claims_of_volume = {}, {}
                for claim in claims:
                    self._bind(claim)
            case VolumeSeen(volume):
                self._put(volume)
            case VolumeGone(name):
                self._affinity_of_volume.pop(name, None)
            case VolumesListed(volumes):
                self._affinity_of_volume = {}
                for volume in volumes:
                    self._put(volume)

    def _bind(self, claim: Claim) -> None:
        before = self._volume_of_claim.pop(claim.name, None)
        if before is not None:
            _remove(self._claims_of_volume, before, claim.name)
        if claim.volume:
            self._volume_of_claim[claim.name] = claim.volume
            self._claims_of_volume.setdefault(claim.volume, set()).add(claim.name)

    def _put(self, volume: Volume) -> None:
        if volume.affinity is None:
            self._affinity_of_volume.pop(volume.name, None)
        else:
            self._affinity_of_volume[volume.name] = volume.affinity


def _remove(sets: dict[str, set[str]], key: str, name: str) -> None:
    """Take a name out of the set of a key; an empty set is forgotten."""
    names = sets.get(key)
    if names is not None:
        names.discard(name)
        if not names:
            del sets[key]
