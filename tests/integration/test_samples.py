"""kube-scheduler asks about a sample of the nodes, and the only one with room for a pod is seldom among them."""

import time

from lab.controlplane import builders, workload
from tests.integration.dovetail import SCHEDULER
from tests.integration.test_order_by_filter import ordered

NODES, SAMPLE = 600, 100


def test_a_pod_gets_the_only_node_with_room_on_a_still_cluster_after_a_tour_of_all_samples(control_plane, tell):
    client = control_plane.client()
    slow, fast = ({"disk-read": rate} for rate in (1, 100))
    nodes = [builders.node(f"node-{n:03}", cpu=16, memory="64Gi", capacity=slow) for n in range(NODES - 1)]
    workload.create_nodes(client, [*nodes, builders.node("node-fast", cpu=16, memory="64Gi", capacity=fast)])
    with ordered(control_plane, order="auto") as extender:
        calls, took = [0.0], []
        for name in ("first", "second"):
            begun = time.monotonic()
            reader = builders.pod(name, cpu=1, demand={"disk-read": 50}, scheduler_name=SCHEDULER)
            workload.create_pods(client, [reader])
            bound = workload.wait_until(lambda name=name: workload.bound_pods(client).get(name), 30, "it to be bound")
            assert bound == "node-fast"
            took.append(time.monotonic() - begun)
            calls.append(extender.metric("dovetail_filter_nodes_count"))
        assert extender.metric("dovetail_filter_nodes_sum") <= SAMPLE * calls[-1]
    # The second begins behind the sample with the node, so it is in the last of six.
    assert calls[2] - calls[1] >= NODES / SAMPLE
    tell(f"bound after {took[0]:.1f} and {took[1]:.1f} s, {calls[1]:.0f} and {calls[2] - calls[1]:.0f} calls")
