"""Reading use as `control` is wired: from settings to the report, the metrics and the event."""

import threading
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from extender.adapters.usage.report import read
from extender.app.liveness import Liveness
from extender.app.measuring import MOST_ENDED, Measuring
from extender.cluster.events import NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.model import Node, Pod
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
    with FakePrometheus() as server:
        yield server


def measuring_of(url, registry=None, sampled=None, **opportunistic):
    usage = {
        "url": url,
        "intervalSeconds": 1,
        "nodeQueries": {name: f"N_{name}" for name in NAMES},
        "podQueries": {name: f"P_{name}" for name in (*NAMES, PRESSURE)},
    }
    settings = parse({**HEAD, "usage": usage if url else {}, "opportunistic": opportunistic})
    registry = registry or CollectorRegistry()
    measuring = Measuring(settings, None, registry, sampled)
    measuring.take(NodesListed(NODES))
    measuring.take(PodsListed([PODS[0], replace(PODS[1], opportunistic=False)]))
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
    measuring.take(PodSeen(Pod("uid-3", "lab", "one", {}, node="a", opportunistic=True)))
    measuring.take(PodSeen(Pod("uid-2", "lab", "two", {}, node="b", finished=True)))
    assert {node.name for node in measuring.reader.nodes()} == {"a", "c"}
    assert [pod.uid for pod in measuring.reader.pods()] == ["uid-3"]


def ended_on_a(uid, name, **more):
    return Pod(uid, "lab", name, {}, node="a", finished=True, **more)


def sampling(url, uids=()):
    measuring = measuring_of(url, sampled=lambda: set(uids))
    time = [1000.0]
    measuring._places.clock = lambda: time[0]
    return measuring, time


def test_sampled_pods_are_measured_too_and_so_is_who_has_ended_within_the_window(fake):
    measuring, time = sampling(fake.url, {"uid-2"})
    assert [pod.uid for pod in measuring.reader.pods()] == ["uid-1", "uid-2"]
    measuring.take(PodSeen(ended_on_a("uid-1", "one")))
    assert [(pod.uid, pod.finished) for pod in measuring.reader.pods()] == [("uid-2", False), ("uid-1", True)]
    time[0] += 61.0  # the window, and an interval
    assert [pod.uid for pod in measuring.reader.pods()] == ["uid-2", "uid-1"]
    time[0] += 1.0
    assert [pod.uid for pod in measuring.reader.pods()] == ["uid-2"]


def test_who_has_ended_is_not_asked_about_where_another_pod_has_its_name(fake):
    measuring, _ = sampling(fake.url)
    measuring.take(PodSeen(ended_on_a("uid-1", "one")))
    measuring.take(PodSeen(Pod("uid-9", "lab", "one", {}, node="b", opportunistic=True)))
    assert [pod.uid for pod in measuring.reader.pods()] == ["uid-9"]


def test_a_pod_that_is_gone_without_having_ended_may_still_run_and_so_may_one_that_never_had_a_node(fake):
    measuring, _ = sampling(fake.url)
    measuring.take(PodGone("uid-1"))
    measuring.take(PodSeen(Pod("uid-8", "lab", "eight", {}, finished=True)))
    assert measuring.reader.pods() == []


def test_of_those_that_have_ended_only_the_last_are_asked_about(fake):
    measuring, _ = sampling(fake.url)
    for number in range(MOST_ENDED + 1):
        measuring.take(PodSeen(Pod(f"e{number}", "lab", f"e{number}", {}, node="b")))
        measuring.take(PodSeen(ended_on_a(f"e{number}", f"e{number}")))
    ended = [pod.uid for pod in measuring.reader.pods() if pod.finished]
    assert (len(ended), ended[0]) == (MOST_ENDED, "e1")
