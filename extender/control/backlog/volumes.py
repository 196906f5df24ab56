"""Where the volumes of pods are: which claim is bound to which volume, on which nodes that can be used, and by whom.

Of a claim that is not bound, or to a volume that is not known, nothing is demanded: kube-scheduler will find it one.
"""

from collections.abc import Collection

from extender.cluster.eligibility import Terms
from extender.cluster.model import (
    Claim,
    ClaimGone,
    ClaimSeen,
    ClaimsListed,
    Pod,
    Volume,
    VolumeEvent,
    VolumeGone,
    VolumeSeen,
    VolumesListed,
)


class Volumes:
    """Claims and volumes as the watches bring them. Under the lock of whoever owns it."""

    def __init__(self) -> None:
        self._volume: dict[str, str] = {}
        self._claims: dict[str, set[str]] = {}
        self._affinity: dict[str, Terms] = {}
        self._users: dict[str, set[str]] = {}

    def use(self, pod: Pod) -> None:
        """Note that a pod uses its claims."""
        for claim in pod.claims:
            self._users.setdefault(claim, set()).add(pod.uid)

    def leave(self, pod: Pod) -> None:
        """Note that a pod uses them no more."""
        for claim in pod.claims:
            _remove(self._users, claim, pod.uid)

    def affinities(self, pod: Pod) -> tuple[Terms, ...]:
        """Return what the volumes of a pod demand of its node, each demand once."""
        found = (self._of(claim) for claim in pod.claims)
        return tuple(dict.fromkeys(terms for terms in found if terms is not None))

    def apply(self, event: VolumeEvent) -> set[str]:
        """Take one event in; return the UIDs of pods one of whose volumes demands something else now."""
        before = {claim: self._of(claim) for claim in self._concerned(event)}
        self._take(event)
        return {uid for claim, was in before.items() if self._of(claim) != was for uid in self._users.get(claim, ())}

    def _of(self, claim: str) -> Terms | None:
        return self._affinity.get(self._volume.get(claim, ""))

    def _concerned(self, event: VolumeEvent) -> Collection[str]:
        match event:
            case ClaimSeen(claim):
                return (claim.name,)
            case ClaimGone(name):
                return (name,)
            case VolumeSeen(volume):
                return self._claims.get(volume.name, ())
            case VolumeGone(name):
                return self._claims.get(name, ())
            case _:
                return self._users

    def _take(self, event: VolumeEvent) -> None:
        match event:
            case ClaimSeen(claim):
                self._bind(claim)
            case ClaimGone(name):
                self._bind(Claim(name))
            case ClaimsListed(claims):
                self._volume, self._claims = {}, {}
                for claim in claims:
                    self._bind(claim)
            case VolumeSeen(volume):
                self._put(volume)
            case VolumeGone(name):
                self._affinity.pop(name, None)
            case VolumesListed(volumes):
                self._affinity = {}
                for volume in volumes:
                    self._put(volume)

    def _bind(self, claim: Claim) -> None:
        before = self._volume.pop(claim.name, None)
        if before is not None:
            _remove(self._claims, before, claim.name)
        if claim.volume:
            self._volume[claim.name] = claim.volume
            self._claims.setdefault(claim.volume, set()).add(claim.name)

    def _put(self, volume: Volume) -> None:
        if volume.affinity is None:
            self._affinity.pop(volume.name, None)
        else:
            self._affinity[volume.name] = volume.affinity


def _remove(of: dict[str, set[str]], key: str, name: str) -> None:
    """Take a name out of the set of a key; a set that is empty then is forgotten."""
    names = of.get(key)
    if names is not None:
        names.discard(name)
        if not names:
            del of[key]
