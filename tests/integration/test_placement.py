"""A real kube-scheduler places pods through the extender, under the rights that the chart ships."""

import random
import time

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import request
from tests.integration.dovetail import IO, dovetail_on, equal_nodes, mixed_pods, over_allocated


@pytest.fixture
def client(control_plane):
    return control_plane.client()


def place(client, *pods, seconds=15):
    """Create pods and return where each was bound."""
    workload.create_pods(client, pods)
    names = {pod["metadata"]["name"] for pod in pods}
    workload.wait_until(
        lambda: names <= workload.bound_pods(client).keys(), seconds, f"{names} to be bound", every=0.02
    )
    return {name: node for name, node in workload.bound_pods(client).items() if name in names}


def refusal(client, name, seconds=15):
    """Wait until a pod has been refused and return kube-scheduler's message."""

    def message():
        conditions = workload.pod(client, name)["status"].get("conditions", ())
        return next(
            (it["message"] for it in conditions if it["type"] == "PodScheduled" and it["status"] == "False"), ""
        )

    return workload.wait_until(message, seconds, f"{name} to be refused", every=0.02)


def two_shapes(client):
    """Make an empty node with much CPU for its memory, and one the other way round that is half taken."""
    workload.create_nodes(
        client,
        [builders.node("cpu-rich", cpu=32, memory="32Gi"), builders.node("memory-rich", cpu=8, memory="64Gi")],
    )
    request(
        client,
        "PATCH",
        "/api/v1/nodes/cpu-rich",
        {"spec": {"unschedulable": True}},
        content="application/merge-patch+json",
    )
    place(client, builders.pod("filler", cpu=2, memory="24Gi", scheduler_name="dovetail"))
    request(
        client,
        "PATCH",
        "/api/v1/nodes/cpu-rich",
        {"spec": {"unschedulable": None}},
        content="application/merge-patch+json",
    )


def test_alignment_places_a_pod_where_the_default_scorer_would_not(control_plane, client, start_scheduler):
    # A memory-heavy pod: 1 core, 16 GiB. Free: cpu-rich (32 cores, 32 GiB), memory-rich (6 cores, 40 GiB).
    # LeastAllocated after the pod: cpu-rich (31/32 + 16/32) / 2 = 0.73, memory-rich (5/8 + 24/64) / 2 = 0.50: the
    # default takes cpu-rich, the emptier. By shape, in parts of the largest node (32 cores, 64 GiB), the pod is
    # (0.03, 0.25), cpu-rich has (1.0, 0.5) free, memory-rich (0.19, 0.63): memory-rich points the pod's way.
    with dovetail_on(control_plane):
        two_shapes(client)
        start_scheduler()
        stock = place(client, builders.pod("stock", cpu=1, memory="16Gi"))
        request(client, "DELETE", "/api/v1/namespaces/default/pods/stock", gracePeriodSeconds=0)
        workload.wait_until(lambda: "stock" not in workload.bound_pods(client), 10, "the stock pod to go")
        ours = place(client, builders.pod("ours", cpu=1, memory="16Gi", scheduler_name="dovetail"))

    assert stock == {"stock": "cpu-rich"}
    assert ours == {"ours": "memory-rich"}


@pytest.mark.parametrize("whole_nodes", [False, True], ids=["names only", "whole nodes"])
def test_a_full_network_refuses_though_cpu_and_memory_would_fit(control_plane, client, whole_nodes):
    with dovetail_on(control_plane, whole_nodes=whole_nodes) as dovetail:
        workload.create_nodes(
            client,
            [builders.node(name, cpu=16, memory="64Gi", capacity={"network-in": "100M"}) for name in ("full", "half")],
        )
        at = {
            "node": place(client, builders.pod("first", cpu=1, demand={"network-in": "80M"}, scheduler_name="dovetail"))
        }
        second = place(client, builders.pod("second", cpu=1, demand={"network-in": "50M"}, scheduler_name="dovetail"))
        workload.create_pods(
            client, [builders.pod("third", cpu=1, demand={"network-in": "60M"}, scheduler_name="dovetail")]
        )
        message = refusal(client, "third")

        assert set(second.values()).isdisjoint(at["node"].values())
        assert "2 insufficient network-in" in message
        assert "preemption: 0/2 nodes are available: 2 Preemption is not helpful" in message
        assert dovetail.metric("dovetail_refusals_total", reason="insufficient network-in") >= 3
        figures = next(it["short_of"] for it in dovetail.decisions("filter") if it["pod"] == "default/third")
        assert figures == {"network-in": {"asked": 60e6, "most_free": 50e6}}

        request(client, "DELETE", "/api/v1/namespaces/default/pods/second", gracePeriodSeconds=0)
        workload.wait_until(
            lambda: "third" in workload.bound_pods(client), 15, "the third pod to get the freed network"
        )
        assert not over_allocated(client)


@pytest.mark.parametrize("chosen_by", ["filter", "kube-scheduler"])
def test_hundreds_of_pods_at_once_are_all_bound_and_nothing_is_over_allocated(control_plane, client, capsys, chosen_by):
    count = 300
    with dovetail_on(control_plane, chosen_by=chosen_by) as dovetail:
        workload.create_nodes(client, equal_nodes(builders, count // 10))
        pods = mixed_pods(builders, count, random.Random(3))
        started = time.monotonic()
        workload.create_pods(client, pods)
        workload.wait_until(lambda: len(workload.bound_pods(client)) == count, 120, f"{count} pods to be bound")
        seconds = time.monotonic() - started
        over = over_allocated(client)
        dovetail.wait_current()
        used = len(set(workload.bound_pods(client).values()))
        with capsys.disabled():
            print(
                f"\n  {count // 10} nodes, {count} pods: {len(over)} over-allocated dimensions, {used} nodes used, "
                f"{seconds:.1f} s, filter waited {dovetail.metric('dovetail_filter_wait_seconds_sum'):.1f} s in all"
            )

    assert not over


@pytest.mark.parametrize("chosen_by", ["filter", "kube-scheduler"])
def test_pods_of_the_same_instant_do_not_over_allocate_the_node_that_suits_them_all(control_plane, client, chosen_by):
    # Ten nodes with room for two of these each, twenty pods at once: the watch is always behind kube-scheduler.
    with dovetail_on(control_plane, chosen_by=chosen_by):
        workload.create_nodes(client, equal_nodes(builders, 10))
        pods = [
            builders.pod(f"pod-{n}", cpu="10m", demand={"network-in": 500}, scheduler_name="dovetail")
            for n in range(20)
        ]
        bound = place(client, *pods, seconds=60)

        assert not over_allocated(client)
        assert sorted(list(bound.values()).count(f"node-{n:03d}") for n in range(10)) == [2] * 10


def test_broken_annotations_leave_pod_and_node_working_and_are_reported_as_events(control_plane, client):
    with dovetail_on(control_plane) as dovetail:
        workload.create_nodes(client, [builders.node("node", cpu=4, memory="8Gi")])
        path = "/api/v1/nodes/node"
        told = {"metadata": {"annotations": {"dovetail.dev/capacity": '{"network": 3}'}}}
        request(client, "PATCH", path, told, content="application/merge-patch+json")
        broken = builders.pod("broken", cpu=1, scheduler_name="dovetail", annotations={"dovetail.dev/demand": "a lot"})
        assert place(client, broken) == {"broken": "node"}

        def messages():
            found = request(client, "GET", "/api/v1/namespaces/default/events")["items"]
            ours = {it["involvedObject"]["name"]: it for it in found if it["reason"] == "BrokenAnnotation"}
            return ours if {"broken", "node"} <= ours.keys() else None

        events = workload.wait_until(messages, 30, "both events")
        assert {it["type"] for it in events.values()} == {"Warning"}
        assert "dovetail.dev/demand" in events["broken"]["message"]
        assert "the pod's requests and its other annotations count" in events["broken"]["message"]
        assert "'network' is not a dimension; accepted: disk-read" in events["node"]["message"]
        assert dovetail.metric("dovetail_broken_annotations_total", kind="Pod") >= 1


def test_an_extended_resource_counts_like_any_dimension(control_plane, client):
    with dovetail_on(control_plane) as dovetail:
        workload.create_nodes(client, [builders.node("gpu", cpu=8, memory="8Gi", extended={"example.com/gpu": 2})])
        pod = builders.pod("pod", cpu=1, extended={"example.com/gpu": 2}, scheduler_name="dovetail")
        place(client, pod)
        workload.wait_until(
            lambda: dovetail.metric("dovetail_allocated", dimension="example.com/gpu") == 2,
            10,
            "two GPUs to be counted",
        )
        asked = {"Pod": {**pod, "metadata": {**pod["metadata"], "uid": "x"}}, "NodeNames": ["gpu"]}
        assert dovetail.call("filter", asked)[1]["FailedAndUnresolvableNodes"] == {
            "gpu": "insufficient example.com/gpu"
        }


def test_allocation_follows_kubernetes_rules_on_real_pods(control_plane, client):
    with dovetail_on(control_plane) as dovetail:
        workload.create_nodes(client, [builders.node("node", cpu=16, memory="16Gi", capacity=dict.fromkeys(IO, 1000))])
        # Init 3 beside sidecar 1 = 4 against main 1 + sidecar 1 = 2: the larger, 4 cores.
        sidecar = builders.container("side", cpu=1, restart_policy="Always")
        init = builders.container("init", cpu=3)
        place(
            client,
            builders.pod("init", cpu=1, scheduler_name="dovetail", spec={"initContainers": [sidecar, init]}),
            builders.pod("grows", cpu=1, memory="1Gi", scheduler_name="dovetail"),
            builders.pod("ends", cpu=5, duration=1, scheduler_name="dovetail"),
        )
        workload.wait_until(lambda: workload.phases(client)["ends"] == "Succeeded", 15, "the short pod to end")
        workload.wait_until(lambda: dovetail.allocated()["cpu"] == 5, 10, "4 + 1 cores, the ended pod freed")
        workload.resize(client, "grows", cpu="3")
        workload.wait_until(lambda: dovetail.allocated()["cpu"] == 7, 10, "4 + 3 cores after the resize")
