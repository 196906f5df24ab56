from types import SimpleNamespace

import pytest

from lab.controlplane.rest import apply
from lab.errors import ControlPlaneError


class WithoutIt:
    """An API server that has nothing at any path."""

    def request(self, *_args, **_options):
        return SimpleNamespace(status=404, data=b"404 page not found\n")


def test_a_manifest_of_a_kind_that_is_not_installed_says_so():
    client = SimpleNamespace(
        configuration=SimpleNamespace(host="https://127.0.0.1:1"),
        rest_client=SimpleNamespace(pool_manager=WithoutIt()),
    )
    manifest = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "training"}}

    with pytest.raises(ControlPlaneError) as refused:
        apply(client, [manifest])

    assert str(refused.value) == (
        "the API server knows no 'RayCluster' of ray.io/v1: its CustomResourceDefinition is not installed there"
    )
