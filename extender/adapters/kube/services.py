"""Services as Kubernetes tells of them, and how they are read: only which pods they are for."""

import msgspec

from extender.adapters.kube.volumes import ObjectMeta
from extender.adapters.kube.watching import Resource
from extender.cluster.events import ServiceGone, ServiceSeen, ServicesListed
from extender.cluster.model import Service


class ServiceSpec(msgspec.Struct):
    """ServiceSpec."""

    selector: dict[str, str] | None = None


class ServiceObject(msgspec.Struct):
    """Service."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


def service_from(service: ServiceObject) -> Service:
    """Return our Service."""
    return Service(f"{service.metadata.namespace}/{service.metadata.name}", service.spec.selector or {})


def services() -> Resource:
    """Return how Services are read."""
    decode = msgspec.json.Decoder(ServiceObject).decode
    return Resource(
        name="services",
        path="/api/v1/services",
        listed=lambda raws: ServicesListed([service_from(decode(raw)) for raw in raws]),
        seen=lambda raw: ServiceSeen(service_from(decode(raw))),
        gone=lambda raw: ServiceGone(service_from(decode(raw)).name),
    )
