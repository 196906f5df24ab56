"""`dovetail control` on a real control plane: held pods go in their turn, to the node that the plan chose."""

import time
from collections import Counter
from urllib.request import urlopen

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.requests import writes_to_pods
from lab.controlplane.rest import request
from lab.controlplane.running import ADMIN
from tests.integration.dovetail import BY_ORDER, control_on, dovetail_on, equal_nodes, over_allocated

HOLD = "dovetail.dev/hold"


@pytest.fixture
def client(control_plane):
    return control_plane.client()


def held(name, *, gates=(HOLD,), queue=None, priority=None, on=None, **more):
    spec = {"schedulingGates": [{"name": gate} for gate in gates]} if gates else {}
    spec |= {"priorityClassName": priority} if priority else {}
    spec |= {"nodeSelector": {"kubernetes.io/hostname": on}} if on else {}
    labels = {"dovetail.dev/queue": queue, **more.pop("labels", {})} if queue else more.pop("labels", {})
    return builders.pod(name, **{"cpu": 1, "scheduler_name": "dovetail", **more}, labels=labels, spec=spec)


def bound(client, count, seconds=30):
    return workload.wait_until(
        lambda: found if len(found := workload.bound_pods(client)) >= count else None, seconds, f"{count} bound pods"
    )


def test_held_pods_are_bound_where_the_plan_nominated_them(control_plane, client):
    with dovetail_on(control_plane), control_on(control_plane):
        workload.create_nodes(client, equal_nodes(builders, 4))
        workload.create_pods(client, [held(f"pod-{n}", demand={"network-in": 300}) for n in range(12)])
        bound(client, 12)

        for it in workload.pods(client):
            assert it["metadata"]["annotations"]["dovetail.dev/nominated"] == it["spec"]["nodeName"]
            assert "schedulingGates" not in it["spec"]
        assert not over_allocated(client)


def test_with_gates_pods_that_surely_find_room_cost_one_write_and_get_no_nomination(control_plane, client):
    with dovetail_on(control_plane, settings={"order": "gates"}), control_on(control_plane, order="gates") as control:
        workload.create_nodes(client, equal_nodes(builders, 4))
        before = writes_to_pods(client)
        # 28 pods of one core fit into half of 64; one that may use a single node needs more than half of that.
        workload.create_pods(client, [held(f"small-{n}", demand={"network-in": 30}) for n in range(28)])
        nodes = Counter(bound(client, 28).values())
        written = writes_to_pods(client) - before
        node = min((f"node-{n:03d}" for n in range(4)), key=nodes.__getitem__)
        workload.create_pods(client, [held("large", cpu=16 - nodes[node], on=node)])
        bound(client, 29)

        nominated = [it for it in workload.pods(client) if "dovetail.dev/nominated" in it["metadata"]["annotations"]]
        assert [it["metadata"]["name"] for it in nominated] == ["large"]
        assert written["PATCH pods"] == 28
        with urlopen(f"{control}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        assert 'dovetail_releases_total{how="room-for-all"} 28.0' in text
        assert 'dovetail_releases_total{how="nominated"} 1.0' in text
        assert not over_allocated(client)


def test_a_pod_that_is_not_held_is_not_touched_and_gates_of_others_are_waited_for(control_plane, client):
    with dovetail_on(control_plane), control_on(control_plane):
        workload.create_nodes(client, equal_nodes(builders, 1))
        workload.create_pods(client, [held("free", gates=()), held("both", gates=(HOLD, "example.com/admission"))])
        bound(client, 1)
        time.sleep(1)
        assert workload.bound_pods(client).keys() == {"free"}
        assert "dovetail.dev/nominated" not in workload.pod(client, "free")["metadata"].get("annotations", {})

        gates = {"spec": {"schedulingGates": [{"name": HOLD}]}}
        path = "/api/v1/namespaces/default/pods/both"
        request(client, "PATCH", path, gates, content="application/merge-patch+json")
        bound(client, 2)


def test_a_job_of_a_controller_is_held_and_released_like_any_pod(control_plane, client):
    with dovetail_on(control_plane), control_on(control_plane):
        workload.create_nodes(client, equal_nodes(builders, 1))
        template = held("x", duration=0.5)
        job = {
            "metadata": {"name": "batch"},
            "spec": {
                "completions": 6,
                "parallelism": 3,
                "template": {
                    "metadata": {"annotations": template["metadata"]["annotations"]},
                    "spec": template["spec"],
                },
            },
        }
        request(client, "POST", "/apis/batch/v1/namespaces/default/jobs", job)

        def done():
            return request(client, "GET", "/apis/batch/v1/namespaces/default/jobs/batch")["status"].get("succeeded")

        workload.wait_until(lambda: done() == 6, 60, "the Job to end")


@BY_ORDER
@pytest.mark.usefixtures("priorities")
def test_a_held_pod_that_outranks_running_pods_preempts(control_plane, client, order):
    with dovetail_on(control_plane, settings={"order": order}), control_on(control_plane, order=order):
        workload.create_nodes(client, equal_nodes(builders, 1))
        workload.create_pods(client, [held(f"low-{n}", cpu=4) for n in range(4)])
        bound(client, 4)
        workload.create_pods(client, [held("high", cpu=6, priority="high")])

        workload.wait_until(lambda: "high" in workload.bound_pods(client), 30, "the preemptor to be bound")
        assert sum(name.startswith("low") for name in workload.bound_pods(client)) == 2


@BY_ORDER
@pytest.mark.parametrize("cpu", [32, 1], ids=["of network only", "of cpu too"])
@pytest.mark.usefixtures("priorities")
def test_a_held_pod_short_of_network_goes_before_those_that_it_outranks(control_plane, client, order, cpu):
    with dovetail_on(control_plane, settings={"order": order}), control_on(control_plane, order=order):
        workload.create_nodes(client, [builders.node("node", cpu=cpu, capacity={"network-in": 1000})])
        half = {"cpu": "500m", "demand": {"network-in": 500}}
        workload.create_pods(client, [held(f"low-{n:02d}", **half, duration=2 if n else 1) for n in range(16)])
        bound(client, 3)
        workload.create_pods(client, [held("high", cpu="100m", demand={"network-in": 1000}, priority="high")])

        workload.wait_until(lambda: "high" in workload.bound_pods(client), 30, "the pod of high priority to be bound")
        assert len(workload.bound_pods(client)) <= 8  # two at a time: who ran, and who was on the way


@BY_ORDER
def test_a_pod_that_needs_a_new_node_becomes_visible_to_an_autoscaler_after_a_while(control_plane, client, order):
    settings = {"order": order, "queues": [{"name": name} for name in ("other", "mine", "l")]}
    with (
        dovetail_on(control_plane, settings=settings),
        control_on(control_plane, control={"scaleUpAfterSeconds": 1}, **settings),
    ):
        workload.create_nodes(client, equal_nodes(builders, 1))
        workload.create_pods(client, [held("runs", cpu=12, queue="other")])
        bound(client, 1)
        # 5 of 16 cores: within a third, the share of each of three queues.
        workload.create_pods(client, [held("needs-a-node", cpu=5, queue="mine"), held("too-large", cpu=17, queue="l")])

        def refused():
            conditions = workload.pod(client, "needs-a-node")["status"].get("conditions", ())
            return any(it["type"] == "PodScheduled" and it["reason"] == "Unschedulable" for it in conditions)

        workload.wait_until(refused, 20, "the pod to be unschedulable")
        assert "nominatedNodeName" not in workload.pod(client, "needs-a-node")["status"]
        assert workload.pod(client, "too-large")["spec"]["schedulingGates"] == [{"name": HOLD}]

        workload.create_nodes(client, [builders.node("new", cpu=16, memory="64Gi")])
        bound(client, 2)


@BY_ORDER
def test_a_pod_that_no_autoscaler_makes_a_node_for_gets_its_turn_among_held_ones(control_plane, client, order):
    # Small pods end one at a time, so that 8 of 16 cores come free only where the next of them have to wait.
    queues = {"queues": [{"name": "big"}, {"name": "small"}], "policy": {"starvedAfterSeconds": 3}}
    with (
        dovetail_on(control_plane, settings={"order": order, **queues}),
        control_on(control_plane, order=order, control={"scaleUpAfterSeconds": 1}, **queues),
    ):
        workload.create_nodes(client, equal_nodes(builders, 1))
        small = [held(f"small-{n:02d}", cpu=5, queue="small", duration=2 + n % 3) for n in range(60)]
        workload.create_pods(client, small)
        bound(client, 3)
        workload.create_pods(client, [held("big", cpu=8, queue="big")])

        def released():
            return "schedulingGates" not in workload.pod(client, "big")["spec"]

        workload.wait_until(released, 20, "the pod to be released, for an autoscaler")
        workload.wait_until(lambda: "big" in workload.bound_pods(client), 40, "the pod to be bound")
        assert len(workload.bound_pods(client)) < 1 + 50
        assert not over_allocated(client)


@BY_ORDER
def test_a_gang_is_released_whole_or_not_at_all(control_plane, client, order):
    with dovetail_on(control_plane, settings={"order": order}), control_on(control_plane, order=order):
        workload.create_nodes(client, equal_nodes(builders, 2))

        def member(n, least):
            labels = {"scheduling.x-k8s.io/pod-group": "g"}
            labels["pod-group.scheduling.sigs.k8s.io/min-available"] = str(least)
            return held(f"gang-{n}", cpu=10, labels=labels)

        workload.create_pods(client, [member(n, 3) for n in range(3)])
        time.sleep(2)
        assert workload.bound_pods(client) == {}, "two fit, three do not"
        workload.create_nodes(client, [builders.node("third", cpu=16, memory="64Gi")])
        bound(client, 3)


@BY_ORDER
@pytest.mark.usefixtures("priorities")
def test_a_gang_of_a_higher_priority_does_not_wait_for_the_end_of_those_of_a_lower_one(control_plane, client, order):
    # Each of two nodes has room for four pods of the backlog at a time, which end at different moments; the gang needs
    # both nodes whole. kube-scheduler preempts for no gang.
    with dovetail_on(control_plane, settings={"order": order}), control_on(control_plane, order=order):
        workload.create_nodes(client, equal_nodes(builders, 2))
        low = [held(f"low-{n:02d}", cpu=4, duration=3 + n % 4) for n in range(80)]
        workload.create_pods(client, low)
        bound(client, 8)
        group = {"scheduling.x-k8s.io/pod-group": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}
        workload.create_pods(client, [held(f"gang-{n}", cpu=16, priority="high", labels=group) for n in range(2)])
        workload.wait_until(lambda: {"gang-0", "gang-1"} <= workload.bound_pods(client).keys(), 30, "the gang")
        assert len(workload.bound_pods(client)) < 2 + 60
        assert not over_allocated(client)


@BY_ORDER
def test_pods_that_kube_scheduler_never_tries_stop_nobody_else(control_plane, client, order):
    """Their claim is not there, so it does not put them into its queue, and says nothing of them."""
    stuck = [held(f"stuck-{n}", cpu="100m", queue="a") for n in range(80)]
    for it in stuck:
        it["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": "missing"}]
    with dovetail_on(control_plane, settings={"order": order}), control_on(control_plane, order=order):
        workload.create_nodes(client, equal_nodes(builders, 4))
        workload.create_pods(client, stuck)
        workload.wait_until(lambda: len(ungated(client)) >= 64, 30, "all slots to be taken")
        workload.create_pods(client, [held(f"good-{n}", queue="b") for n in range(30)])
        assert {name.partition("-")[0] for name in bound(client, 30, seconds=60)} == {"good"}


def ungated(client):
    return [it for it in workload.pods(client) if "schedulingGates" not in it["spec"]]


def test_a_nominated_node_that_goes_before_the_pod_is_bound_does_not_hold_the_pod_up(control_plane, client):
    # No scheduler at first: the pod is nominated and released, and its node goes.
    workload.create_nodes(client, equal_nodes(builders, 1))
    with control_on(control_plane, user=ADMIN):
        workload.create_pods(client, [held("pod")])
        workload.wait_until(
            lambda: "schedulingGates" not in workload.pod(client, "pod")["spec"], 20, "the pod to be released"
        )
        request(client, "DELETE", "/api/v1/nodes/node-000")
        workload.create_nodes(client, [builders.node("other", cpu=16, memory="64Gi")])
        with dovetail_on(control_plane):
            assert bound(client, 1) == {"pod": "other"}


def test_a_stale_nomination_of_a_waiting_pod_is_cleared(control_plane, client):
    workload.create_nodes(client, equal_nodes(builders, 1))
    with dovetail_on(control_plane), control_on(control_plane):
        workload.create_pods(client, [held("first", cpu=10)])
        bound(client, 1)
        blocked = held("second", cpu=10, gates=())
        workload.create_pods(client, [blocked])
        told = {
            "metadata": {"annotations": {"dovetail.dev/nominated": "node-000"}},
            "status": {"nominatedNodeName": "node-000"},
        }
        path = "/api/v1/namespaces/default/pods/second/status"
        request(client, "PATCH", path, told, content="application/merge-patch+json")

        def cleared():
            pod = workload.pod(client, "second")
            noted = pod["metadata"].get("annotations", {}).get("dovetail.dev/nominated")
            return not noted and not pod["status"].get("nominatedNodeName")

        workload.wait_until(cleared, 20, "the nomination to be cleared")


def test_a_second_replica_takes_over_within_the_time_of_the_lease(control_plane, client):
    lease = {"seconds": 3, "renewSeconds": 2, "retrySeconds": 0.5}
    with (
        dovetail_on(control_plane),
        control_on(control_plane, lease=lease),
        control_on(control_plane, lease=lease, name="second-control"),
    ):
        workload.create_nodes(client, equal_nodes(builders, 2))
        workload.create_pods(client, [held("before")])
        bound(client, 1)
        control_plane.kill("dovetail-control")
        killed = time.monotonic()
        workload.create_pods(client, [held("after")])
        bound(client, 2)
        assert time.monotonic() - killed < 3 + 0.5 + 3, "the Lease, a retry, and the release itself"
