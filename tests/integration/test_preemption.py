"""A real kube-scheduler preempts: pods are evicted only where that makes room in every dimension."""

import time

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import request
from tests.integration.dovetail import dovetail_on, over_allocated
from tests.integration.test_placement import place, refusal

pytestmark = pytest.mark.usefixtures("priorities")


@pytest.fixture
def client(control_plane):
    return control_plane.client()


def node(name):
    return builders.node(name, cpu=4, memory="16Gi", capacity={"disk-read": 1000})


def pod(name, *, disk=0, priority=None, cpu=2, on=None, **spec):
    if priority:
        spec["priorityClassName"] = priority
    if on:
        spec["nodeSelector"] = {"kubernetes.io/hostname": on}
    return builders.pod(name, cpu=cpu, demand={"disk-read": disk}, scheduler_name="dovetail", spec=spec)


def names(client):
    return {it["metadata"]["name"] for it in workload.pods(client)}


def calls(dovetail):
    """Return how many calls of each verb were answered."""
    count = "dovetail_request_duration_seconds_count"
    return [dovetail.metric(count, verb=verb) for verb in ("filter", "preempt")]


@pytest.mark.parametrize(
    ("options", "evicted"),
    [({}, {"curable"}), ({"whole_nodes": True}, {"curable"}), ({"preempt": False}, {"futile", "curable"})],
    ids=["names only", "whole nodes", "without the verb"],
)
def test_only_pods_whose_eviction_makes_room_are_evicted(control_plane, client, options, evicted):
    # Both nodes are full by CPU. On `wrong` the disk is held by a pod that may not be evicted; on `right` by one that
    # may. kube-scheduler prefers the victim of lower priority, which is the one on `wrong`.
    with dovetail_on(control_plane, **options) as dovetail:
        workload.create_nodes(client, [node("wrong"), node("right")])
        place(
            client,
            pod("keeps-disk", disk=900, priority="high", on="wrong"),
            pod("futile", on="wrong"),
            pod("keeps-cpu", priority="high", on="right"),
            pod("curable", disk=900, priority="middle", on="right"),
        )
        before = names(client)
        bound = place(client, pod("preemptor", disk=500, priority="high"))

        assert bound == {"preemptor": "right"}
        assert before - names(client) == evicted
        assert not over_allocated(client)
        if options.get("preempt", True):
            assert calls(dovetail)[1] == 1


def test_where_no_eviction_helps_nobody_is_evicted_and_the_pod_waits_without_a_hot_loop(control_plane, client):
    with dovetail_on(control_plane) as dovetail:
        where = [f"node-{number}" for number in range(6)]
        workload.create_nodes(client, map(node, where))
        place(
            client,
            *(pod(f"keeps-disk-{name}", disk=900, priority="high", on=name) for name in where),
            *(pod(f"futile-{name}", on=name) for name in where),
        )
        before = names(client)
        workload.create_pods(client, [pod("preemptor", disk=500, priority="high")])
        assert "no candidate node for preemption" in refusal(client, "preemptor")
        time.sleep(1)
        asked = calls(dovetail)
        time.sleep(5)

        assert calls(dovetail) == asked
        assert asked[1] <= 3
        assert names(client) == before | {"preemptor"}

        request(client, "DELETE", "/api/v1/namespaces/default/pods/keeps-disk-node-3", gracePeriodSeconds=0)
        workload.wait_until(lambda: "preemptor" in workload.bound_pods(client), 15, "the freed room to be used")


def test_where_only_disk_is_short_the_pod_waits_without_a_hot_loop_and_nobody_is_evicted(control_plane, client):
    # By CPU and memory the pod fits everywhere, so kube-scheduler would find no victim whatever we said.
    with dovetail_on(control_plane) as dovetail:
        where = [f"node-{number}" for number in range(20)]
        workload.create_nodes(client, map(node, where))
        place(client, *(pod(f"low-{name}", disk=900, on=name) for name in where))
        before = names(client)
        started = calls(dovetail)[0]
        workload.create_pods(client, [pod("preemptor", disk=500, priority="high")])
        assert "20 insufficient disk-read" in refusal(client, "preemptor")
        time.sleep(5)

        assert calls(dovetail)[0] - started <= 3
        assert names(client) == before | {"preemptor"}


def test_a_pod_whose_victims_take_their_time_evicts_nobody_elsewhere_meanwhile(control_plane, client):
    # `slow` is evicted from x and does not go yet. Room by CPU appears there: kube-scheduler asks about x again, and we
    # refuse it for its disk. Were that unresolvable, kube-scheduler would evict `spared` from y.
    with dovetail_on(control_plane) as dovetail:
        workload.create_nodes(client, [node("x"), node("y")])
        slow = pod("slow", disk=900, on="x")
        slow["metadata"]["finalizers"] = ["example.com/slow"]
        place(
            client,
            slow,
            pod("ends", priority="high", on="x"),
            pod("spared", disk=900, priority="middle", on="y"),
            pod("stays", priority="high", on="y"),
        )
        workload.create_pods(client, [pod("preemptor", disk=500, priority="high")])
        workload.wait_until(lambda: "deletionTimestamp" in workload.pod(client, "slow")["metadata"], 10, "an eviction")
        nominated = workload.wait_until(
            lambda: workload.pod(client, "preemptor")["status"].get("nominatedNodeName"), 10, "a nomination"
        )
        assert nominated == "x"
        request(client, "DELETE", "/api/v1/namespaces/default/pods/ends", gracePeriodSeconds=0)
        asked = calls(dovetail)
        time.sleep(4)

        now, left = calls(dovetail), names(client)
        path = "/api/v1/namespaces/default/pods/slow"
        request(client, "PATCH", path, {"metadata": {"finalizers": None}}, content="application/merge-patch+json")

        assert 1 <= now[0] - asked[0] <= 4
        assert now[1] == asked[1] == 1
        assert {"slow", "spared"} <= left
        workload.wait_until(lambda: workload.bound_pods(client).get("preemptor") == "x", 15, "the room to be used")


def test_pods_that_preempt_at_the_same_time_do_not_count_on_the_same_room(control_plane, client):
    # On each node two pods with 300 of disk: once one of them is gone, there is room for one of 600; never for two.
    with dovetail_on(control_plane):
        where = [f"node-{number:02d}" for number in range(30)]
        workload.create_nodes(client, map(node, where))
        place(client, *(pod(f"low-{n}-{name}", disk=300, on=name) for name in where for n in range(2)), seconds=60)
        control_plane.kill("second-scheduler")
        workload.create_pods(client, [pod(f"preemptor-{n:02d}", disk=600, priority="high") for n in range(60)])
        control_plane.start("second-scheduler")

        def bound(prefix):
            return [name for name in workload.bound_pods(client) if name.startswith(prefix)]

        workload.wait_until(lambda: len(bound("preemptor")) == 30, 30, "a preemptor on each node")
        time.sleep(2)
        assert len(bound("low")) == len(bound("preemptor")) == 30
        assert not over_allocated(client)
