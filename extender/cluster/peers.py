"""What decides where a pod may go by the pods that are there: affinity to pods, spread over domains, host ports.

The service leaves these to kube-scheduler; a recording holds them for who asks what a cluster could be. Source:
Kubernetes' InterPodAffinity, PodTopologySpread and NodePorts plugins.
"""

from collections.abc import Mapping

import msgspec

from extender.cluster.eligibility import Requirement
from extender.cluster.model import EVERY_NAMESPACE

Selector = tuple[Requirement, ...]
"""All of which a pod's labels must meet; an empty one selects all pods."""


class PodTerm(msgspec.Struct, frozen=True, omit_defaults=True):
    """Pods of these namespaces that the selector selects (None: no pod), in the domain of a node's label `key`."""

    key: str
    namespaces: tuple[str, ...]
    selector: Selector | None = None

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Say whether the term is about a pod with these labels."""
        known = namespace in self.namespaces or EVERY_NAMESPACE in self.namespaces
        return known and self.selector is not None and all(requirement.met("", labels) for requirement in self.selector)


class TopologySpread(msgspec.Struct, frozen=True, omit_defaults=True):
    """A topology spread constraint: of the pods that the term is about a domain may have `most` more than any other.

    Where there are fewer than `domains` domains, the least counts as none. Nodes count that the pod's own node affinity
    lets it go to, with `by_affinity`; and that have no taint against it, with `by_taints`.
    """

    term: PodTerm
    most: int = 1
    domains: int = 1
    by_affinity: bool = True
    by_taints: bool = False


class HostPort(msgspec.Struct, frozen=True, omit_defaults=True):
    """A port of the node that a pod takes; without an `address`, on all of the node's."""

    port: int
    protocol: str = "TCP"
    address: str = ""


class Peers(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a pod asks of the pods about it, all of it required.

    It keeps `away` from pods, and they from it; it is placed `near` pods; it is `spread`.
    """

    away: tuple[PodTerm, ...] = ()
    near: tuple[PodTerm, ...] = ()
    spread: tuple[TopologySpread, ...] = ()
    ports: tuple[HostPort, ...] = ()

    @property
    def terms(self) -> tuple[PodTerm, ...]:
        """All terms about pods."""
        return (*self.away, *self.near, *(constraint.term for constraint in self.spread))


ALONE = Peers()


def looked_at(peers: Peers) -> set[str]:
    """Return the labels of pods that the terms look at."""
    return {requirement.key for term in peers.terms for requirement in term.selector or ()}
