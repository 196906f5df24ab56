"""Namespaces and their labels, as events."""

import msgspec

from extender.adapters.kube.namespaces import namespaces
from extender.cluster.events import NamespaceGone, NamespaceSeen, NamespacesListed

SHOP = msgspec.Raw(b'{"metadata": {"name": "shop", "labels": {"team": "sales"}}, "status": {"phase": "Active"}}')
BARE = msgspec.Raw(b'{"metadata": {"name": "bare"}}')


def test_namespaces_are_read_with_their_labels():
    resource = namespaces()
    assert resource.listed([SHOP, BARE]) == NamespacesListed({"shop": {"team": "sales"}, "bare": {}})
    assert resource.seen(SHOP) == NamespaceSeen("shop", {"team": "sales"})
    assert resource.gone(BARE) == NamespaceGone("bare")
