"""What the cluster benchmark counts from the API server's manifests."""

from lab.bench.cluster import truth
from lab.bench.cluster.runs import ClusterSize, pod_manifests
from lab.controlplane import builders


def bound(name, node, *, promised=None, phase="Running", **more):
    pod = builders.pod(name, **{"cpu": 1, **more})
    if promised:
        pod["metadata"]["annotations"]["dovetail.dev/nominated"] = promised
    return pod | {"status": {"phase": phase}, "spec": {**pod["spec"], "nodeName": node}}


def node(**more):
    return builders.node("n", **{"cpu": 2, "memory": "4Gi", "capacity": {"disk-read": 100}, **more})


def test_a_node_that_is_full_to_the_last_is_not_over_allocated():
    # 3 x 600m + 200m = 2 cores, 60 + 40 = 100 bytes a second
    pods = [bound(f"p{n}", "n", cpu="600m") for n in range(3)]
    pods += [bound("q", "n", cpu="200m", demand={"disk-read": 60}), bound("r", "n", cpu=0, demand={"disk-read": 40})]
    assert truth.over_allocated([node()], pods) == {}


def test_each_dimension_above_what_a_node_offers_is_named_with_the_excess():
    pods = [bound(f"p{n}", "n", cpu=1, memory="1Gi", demand={"disk-read": 50}) for n in range(3)]
    assert truth.over_allocated([node()], pods) == {("n", "cpu"): 1000, ("n", "disk-read"): 50}


def test_more_pods_than_a_node_takes_are_over_allocation():
    pods = [bound(f"p{n}", "n", cpu="1m") for n in range(3)]
    assert truth.over_allocated([node(pods=2)], pods) == {("n", "pods"): 1}


def test_pods_that_have_ended_or_wait_hold_nothing():
    waiting = builders.pod("w", cpu=9) | {"status": {"phase": "Pending"}}
    assert truth.over_allocated([node()], [bound("p", "n", cpu=9, phase="Succeeded"), waiting]) == {}


def test_only_pods_on_another_node_than_we_nominated_count():
    pods = [bound("a", "n", promised="n"), bound("b", "n", promised="m"), bound("c", "n")]
    assert truth.off_nominated(pods) == 1


def test_the_pods_of_a_job_are_alike_and_no_two_jobs_are():
    made = pod_manifests(ClusterSize(nodes=1, pods=12, jobs=4), gated=True)
    kinds = {}
    for pod in made:
        label = pod["metadata"]["labels"]["dovetail.dev/job"]
        kinds.setdefault(label, set()).add(str(pod["spec"]["containers"]))
        assert pod["spec"]["schedulingGates"] == [{"name": "dovetail.dev/hold"}]
    assert [len(kind) for kind in kinds.values()] == [1, 1, 1, 1]
    assert len(set.union(*kinds.values())) == 4


def test_pods_that_are_not_gated_carry_no_gate():
    assert all("schedulingGates" not in pod["spec"] for pod in pod_manifests(ClusterSize(1, pods=2), gated=False))
