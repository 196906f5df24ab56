"""Services, as far as they matter here: kube-scheduler spreads the pods that they are for."""

from collections import defaultdict
from collections.abc import Mapping

from extender.cluster.events import Event, ServiceGone, ServiceSeen, ServicesListed
from extender.cluster.model import Service


class Services:
    """Takes events in; one thread at a time. Any thread may ask, and sees each event whole."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Service]] = {}

    def apply(self, event: Event) -> None:
        """Take in what a watch brings."""
        match event:
            case ServiceSeen(service):
                self._set(service.name, service)
            case ServiceGone(name):
                self._set(name, None)
            case ServicesListed(services):
                listed: defaultdict[str, dict[str, Service]] = defaultdict(dict)
                for service in services:
                    listed[_namespace(service.name)][service.name] = service
                self._by_namespace = dict(listed)
            case _:
                pass

    def select(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Say whether a pod with these labels is one of a Service of its namespace."""
        services = self._by_namespace.get(namespace, {})
        return any(service.selector and service.selector.items() <= labels.items() for service in services.values())

    def _set(self, name: str, service: Service | None) -> None:
        namespace = _namespace(name)
        services = {**self._by_namespace.get(namespace, {})}
        services.pop(name, None)
        if service is not None:
            services[name] = service
        others = {name: known for name, known in self._by_namespace.items() if name != namespace}
        self._by_namespace = {**others, namespace: services} if services else others


def _namespace(name: str) -> str:
    return name.partition("/")[0]
