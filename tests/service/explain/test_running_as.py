"""How a pod runs, as `explain` tells it."""

import pytest

from extender.cluster.pods.opportunistic import RegularRequests
from extender.explain.pod import explain
from tests.service.control.scene import Scene, node, pod

REQUESTS = RegularRequests(containers={"main": {"cpu": "300m"}})


def explained(**more):
    scene = Scene(node("n1"))
    scene.see(pod("a", {"cpu": 300.0, "disk-read": 5.0}, **more))
    return explain(scene.view(), scene.pods["a"], scene.policy, [])


@pytest.mark.parametrize(
    ("more", "running_as"),
    [
        ({"gates": (), "node": "n1"}, "regular"),
        ({"gates": (), "node": "n1", "opportunistic": True, "regular_requests": REQUESTS}, "opportunistic"),
        ({"gates": (), "promised": "n1", "opportunistic": True, "regular_requests": REQUESTS}, "opportunistic"),
        ({"gates": (), "node": "n1", "regular_requests": REQUESTS}, "promoted"),
        ({"regular_requests": REQUESTS}, "regular"),  # written down, and its requests have not been taken yet
    ],
)
def test_a_pod_is_regular_opportunistic_or_promoted(more, running_as):
    assert explained(**more).running_as == running_as


def test_what_it_gave_up_is_what_it_requests_of_cpu_and_memory():
    given = explained(gates=(), node="n1", opportunistic=True, regular_requests=REQUESTS)
    assert (dict(given.regular_requests), given.opportunistic_share) == ({"cpu": 300.0}, pytest.approx(0.3))
    assert not explained(gates=(), node="n1", opportunistic=True, choice="only").regular_requests


def test_nodes_are_not_rated_for_one_that_would_fit_anywhere_by_what_it_counts():
    assert explained(gates=()).nodes
    assert not explained(gates=(), opportunistic=True, regular_requests=REQUESTS, promised="n1").nodes
