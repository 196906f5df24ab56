"""Which pods Services are for."""

import pytest

from extender.cluster.events import ServiceGone, ServiceSeen, ServicesListed
from extender.cluster.model import Service
from extender.cluster.services import Services

WEB = Service("shop/web", {"app": "web"})


@pytest.mark.parametrize("event", [ServiceSeen(WEB), ServicesListed([WEB])])
def test_a_service_is_for_the_pods_of_its_namespace_that_have_its_labels(event):
    services = Services()
    services.apply(event)
    assert services.select("shop", {"app": "web", "tier": "front"})
    assert not services.select("shop", {"app": "other"})
    assert not services.select("bank", {"app": "web"})
    services.apply(ServiceGone("shop/web"))
    assert not services.select("shop", {"app": "web"})


def test_nothing_is_kept_of_namespaces_whose_services_are_gone():
    services = Services()
    for number in range(10):
        services.apply(ServiceSeen(Service(f"n{number}/web", {"app": "web"})))
        services.apply(ServiceGone(f"n{number}/web"))
    assert services._by_namespace == {}
