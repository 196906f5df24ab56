from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, NodesListed, Pod, PodSeen
from extender.cluster.node_terms import HAS_SWAP, OpportunisticTerms
from extender.cluster.usage import Sample, Usage
from extender.control.opportunistic.idle_room import Thresholds, idle_room
from extender.control.opportunistic.measured_use import measured_use

NOW, SINCE = 1000.0, 985.0
AMOUNTS = {"cpu": 10_000.0, "memory": 100.0, "pods": 10.0, "x.y/gpu": 2.0}


def pod(name, cpu, *, node="n1", started=0.0, opportunistic=True, **more):
    demand = {"cpu": float(cpu), "memory": 10.0, "pods": 1.0}
    return Pod(name, "default", name, demand, node=node, started=started, opportunistic=opportunistic, **more)


def room(pods=(), used=4000.0, of_pods=None, terms=None, problems=None, amounts=AMOUNTS, now=NOW):
    """Return the idle room of the one node by resource, where `used` of its CPU and 30 of its memory was measured."""
    ledger = Ledger(in_flight_seconds=15.0)
    ledger.apply(NodesListed([Node("n1", amounts, terms=terms or OpportunisticTerms())]))
    for it in pods:
        ledger.apply(PodSeen(it))
    snapshot = ledger.snapshot(now)
    measured = {uid: Sample({"cpu": cpu}, SINCE, NOW) for uid, cpu in (of_pods or {}).items()}
    usage = Usage({}, {"n1": Sample({"cpu": used, "memory": 30.0}, SINCE, NOW)}, measured, problems or {})
    use = measured_use(snapshot.layout, usage, now, stale_after=60.0)
    found = idle_room(snapshot, use, usage, Thresholds(0.8))
    return dict(zip(snapshot.layout.axis, found[0].tolist(), strict=True))


def test_room_is_what_use_leaves_of_the_threshold_however_much_is_reserved():
    found = room([pod("regular", 10_000, opportunistic=False)])
    assert found["cpu"] == pytest.approx(0.8 * 10_000 - 4000)
    assert found["memory"] == pytest.approx(0.8 * 100 - 30)


def test_a_rate_that_the_node_does_not_limit_is_no_matter():
    assert room()["disk-read"] == np.inf


def test_what_a_resize_does_not_free_must_be_free_as_for_a_regular_pod():
    gpus = replace(pod("regular", 100, opportunistic=False), demand={"x.y/gpu": 2.0, "pods": 1.0})
    assert room([gpus])["x.y/gpu"] == 0
    assert room()["x.y/gpu"] == 2


def test_a_fifth_of_the_pod_slots_stays_for_regular_pods():
    assert room([pod(f"p{n}", 1, opportunistic=False) for n in range(7)])["pods"] == pytest.approx(1)
    assert room([pod(f"p{n}", 1, opportunistic=False) for n in range(9)])["pods"] == 0


def test_a_pod_that_is_older_than_the_window_counts_as_measured():
    assert room([pod("old", 3000, started=900.0)])["cpu"] == pytest.approx(8000 - 4000)


def test_a_pod_that_began_within_the_window_counts_with_its_demand_and_only_once():
    # 500 of the 4,000 that were measured are the young pod's.
    assert room([pod("young", 3000, started=990.0)], of_pods={"young": 500})["cpu"] == pytest.approx(8000 - 6500)


def test_a_pod_counts_with_its_demand_for_half_a_minute_at_least():
    assert room([pod("young", 3000, started=975.0)])["cpu"] == pytest.approx(8000 - 7000)


def test_a_pod_that_has_not_started_counts_with_its_demand():
    assert room([pod("bound", 3000, started=None)])["cpu"] == pytest.approx(8000 - 7000)


def test_a_nominated_pod_counts_with_its_demand():
    assert room([pod("nominated", 3000, node=None, nominated="n1")])["cpu"] == pytest.approx(8000 - 7000)


def test_a_node_may_have_a_threshold_of_its_own_or_none():
    assert room(terms=OpportunisticTerms(threshold=0.5))["cpu"] == pytest.approx(1000)
    off = room(terms=OpportunisticTerms(threshold=0.0))
    assert (off["cpu"], off["disk-read"]) == (0, 0)


def test_there_is_no_room_on_a_node_that_refuses_opportunistic_pods_whatever_it_states():
    assert room(terms=OpportunisticTerms(threshold=0.9, refuses=HAS_SWAP))["cpu"] == 0


def test_there_is_no_room_on_a_node_that_was_not_measured():
    assert room(problems={"n1": "two series"})["cpu"] == 0
    assert room(now=NOW + 61.0)["cpu"] == 0


def test_a_limited_rate_that_was_not_measured_is_no_room_for_anybody():
    found = room(amounts={**AMOUNTS, "disk-read": 1e6})
    assert_allclose([found["cpu"], found["disk-read"]], 0)


def test_regular_pods_that_are_nominated_or_in_flight_count_with_their_demand():
    nominated = pod("nominated", 3000, node=None, nominated="n1", opportunistic=False)
    assert room([nominated])["cpu"] == pytest.approx(8000 - 7000)
    assert room([replace(nominated, demand={"pods": 5.0, "cpu": 1.0})])["pods"] == pytest.approx(10 - 2 - 5)
