"""Pods on idle room as `control` is wired: a pod's Job is asked how many evictions it bears."""

import io
import threading
import time

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from extender.adapters.kube.api import Refused
from extender.adapters.kube.autoscalers import HORIZONTAL, VERTICAL, Autoscalers
from extender.app.measuring import Measuring
from extender.app.on_idle_room import Reporting, on_idle_room, version_of, way_back
from extender.cluster.events import NamespaceSeen, NodeSeen, PodSeen
from extender.cluster.usage import Sample, Usage
from extender.control.eviction_requests import EvictionRequests
from extender.control.opportunistic.resizing import NotEligible
from extender.control.preemption.overload import Pressure
from extender.settings import parse
from tests.service.control.opportunistic import pods
from tests.service.control.scene import Scene, node
from tests.service.control.scene import pod as waiting

HEAD = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"}


class Server:
    """Pods by name, and one Job, None where it is gone."""

    def __init__(self, job, *names):
        self.job, self.pods = job, {name: pods.pod() for name in names}
        self.replica_set, self.lists, self.listed = {}, {HORIZONTAL: [], VERTICAL: None}, 0
        for name, found in self.pods.items():
            found["metadata"] |= {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}

    def check_version(self):
        return "v1.36.3"

    def apart(self, seconds):
        return self

    def get(self, path, params=()):
        self.listed += 1
        found = self.lists[path]
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise Refused("no such kind", 404)
        return io.BytesIO(msgspec.json.encode({"metadata": {}, "items": found}))

    def read(self, path):
        if "/replicasets/" in path:
            return self.replica_set
        if "/jobs/" in path:
            assert path == "/apis/batch/v1/namespaces/default/jobs/o"
            if self.job is None:
                raise Refused("not found", 404)
            return self.job
        return self.pods[path.split("/")[6]]

    def patch(self, path, body, content):
        name = path.split("/")[6]
        self.pods[name] = pods.patched(self.pods[name], body)


def wired(job, *names, enabled=True, registry=None, **wanted):
    """Return the parts, on a backlog with these pods of the Job, each of which is claimed for a write."""
    scene, server, registry = Scene(), Server(job, *names), registry or CollectorRegistry()
    settings = parse({**HEAD, "usage": {"url": "http://x"}, "opportunistic": {"enabled": enabled, **wanted}})
    for name in names:
        scene.apply(PodSeen(waiting(name, owner="uid-o", owner_kind="Job", owner_name="o", job="j")))
        scene.backlog.claim(f"uid-{name}", scene.now + 15)
    measuring = Measuring(settings, server, registry)
    requests = EvictionRequests(scene.cluster, None)
    scene.said = []
    reporting = Reporting(CollectorRegistry(), lambda *event: scene.said.append(event))
    return scene, on_idle_room(settings, server, scene.cluster, measuring, requests, reporting)


@pytest.mark.parametrize("ahead", [-10_000.0, 10_000.0])
def test_what_the_reader_holds_for_fresh_counts_however_far_our_clock_is_from_the_wall_clock(monkeypatch, ahead):
    use, begun = {"cpu": 100.0, "memory": 100.0}, Scene().now
    sample = Sample(use, begun - ahead - 30, begun - ahead)
    monkeypatch.setattr(Measuring, "usage", lambda _: Usage({"a": sample}, {"a": sample}))
    scene, parts = wired(None)
    scene.apply(NodeSeen(node("a")))
    assert parts.second_pass.room(scene.cluster.snapshot())[0, 0] > 0


def outcome(scene, parts, name):
    try:
        parts.resizer.demote(scene.backlog.pod(f"uid-{name}"), 2**30)
    except NotEligible as refusal:
        return refusal.reason.name
    return "done"


def test_nothing_runs_on_idle_room_unless_settings_say_so():
    assert wired({}, enabled=False)[1] is None


def test_switched_off_requests_are_brought_back_and_none_taken_away():
    scene, parts = wired({"spec": {"backoffLimit": 9}}, "a", "b")
    assert outcome(scene, parts, "a") == "done"
    server = parts.resizer.pods.api
    resizer = way_back(server)
    assert resizer.pods.read(waiting("a"))["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "0",
        "memory": "0",
    }
    resizer.restore(waiting("a"))
    assert server.pods["a"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "4Gi"}
    with pytest.raises(NotEligible):
        resizer.demote(waiting("b"), 2**30)


@pytest.mark.parametrize(
    ("wanted", "limit"),
    [
        ({}, None),
        ({"evictBy": "pressure"}, Pressure(0.1, 0.8)),
        ({"evictBy": "pressure", "evictAtPressure": 0.05, "threshold": 0.7}, Pressure(0.05, 0.7)),
    ],
)
def test_evictions_for_cpu_go_by_use_or_by_pressure_down_to_the_threshold_as_settings_say(wanted, limit):
    _, parts = wired({}, **wanted)
    assert parts.preemptor._terms.limits.pressure == limit


def test_of_a_job_only_as_many_are_exposed_as_its_limit_leaves_though_none_shows_yet():
    # backoffLimit 3, one is kept: two.
    scene, parts = wired({"spec": {"backoffLimit": 3}}, "a", "b", "c")
    assert [outcome(scene, parts, name) for name in "abc"] == ["done", "done", "NO_EVICTION_LEFT"]


def test_a_job_that_ignores_disruptions_bears_any_number():
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    scene, parts = wired({"spec": {"backoffLimit": 0, "podFailurePolicy": {"rules": [rule]}}}, "a", "b", "c")
    assert [outcome(scene, parts, name) for name in "abc"] == ["done"] * 3


def test_a_pod_whose_job_is_gone_stays_regular():
    scene, parts = wired(None, "a")
    assert outcome(scene, parts, "a") == "NO_EVICTION_LEFT"


def test_who_is_refused_leaves_its_place_to_another():
    scene, parts = wired({"spec": {"backoffLimit": 2}}, "a", "b")
    server = parts.resizer.pods.api
    server.pods["a"]["spec"]["os"] = {"name": "windows"}
    assert [outcome(scene, parts, name) for name in "ab"] == ["WINDOWS", "done"]
    ((pod, reason, message),) = scene.said
    assert (pod.name, reason) == ("a", "StaysRegular")
    assert message == "it runs on Windows, where there is no resize"


@pytest.mark.parametrize(
    ("label", "said"), [("allowed", "done"), (None, "NOT_RUN_TO_COMPLETION"), ("never", "OPTED_OUT")]
)
def test_a_pod_without_a_job_goes_by_the_label_of_its_namespace(label, said):
    scene, parts = wired({}, "a")
    server = parts.resizer.pods.api
    server.pods["a"]["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    scene.apply(PodSeen(waiting("a", owner="uid-o", owner_kind="StatefulSet", owner_name="o", version=2)))
    scene.apply(NamespaceSeen("default", {} if label is None else {"dovetail.dev/opportunistic": label}))
    assert outcome(scene, parts, "a") == said


def autoscaler(kind, name, *, namespace="default", vertical=False, mode=None):
    spec = {"targetRef" if vertical else "scaleTargetRef": {"kind": kind, "name": name}}
    return {
        "metadata": {"namespace": namespace},
        "spec": spec | ({"updatePolicy": {"updateMode": mode}} if mode else {}),
    }


def of_owner(kind, above=("", "")):
    """Return what is wired, with one pod that may be opportunistic, of an owner that another one owns."""
    ignored = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    job = {"spec": {"podFailurePolicy": {"rules": ignored}}}
    scene, parts = wired(job, "a")
    server = parts.resizer.pods.api
    owner = {"metadata": {"ownerReferences": [{"kind": above[0], "name": above[1], "controller": True}]}}
    server.job, server.replica_set = {**job, **owner}, owner
    server.pods["a"]["metadata"]["annotations"]["dovetail.dev/opportunistic"] = "allowed"
    server.pods["a"]["metadata"]["ownerReferences"][0]["kind"] = kind
    scene.apply(PodSeen(waiting("a", owner="uid-o", owner_kind=kind, owner_name="o", version=2, choice="allowed")))
    return scene, parts, server


@pytest.mark.parametrize(
    ("kind", "above", "path", "found", "said"),
    [
        ("StatefulSet", ("", ""), HORIZONTAL, autoscaler("StatefulSet", "o"), "AUTOSCALED"),
        ("StatefulSet", ("", ""), HORIZONTAL, autoscaler("StatefulSet", "other"), "done"),
        ("StatefulSet", ("", ""), HORIZONTAL, autoscaler("StatefulSet", "o", namespace="other"), "done"),
        ("ReplicaSet", ("Deployment", "d"), HORIZONTAL, autoscaler("Deployment", "d"), "AUTOSCALED"),
        ("ReplicaSet", ("Deployment", "d"), VERTICAL, autoscaler("Deployment", "d", vertical=True), "AUTOSCALED"),
        ("ReplicaSet", ("Deployment", "d"), VERTICAL, autoscaler("Deployment", "d", vertical=True, mode="Off"), "done"),
        ("Job", ("CronJob", "c"), VERTICAL, autoscaler("CronJob", "c", vertical=True, mode="Initial"), "AUTOSCALED"),
        ("Job", ("CronJob", "c"), VERTICAL, autoscaler("Deployment", "c", vertical=True), "done"),
    ],
)
def test_a_pod_whose_owner_an_autoscaler_sizes_stays_regular(kind, above, path, found, said):
    scene, parts, server = of_owner(kind, above)
    server.lists[path] = [found]
    assert outcome(scene, parts, "a") == said


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("path", [HORIZONTAL, VERTICAL])
def test_where_autoscalers_cannot_be_read_no_pod_is_made_opportunistic(path, status):
    scene, parts, server = of_owner("Job")
    server.lists[path] = Refused("autoscalers are forbidden", status)
    with pytest.raises(Refused):
        parts.resizer.demote(scene.backlog.pod("uid-a"), 2**30)
    assert server.pods["a"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "4Gi"}
    assert [reason for _, reason, _ in scene.said] == (["StaysRegular"] if status == 403 else [])


def test_autoscalers_are_listed_once_in_half_a_minute():
    now, server = [100.0], Server({})
    server.lists[HORIZONTAL] = [autoscaler("Deployment", "d")]
    autoscalers = Autoscalers(server, clock=lambda: now[0])
    for _ in range(9):
        assert autoscalers.any_of("default", [("Deployment", "d")])
    assert server.listed == 2
    server.lists[HORIZONTAL], now[0] = [], 130.0
    assert not autoscalers.any_of("default", [("Deployment", "d")])
    assert server.listed == 4


def test_a_list_of_autoscalers_that_may_be_from_before_a_pod_was_created_says_nothing_of_it():
    # Creation times are in whole seconds: a pod of second 100 may have been created just before 101.
    now, server = [100.5], Server({})
    autoscalers = Autoscalers(server, clock=lambda: now[0])
    assert not autoscalers.any_of("default", [("Deployment", "d")])
    server.lists[HORIZONTAL], now[0] = [autoscaler("Deployment", "d")], 105.0
    assert not autoscalers.any_of("default", [("Deployment", "d")], since=99.0)
    assert autoscalers.any_of("default", [("Deployment", "d")], since=100.0)
    assert server.listed == 4


def test_who_waits_for_a_list_that_began_after_it_asked_takes_that_one_and_a_clock_set_back_keeps_no_old_one():
    now, server = [100.0], Server({})
    autoscalers = Autoscalers(server, clock=lambda: now[0])
    asking = [threading.Thread(target=autoscalers.any_of, args=("default", [], 100.0)) for _ in range(9)]
    with autoscalers._lock:
        for thread in asking:
            thread.start()
        time.sleep(0.2)  # all wait for the lock
    for thread in asking:
        thread.join()
    assert server.listed == 2
    now[0] = 50.0
    autoscalers.any_of("default", [("Deployment", "d")])
    assert server.listed == 4


@pytest.mark.parametrize("status", [403, 500])
def test_a_job_that_cannot_be_read_is_no_job_that_is_gone(status):
    scene, parts = wired({}, "a")
    parts.resizer.pods.api.read = _refusing(parts.resizer.pods.api.read, status)
    with pytest.raises(Refused):
        parts.resizer.demote(scene.backlog.pod("uid-a"), 2**30)


def _refusing(read, status):
    def answer(path):
        if "/jobs/" in path:
            raise Refused("no", status)
        return read(path)

    return answer


@pytest.mark.parametrize(("text", "version"), [("v1.36.3", (1, 36)), ("v1.34.4+rke2r1", (1, 34))])
def test_the_version_of_the_api_server_is_read_from_its_name(text, version):
    assert version_of(text) == version
