"""The use that metrics-server measured."""

from datetime import UTC, datetime

import pytest

from extender.adapters.usage.metrics_api import NODES as NODES_PATH
from extender.adapters.usage.metrics_api import PODS as PODS_PATH
from extender.adapters.usage.metrics_api import MetricsApi
from extender.cluster.model import Node, Pod
from extender.errors import ClusterError, UsageError

NOW = 1_000_000.0
NODES = [Node(name, {"cpu": 4000.0, "memory": 2.0**33}) for name in "ab"]
POD = Pod("uid", "lab", "one", {}, node="a")
PLACES = {("lab", "one"): "a", ("lab", "two"): "a"}


def at(age):
    return datetime.fromtimestamp(NOW - age, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(name, cpu="500m", memory="1Gi", age=10):
    return {
        "metadata": {"name": name},
        "timestamp": at(age),
        "window": "20.5s",
        "usage": {"cpu": cpu, "memory": memory},
    }


def pod(name, *cpus, age=12):
    containers = [{"name": str(number), "usage": {"cpu": cpu, "memory": "256Mi"}} for number, cpu in enumerate(cpus)]
    meta = {"namespace": "lab", "name": name}
    return {"metadata": meta, "timestamp": at(age), "window": "1m10s", "containers": containers}


class Server:
    def __init__(self, nodes, pods):
        self.lists = {NODES_PATH: nodes, PODS_PATH: pods}

    def read(self, path, params=()):
        items = self.lists[path]
        if isinstance(items, Exception):
            raise items
        return {"items": items}


def look(nodes=(), pods=(), asked=(POD,)):
    source = MetricsApi(Server(nodes, pods), 90.0, lambda: PLACES, clock=lambda: NOW)
    return source.look(NODES, list(asked))


def test_nodes_pods_and_their_sums_are_in_our_units_with_the_time_and_window_of_metrics_server():
    usage = look(
        [node("a"), node("b", cpu="1234567n", age=5)], [pod("one", "100m", "50m"), pod("two", "200m", age=20)]
    ).usage
    assert usage.problems == {}
    assert usage.nodes["a"].amounts == {"cpu": 500.0, "memory": 2.0**30}
    assert usage.nodes["b"].amounts["cpu"] == 2.0  # 1.23 millicores, rounded up as quantities are
    assert usage.pods["uid"].amounts == {"cpu": 150.0, "memory": 2.0**29}
    assert usage.pods_on["a"].amounts == {"cpu": 350.0, "memory": 3 * 2.0**28}
    assert usage.nodes["a"].at == NOW - 10
    assert usage.pods["uid"].at == NOW - 12
    assert usage.pods_on["a"].at == NOW - 20  # as old as its oldest part
    assert usage.nodes["a"].since == NOW - 20 - 70  # the earliest window of all


def test_pods_are_asked_about_first_so_that_no_more_is_told_of_one_than_its_node_was_told_to_use():
    class Noting(Server):
        asked = ()

        def read(self, path, params=()):
            self.asked += (path,)
            return super().read(path, params)

    server = Noting([node("a")], [pod("one", "100m")])
    MetricsApi(server, 90.0, lambda: PLACES, clock=lambda: NOW).look(NODES, [POD])
    assert server.asked == (PODS_PATH, NODES_PATH)


def test_a_node_that_is_not_there_or_stale_or_negative_is_left_out():
    assert set(look([node("a")]).usage.problems) == {"b"}
    assert look([node("a", age=100), node("b")]).usage.problems == {"a": "newest sample is older than 90 s"}
    assert look([node("a", cpu="-5m"), node("b")]).usage.problems == {"a": "cpu is negative"}


def test_an_absurd_amount_of_one_node_or_pod_leaves_out_its_node_alone():
    absurd = look([node("a", memory="18446744073709551615"), node("b")])  # -1 in 64 bits
    assert absurd.usage.problems == {"a": "memory is absurd: far more than there is"}
    of_pod = look([node("a"), node("b")], [pod("two", "18446744073709551615")])
    assert of_pod.usage.problems == {"a": "pods' cpu is absurd: far more than there is"}
    assert look([node("a", memory="-9223372036854775808"), node("b")]).usage.problems == {"a": "memory is negative"}


def test_nodes_that_are_not_ours_are_strangers():
    found = look([node("a"), node("b"), node("z")])
    assert (found.strangers, found.named) == (1, ("z",))


def refused(status):
    error = ClusterError("no")
    error.status = status
    return error


@pytest.mark.parametrize(
    ("nodes", "kind"),
    [
        (refused(None), "unreachable"),
        (refused(404), "refused"),
        (refused(503), "server_error"),
        ([], "empty"),
        ([{"metadata": {"name": "a"}}], "malformed"),
        ([node("a") | {"timestamp": "yesterday"}], "malformed"),
        ([node("a") | {"window": "long"}], "malformed"),
        ([node("a", cpu="much")], "malformed"),
        (None, "malformed"),
    ],
)
def test_what_cannot_be_read_is_a_failure(nodes, kind):
    with pytest.raises(UsageError) as raised:
        look(nodes)
    assert raised.value.kind == kind
