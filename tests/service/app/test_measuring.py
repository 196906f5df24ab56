"""Reading use as `control` is wired: from settings to the report, the metrics and the event."""

import threading

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from extender.adapters.usage.report import read
from extender.app.liveness import Liveness
from extender.app.measuring import Measuring
from extender.cluster.model import Node, NodeGone, NodeSeen, NodesListed, Pod, PodGone, PodSeen, PodsListed
from extender.cluster.usage import Usage
from extender.settings import parse
from tests.service.adapters.usage.fake import NAMES, NODES, PODS, PRESSURE, FakePrometheus

HEAD = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"}


class Events:
    def __init__(self):
        self.said = []
        self.warned = threading.Event()

    def warn_of_lease(self, namespace, name, reason, message, key):
        self.said.append((namespace, name, reason, message))
        self.warned.set()


@pytest.fixture
def fake():
    server = FakePrometheus()
    yield server
    server.shutdown()
    server.server_close()


def measuring_of(url, registry=None, **opportunistic):
    usage = {
        "url": url,
        "intervalSeconds": 1,
        "nodeQueries": {name: f"N_{name}" for name in NAMES},
        "podQueries": {name: f"P_{name}" for name in (*NAMES, PRESSURE)},
    }
    settings = parse({**HEAD, "usage": usage if url else {}, "opportunistic": opportunistic})
    measuring = Measuring(settings, None, registry or CollectorRegistry(), alone=lambda pod: pod.name == "one")
    measuring.take(NodesListed(NODES))
    measuring.take(PodsListed(PODS))
    return measuring


def test_nothing_is_read_by_default():
    measuring = measuring_of("")
    measuring.start(Liveness(), threading.Event(), Events(), lambda: True)
    assert measuring.usage() == Usage()
    assert not read("here", measuring.report().decode()).on


def test_all_nodes_are_measured_and_of_pods_those_that_count_alone(fake):
    registry = CollectorRegistry()
    measuring = measuring_of(fake.url, registry)
    measuring.reader.look()
    assert set(measuring.usage().nodes) == {"a", "b"}
    assert set(measuring.usage().pods) == {"uid-1"}
    assert read("here", measuring.report().decode()).measured == 2
    assert registry.get_sample_value("dovetail_usage_looks_total", {"result": "ok"}) == 1
    assert registry.get_sample_value("dovetail_usage_nodes", {"state": "measured"}) == 2
    assert registry.get_sample_value("dovetail_usage_nodes", {"state": "problem"}) == 0


@pytest.mark.parametrize(
    ("opportunistic", "known", "without"),
    [({"enabled": True, "evictBy": "pressure"}, {"a": 0.25}, 1), ({"enabled": True}, {}, 0)],
)
def test_how_long_regular_pods_wait_is_read_and_reported_where_settings_say_so(fake, opportunistic, known, without):
    del fake.values[PRESSURE, PRESSURE]["b"]
    measuring = measuring_of(fake.url, **opportunistic)
    measuring.reader.look()
    assert measuring.usage().pressure == known
    assert read("here", measuring.report().decode()).without_pressure == without


@pytest.mark.parametrize(("leads", "events"), [(True, 1), (False, 0)])
def test_who_leads_writes_one_event_where_use_is_not_known_any_more(fake, leads, events):
    fake.status = 503
    measuring, said, stopped = measuring_of(fake.url), Events(), threading.Event()
    with capture_logs():
        measuring.start(Liveness(), stopped, said, lambda: leads)
        if leads:
            assert said.warned.wait(30)
        stopped.set()
        for _ in range(2):
            measuring.reader.look()
    assert len(said.said) == events
    assert all(event[:3] == ("dovetail-system", "dovetail-control", "UsageUnknown") for event in said.said)
    assert set(measuring.usage().problems) == {"a", "b"}


def test_nodes_and_pods_are_those_that_the_watches_show(fake):
    measuring = measuring_of(fake.url)
    measuring.take(NodeGone("b"))
    measuring.take(NodeSeen(Node("c", {})))
    measuring.take(PodGone("uid-1"))
    measuring.take(PodSeen(Pod("uid-3", "lab", "one", {}, node="a")))
    measuring.take(PodSeen(Pod("uid-2", "lab", "two", {}, node="b", finished=True)))
    assert {node.name for node in measuring.reader.nodes()} == {"a", "c"}
    assert [pod.uid for pod in measuring.reader.pods()] == ["uid-3"]
