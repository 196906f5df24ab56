"""Waiting a little for room near the input: with gates, with `order: filter`, and with `auto` without its policy."""

import json
import re
import time
import urllib.request

import pytest
import yaml

from extender.cluster.model import PROMISED_ANNOTATION
from lab.controlplane import builders, workload
from lab.controlplane.rest import request
from tests.integration.dovetail import control_on, dovetail_on, scheduler_configuration
from tests.integration.test_order_by_filter import ordered, where_nothing_gates_pods
from tests.integration.test_placement import refusal
from tests.integration.test_seeing import asked, configured, dovetail, events, metric

RACK = "topology.example/rack"
WAITS = (5, 4)
LOCALITY = {"levels": [RACK], "waitSeconds": list(WAITS)}
LONG = (12, 6)
WAITING = "waits for node-local room: 1 preferred node, full; rack level from 12 s on"


@pytest.fixture
def client(control_plane):
    """Return a client; there are two nodes on rack a, one on rack b, of 16 cores each."""
    found = control_plane.client()
    racks = {"near": "a", "beside": "a", "far": "b"}
    nodes = [builders.node(name, cpu=16, memory="64Gi", labels={RACK: rack}) for name, rack in racks.items()]
    workload.create_nodes(found, nodes)
    return found


def fill(client, *names):
    """Fill these nodes with a pod each, bound by itself."""
    fillers = [builders.pod(f"fills-{it}", cpu=16, memory="1Gi", spec={"nodeName": it}) for it in names]
    workload.create_pods(client, fillers)


def reader(name, node, *, gates=("dovetail.dev/hold",), **more):
    """Return a pod of a whole node whose input is on `node`."""
    return builders.pod(
        name,
        cpu=16,
        memory="1Gi",
        scheduler_name="dovetail",
        annotations={"dovetail.dev/input": json.dumps({node: "1Gi"})},
        spec={"schedulingGates": [{"name": gate} for gate in gates]},
        **more,
    )


def bound_within(client, name, seconds):
    """Return the node of a pod, and after how many seconds it was there."""
    begun = time.monotonic()
    workload.wait_until(lambda: name in workload.bound_pods(client), seconds, f"{name} to be bound")
    return workload.bound_pods(client)[name], time.monotonic() - begun


def test_a_held_pod_waits_by_level_is_explained_and_then_takes_what_there_is(control_plane, client):
    # Nothing ends here, so that no rate is known, and the stated waits hold.
    told = {"locality": {**LOCALITY, "waitSeconds": LONG, "target": 0.95}, "control": {"heldEventSeconds": 1}}
    explained = ("explain", "pod", "default/waits")
    with dovetail_on(control_plane) as extender:
        maps = {
            "dovetail": {
                "dovetail.yaml": yaml.safe_dump(
                    {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration", **told}
                )
            },
            "dovetail-kube-scheduler": {"kube-scheduler.yaml": yaml.safe_dump(scheduler_configuration(extender.url))},
        }
        fill(client, "near", "beside")
        with control_on(control_plane, **told) as url, configured(client, maps):
            created = time.monotonic()
            workload.create_pods(client, [reader("waits", "near")])
            begun = time.monotonic()
            workload.wait_until(lambda: metric(url, "dovetail_held_pods", reason="locality") == 1, 5, "it to wait")
            seen = time.monotonic()
            found = asked(control_plane, *explained)
            assert found["reason"] == {"kind": "locality", "text": WAITING}
            assert found["preferred"] == ["near"]
            assert found["wait"] is None
            assert "only control knows (no pod of it runs" in found["change"][-2]
            assert "computed by control for locality.target" in found["change"][-1]
            assert {it["name"]: it["level"] for it in found["nodes"]} == {
                "near": "node",
                "beside": "rack",
                "far": "anywhere",
            }

            asked_at = time.monotonic()
            text = dovetail(control_plane, *explained, f"--control={url}")
            answered = time.monotonic()
            print(text)
            assert f"{WAITING} (locality)" in " ".join(text.split())
            assert "only control knows" not in text
            said = re.search(
                r"Its wait +rack level in (\d+) s \(its job has been passed over for ([\d.]+) of 12 s\)", text
            )
            left, passed = map(float, said.groups())
            assert abs(left + passed - LONG[0]) <= 1  # each is rounded
            assert asked_at - seen - 0.5 <= passed <= answered - created + 0.5

            time.sleep(max(begun + LONG[0] + 1.5 - time.monotonic(), 0))  # control counts from plan to plan
            found = asked(control_plane, *explained, f"--control={url}")
            assert (
                found["reason"]["text"]
                == "waits for rack-local room: 2 preferred nodes, all full; anywhere from 18 s on"
            )
            assert (found["wait"]["beyond"], found["wait"]["stays"]) == ("anywhere", True)
            assert LONG[0] <= found["wait"]["passed"] <= sum(LONG)

            node, _ = bound_within(client, "waits", 25)
            took = time.monotonic() - begun
            assert node == "far"
            assert took >= sum(LONG) - 1.0  # it was created before `begun`, by less than that
            workload.wait_until(lambda: len(events(client, "waits")) == 2, 10, "its events")
            (held, told_held), (released, told_released) = sorted(events(client, "waits"))
            assert (held, told_held) == ("Held", WAITING)
            assert released == "Released"
            assert told_released.startswith("released to far (not near its input), after ")
            assert metric(url, "dovetail_placements_total", level="anywhere") == 1
            assert metric(url, "dovetail_held_pods", reason="locality") == 0

            workload.create_pods(client, [reader("later", "near")])
            workload.wait_until(lambda: metric(url, "dovetail_held_pods", reason="no-room") == 1, 5, "it to wait")
            request(client, "DELETE", "/api/v1/namespaces/default/pods/fills-beside", gracePeriodSeconds="0")
            request(client, "DELETE", "/api/v1/namespaces/default/pods/fills-near", gracePeriodSeconds="0")
            node, took = bound_within(client, "later", 4)
            assert (node, metric(url, "dovetail_placements_total", level="node")) == ("near", 1)
            text = dovetail(control_plane, "explain", "pod", "default/later")
            print(text)
            assert "on near; it runs node-local" in text


def test_a_release_that_a_new_leader_completes_is_counted_by_how_near_its_node_is(control_plane, client):
    with dovetail_on(control_plane):
        workload.create_pods(client, [reader("left", "near")])
        # As a leader leaves it that died between its two writes.
        promise = {
            "metadata": {"annotations": {PROMISED_ANNOTATION: "beside"}},
            "status": {"nominatedNodeName": "beside"},
        }
        path = "/api/v1/namespaces/default/pods/left/status"
        request(client, "PATCH", path, promise, content="application/merge-patch+json")
        with control_on(control_plane, locality=LOCALITY) as url:
            assert bound_within(client, "left", 25)[0] == "beside"
            workload.wait_until(lambda: metric(url, "dovetail_placements_total", level="rack") == 1, 5, "it to count")
            assert metric(url, "dovetail_releases_total", how="completed") == 1
            assert metric(url, "dovetail_placements_total") == 1
            with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
                assert "dovetail_locality_wait_seconds_count 0.0" in answer.read().decode()


@where_nothing_gates_pods
def test_filter_refuses_while_a_pod_waits_and_control_wakes_it_when_that_is_over(control_plane, client, order):
    fill(client, "near", "beside")
    with ordered(control_plane, order=order, locality=LOCALITY) as extender:
        workload.create_pods(client, [reader("waits", "near", gates=())])
        assert "waits for room near its input" in refusal(client, "waits")
        node, took = bound_within(client, "waits", 25)
        assert node == "far"
        assert sum(WAITS) - 2.0 <= took <= sum(WAITS) + 4.0
        assert extender.metric("dovetail_placements_total", level="anywhere") == 1


def test_without_control_a_wait_ends_at_the_next_event_of_the_cluster(control_plane, client):
    fill(client, "near", "beside")
    with ordered(control_plane, control=False, locality=LOCALITY):
        workload.create_pods(client, [reader("waits", "near", gates=())])
        assert "waits for room near its input" in refusal(client, "waits")
        time.sleep(sum(WAITS) + 2)
        assert "waits" not in workload.bound_pods(client)  # nobody asks about it
        labels = {"metadata": {"labels": {"example/changed": "yes"}}}
        request(client, "PATCH", "/api/v1/nodes/far", labels, content="application/merge-patch+json")
        node, _ = bound_within(client, "waits", 10)
        assert node == "far"


@pytest.mark.parametrize("wait", [20, None], ids=["waits", "no waits"])
def test_a_pod_goes_to_its_node_though_kube_scheduler_asks_about_a_sample_if_it_may_wait(control_plane, tell, wait):
    # Of 250 nodes kube-scheduler asks about 100, its least, and begins each time where it stopped.
    client, count = control_plane.client(), 15
    workload.create_nodes(client, [builders.node(f"node-{n:03}", cpu=16, memory="64Gi") for n in range(250)])
    locality = {"waitSeconds": [wait]} if wait else {}
    with ordered(control_plane, percentage=5, locality=locality) as extender:
        names = {f"reads-{n:02}": f"node-{n * 16:03}" for n in range(count)}
        begun = time.monotonic()
        workload.create_pods(client, [reader(name, node, gates=()) for name, node in names.items()])
        workload.wait_until(lambda: len(workload.bound_pods(client)) == count, 60, "all to be bound")
        took = time.monotonic() - begun
        bound = workload.bound_pods(client)
        near = sum(bound[name] == node for name, node in names.items())
        calls = extender.metric("dovetail_filter_nodes_count")
        asked_about = extender.metric("dovetail_filter_nodes_sum") / calls
        told = "waits of 20 s" if wait else "no waits"
        tell(f"{told}: {near} of {count} at their nodes after {took:.1f} s, {calls / count:.1f} calls a pod")
        assert asked_about <= 100
        assert extender.metric("dovetail_placements_total", level="node") == near
        far = extender.metric("dovetail_placements_total", level="anywhere")
        assert (near, far) == (count, 0) if wait else near + far == count


@where_nothing_gates_pods
def test_a_pod_whose_node_kube_scheduler_never_offers_goes_elsewhere_after_its_waits(
    control_plane, client, order, tell
):
    # `guards` wants no readers beside it, which the plan knows nothing of: it has room for one there.
    apart = {"labelSelector": {"matchLabels": {"app": "reads"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    spec = {"nodeName": "near", "affinity": affinity}
    workload.create_pods(client, [builders.pod("guards", cpu=0, memory="1Mi", spec=spec)])
    with ordered(control_plane, order=order, locality={"levels": [RACK], "waitSeconds": [2, 2]}):
        workload.create_pods(client, [reader("waits", "near", gates=(), labels={"app": "reads"})])
        assert "waits for room near its input" in refusal(client, "waits")
        node, took = bound_within(client, "waits", 25)
        tell(f"bound {took:.1f} s after its first refusal, by waits of 2 and 2 s")
        assert node == "beside"  # in its rack
        assert 1.0 <= took <= 20.0


def test_a_pod_that_nobody_holds_is_ranked_to_the_node_of_its_input(control_plane, client):
    names = [f"reads-{number}" for number in range(6)]
    with dovetail_on(control_plane):
        for number, name in enumerate(names):
            pod = reader(name, ("near", "beside", "far")[number % 3], gates=())
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
            workload.create_pods(client, [pod])
            bound_within(client, name, 15)
    assert workload.bound_pods(client) == dict(zip(names, ("near", "beside", "far") * 2, strict=True))
