"""Pods are made in the order in which they are asked for; what goes wrong is told to who asks."""

import json
from types import SimpleNamespace

import pytest

from lab.controlplane import builders
from lab.errors import ControlPlaneError
from lab.live.making import PodMaker


class FakeServer:
    """Stands in for a client: keeps what is posted, refuses the pod of one name."""

    def __init__(self, refuse=""):
        self.posted, self.refuse = [], refuse
        self.configuration = SimpleNamespace(host="https://nowhere")
        self.rest_client = SimpleNamespace(pool_manager=SimpleNamespace(request=self.request))

    def request(self, method, address, body, headers):
        name = json.loads(body)["metadata"]["name"]
        if name == self.refuse:
            return SimpleNamespace(status=403, data=json.dumps({"message": "not this one"}).encode())
        self.posted.append((method, address.removeprefix("https://nowhere"), name))
        return SimpleNamespace(status=201, data=body.encode())


def pods(*names):
    return [builders.pod(name) for name in names]


def test_batches_are_made_one_after_the_other_and_all_before_it_ends():
    server = FakeServer()
    with PodMaker(server) as maker:
        maker.make(pods("a"))
        maker.make(pods("b"))
        maker.make(pods("c"))
    maker.check()
    assert server.posted == [("POST", "/api/v1/namespaces/default/pods", name) for name in "abc"]


def test_a_refusal_is_told_with_its_reason():
    with PodMaker(FakeServer(refuse="a")) as maker:
        maker.make(pods("a"))
    with pytest.raises(ControlPlaneError, match="not this one"):
        maker.check()
