"""What changes nodes, pods, what owns or groups them, claims, volumes, Services and namespaces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.cluster.model import Claim, Group, Node, Owner, Pod, Service, Volume


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node is there, new or changed."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class NodesListed:
    """These are all the nodes there are."""

    nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod is there, new or changed."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod was removed."""

    uid: str


@dataclass(frozen=True, slots=True)
class PodsListed:
    """These are all the pods there are."""

    pods: Sequence[Pod]


@dataclass(frozen=True, slots=True)
class OwnerSeen:
    """A Job is there, new or changed."""

    owner: Owner


@dataclass(frozen=True, slots=True)
class OwnerGone:
    """A Job was removed."""

    uid: str


@dataclass(frozen=True, slots=True)
class OwnersListed:
    """These are all the Jobs there are."""

    owners: Sequence[Owner]


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """A pod group is there, new or changed."""

    group: Group


@dataclass(frozen=True, slots=True)
class GroupGone:
    """A pod group was removed."""

    group: Group


@dataclass(frozen=True, slots=True)
class GroupsListed:
    """These are all the pod groups of one kind, `source`."""

    source: str
    groups: Sequence[Group]


@dataclass(frozen=True, slots=True)
class ClaimSeen:
    """A claim is there, new or changed."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class ClaimGone:
    """A claim was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class ClaimsListed:
    """These are all the claims there are."""

    claims: Sequence[Claim]


@dataclass(frozen=True, slots=True)
class VolumeSeen:
    """A volume is there, new or changed."""

    volume: Volume


@dataclass(frozen=True, slots=True)
class VolumeGone:
    """A volume was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class VolumesListed:
    """These are all the volumes there are."""

    volumes: Sequence[Volume]


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    """A namespace is there, new or changed."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NamespaceGone:
    """A namespace was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class NamespacesListed:
    """These are all the namespaces there are, with their labels."""

    namespaces: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class ServiceSeen:
    """A Service is there, new or changed."""

    service: Service


@dataclass(frozen=True, slots=True)
class ServiceGone:
    """A Service was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class ServicesListed:
    """These are all the Services there are."""

    services: Sequence[Service]


ServiceEvent = ServiceSeen | ServiceGone | ServicesListed


NamespaceEvent = NamespaceSeen | NamespaceGone | NamespacesListed


VolumeEvent = ClaimSeen | ClaimGone | ClaimsListed | VolumeSeen | VolumeGone | VolumesListed


Event = (
    NodeSeen
    | NodeGone
    | NodesListed
    | PodSeen
    | PodGone
    | PodsListed
    | OwnerSeen
    | OwnerGone
    | OwnersListed
    | GroupSeen
    | GroupGone
    | GroupsListed
    | NamespaceEvent
    | ServiceEvent
    | VolumeEvent
)
