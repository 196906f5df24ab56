"""What a pod needs, and what of it counts as regular."""

from extender.cluster.model import Pod

DEMAND = {"cpu": 2000.0, "memory": 8.0, "disk-read": 1.0, "network-in": 3.0, "a.b/gpu": 1.0, "pods": 1.0}


def test_a_regular_pod_counts_with_all_that_it_needs():
    pod = Pod("u", "default", "p", DEMAND)
    assert pod.counted is pod.demand


def test_an_opportunistic_pod_counts_with_what_no_resize_gives_up():
    pod = Pod("u", "default", "p", DEMAND, opportunistic=True)
    assert pod.demand == DEMAND
    assert pod.counted == {"a.b/gpu": 1.0, "pods": 1.0}
