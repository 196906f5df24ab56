"""Claims and volumes as Kubernetes tells of them, and how they are read: only where a pod's volumes can be used."""

import msgspec

from extender.adapters.kube.objects import Selector
from extender.adapters.kube.templates import terms_from
from extender.adapters.kube.watching import Resource
from extender.cluster.events import ClaimGone, ClaimSeen, ClaimsListed, VolumeGone, VolumeSeen, VolumesListed
from extender.cluster.model import Claim, Volume


class ObjectMeta(msgspec.Struct):
    """Metadata of a claim or a volume; a volume has no namespace."""

    name: str = ""
    namespace: str = ""


class ClaimSpec(msgspec.Struct, rename="camel"):
    """PersistentVolumeClaimSpec."""

    volume_name: str = ""


class ClaimObject(msgspec.Struct):
    """PersistentVolumeClaim."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


class VolumeNodeAffinity(msgspec.Struct):
    """VolumeNodeAffinity."""

    required: Selector | None = None


class VolumeSpec(msgspec.Struct, rename="camel"):
    """PersistentVolumeSpec."""

    node_affinity: VolumeNodeAffinity | None = None


class VolumeObject(msgspec.Struct):
    """PersistentVolume."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)


def claim_from(claim: ClaimObject) -> Claim:
    """Return our Claim."""
    return Claim(f"{claim.metadata.namespace}/{claim.metadata.name}", claim.spec.volume_name)


def volume_from(volume: VolumeObject) -> Volume:
    """Return our Volume."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity else None
    return Volume(volume.metadata.name, terms_from(required) if required is not None else None)


def claims() -> Resource:
    """Return how claims are read; an order without them is as good as before there were any."""
    decode = msgspec.json.Decoder(ClaimObject).decode
    return Resource(
        name="persistentvolumeclaims",
        path="/api/v1/persistentvolumeclaims",
        listed=lambda raws: ClaimsListed([claim_from(decode(raw)) for raw in raws]),
        seen=lambda raw: ClaimSeen(claim_from(decode(raw))),
        gone=lambda raw: ClaimGone(claim_from(decode(raw)).name),
        optional=True,
    )


def volumes() -> Resource:
    """Return how volumes are read."""
    decode = msgspec.json.Decoder(VolumeObject).decode
    return Resource(
        name="persistentvolumes",
        path="/api/v1/persistentvolumes",
        listed=lambda raws: VolumesListed([volume_from(decode(raw)) for raw in raws]),
        seen=lambda raw: VolumeSeen(volume_from(decode(raw))),
        gone=lambda raw: VolumeGone(decode(raw).metadata.name),
        optional=True,
    )
