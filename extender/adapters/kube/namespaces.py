"""Namespaces as Kubernetes tells of them, and how they are read: only where their labels say who may use a queue."""

import msgspec

from extender.adapters.kube.watching import Resource
from extender.cluster.events import NamespaceGone, NamespaceSeen, NamespacesListed


class NamespaceMeta(msgspec.Struct):
    """A namespace's metadata."""

    name: str = ""
    labels: dict[str, str] | None = None


class NamespaceObject(msgspec.Struct):
    """Namespace."""

    metadata: NamespaceMeta = msgspec.field(default_factory=NamespaceMeta)


def namespaces() -> Resource:
    """Return how namespaces are read."""
    decode = msgspec.json.Decoder(NamespaceObject).decode

    def labels(raw: msgspec.Raw) -> tuple[str, dict[str, str]]:
        meta = decode(raw).metadata
        return meta.name, meta.labels or {}

    return Resource(
        name="namespaces",
        path="/api/v1/namespaces",
        listed=lambda raws: NamespacesListed(dict(map(labels, raws))),
        seen=lambda raw: NamespaceSeen(*labels(raw)),
        gone=lambda raw: NamespaceGone(labels(raw)[0]),
    )
