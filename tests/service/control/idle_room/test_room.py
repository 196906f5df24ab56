from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from extender.cluster.events import NodesListed, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.cluster.node_terms import HAS_SWAP, OpportunisticTerms
from extender.cluster.usage import Sample, Usage
from extender.control.idle_room.measured_use import measured_use
from extender.control.idle_room.room import Thresholds, idle_room

NOW, SINCE = 1000.0, 985.0
AMOUNTS = {"cpu": 10_000.0, "memory": 100.0, "pods": 10.0, "x.y/gpu": 2.0}


def pod(name, cpu, *, node="n1", started=0.0, opportunistic=True, **more):
    demand = {"cpu": float(cpu), "memory": 10.0, "pods": 1.0}
    return Pod(name, "default", name, demand, node=node, started=started, opportunistic=opportunistic, **more)


def room(pods=(), used=4000.0, of_pods=None, thresholds=None, terms=None, problems=None, amounts=AMOUNTS, **more):
    """Return the idle room of the one node by resource, where `used` of its CPU and 30 of its memory was measured.

    `gone` of its CPU is of pods that have ended; `expected` says what CPU young pods are expected to use.
    """
    now = more.get("now", NOW)
    ledger = Ledger(in_flight_seconds=15.0)
    ledger.apply(NodesListed([Node("n1", amounts, terms=terms or OpportunisticTerms())]))
    for it in pods:
        ledger.apply(PodSeen(it))
    snapshot = ledger.snapshot(now)
    measured = {uid: Sample({"cpu": cpu}, SINCE, NOW) for uid, cpu in (of_pods or {}).items()}
    usage = Usage({}, {"n1": Sample({"cpu": used, "memory": 30.0}, SINCE, NOW)}, measured, problems or {})
    usage = replace(usage, gone={"n1": {"cpu": float(more.get("gone", 0))}})
    use = measured_use(snapshot.layout, usage)
    thresholds = thresholds or Thresholds(0.8)
    if "peak" in more:
        peaks = np.zeros(snapshot.layout.capacity.shape)
        peaks[0, snapshot.layout.columns["cpu"]] = more["peak"]
        thresholds = replace(thresholds, peaks=peaks)
    found = idle_room(snapshot, use, usage, thresholds, expected=more.get("expected"))
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


def test_a_limited_rate_that_was_not_measured_is_no_room_for_anybody():
    found = room(amounts={**AMOUNTS, "disk-read": 1e6})
    assert_allclose([found["cpu"], found["disk-read"]], 0)


def test_regular_pods_that_are_nominated_or_in_flight_count_with_their_demand():
    nominated = pod("nominated", 3000, node=None, nominated="n1", opportunistic=False)
    assert room([nominated])["cpu"] == pytest.approx(8000 - 7000)
    assert room([replace(nominated, demand={"pods": 5.0, "cpu": 1.0})])["pods"] == pytest.approx(10 - 2 - 5)


def uses(cpu):
    """Return what expects every pod to use so much CPU, and the memory that it demands."""
    return lambda pods, demand: np.concatenate((np.full((len(pods), 1), float(cpu)), demand[:, 1:]), axis=1)


def test_a_young_pod_counts_with_what_its_class_has_used():
    # 500 of the 4,000 that were measured are the young pod's, which is expected to use 1,200.
    found = room([pod("young", 3000, started=990.0)], of_pods={"young": 500}, expected=uses(1200))
    assert found["cpu"] == pytest.approx(8000 - 3500 - 1200)


def test_a_young_pod_counts_no_less_than_was_measured_of_it():
    found = room([pod("young", 3000, started=990.0)], of_pods={"young": 500}, expected=uses(200))
    assert found["cpu"] == pytest.approx(8000 - 4000)


def test_a_pod_on_its_way_counts_with_its_demand_whatever_its_class_has_used():
    nominated = pod("nominated", 3000, node=None, nominated="n1")
    assert room([nominated], expected=uses(1200))["cpu"] == pytest.approx(8000 - 7000)


def test_what_the_window_holds_of_pods_that_have_ended_is_idle():
    assert room(gone=1500)["cpu"] == pytest.approx(8000 - 2500)
    assert room(gone=5000)["cpu"] == pytest.approx(8000)


WINDOW = NOW - SINCE


@st.composite
def lives(draw):
    """Return pods that use what they use all the time: when they began and ended, what they demand and use."""
    moments, shares = st.floats(900.0, NOW), st.floats(0.0, 1.0)
    pods = []
    for _ in range(draw(st.integers(0, 6))):
        began, ended = sorted((draw(moments), draw(moments)))
        pods.append((began, ended if draw(st.booleans()) else np.inf, draw(st.integers(1, 1500)), draw(shares)))
    return pods, draw(st.booleans())


@settings(max_examples=200, deadline=None)
@given(lives())
def test_where_use_is_steady_there_is_never_more_room_than_what_runs_leaves(drawn):
    """Whoever runs is measured, or expected to use what its class uses, or its demand: never less than it does use."""
    pods, class_is_known = drawn
    part = max((share for *_, share in pods), default=0.0)
    running, measured, gone, total, runs = [], {}, 0.0, 0.0, 0.0
    for number, (began, ended, demand, share) in enumerate(pods):
        use = demand * share
        mean = use * max(min(ended, NOW) - max(began, SINCE), 0.0) / WINDOW
        total += mean
        if ended <= NOW:
            gone += mean
        else:
            runs += use
            running.append(pod(f"p{number}", demand, started=began))
            measured[f"p{number}"] = mean

    def expected(_pods, demand):
        return demand * part if class_is_known else demand

    found = room(running, used=total, of_pods=measured, gone=gone, expected=expected)
    assert found["cpu"] + runs <= 8000 + 1e-6


AUTO = Thresholds(None)


def test_with_auto_room_is_what_the_predicted_peak_leaves_of_all():
    assert room(thresholds=AUTO, peak=7000)["cpu"] == pytest.approx(10_000 - 7000)
    assert room(thresholds=AUTO, peak=12_000)["cpu"] == 0


def test_with_auto_room_is_never_more_than_what_is_used_now_leaves():
    assert room(thresholds=AUTO, peak=1000)["cpu"] == pytest.approx(10_000 - 4000)
    assert room(thresholds=AUTO, peak=1000)["memory"] == pytest.approx(100 - 30)


def test_with_auto_no_peak_may_pass_what_pods_are_evicted_at():
    found = room(thresholds=Thresholds(None, evict_at={"cpu": 0.99, "memory": 0.95}), peak=7000)
    assert found["cpu"] == pytest.approx(9900 - 7000)
    assert found["memory"] == pytest.approx(95 - 30)


def test_with_auto_young_and_nominated_pods_count_on_top_of_the_peak():
    young, nominated = pod("young", 1000, started=990.0), pod("nominated", 500, node=None, nominated="n1")
    found = room([young, nominated], thresholds=AUTO, peak=7000, of_pods={"young": 500})
    assert found["cpu"] == pytest.approx(10_000 - 7000 - 1000 - 500)


def test_with_auto_there_is_no_room_without_a_prediction_or_where_nothing_was_measured():
    assert room(thresholds=AUTO)["cpu"] == 0
    assert room(thresholds=AUTO, peak=np.nan)["cpu"] == 0
    assert room(thresholds=AUTO, peak=1000, problems={"n1": "two series"})["cpu"] == 0


def test_a_node_may_have_a_threshold_of_its_own_beside_auto():
    assert room(thresholds=Thresholds(None), terms=OpportunisticTerms(0.5), peak=1000)["cpu"] == pytest.approx(1000)
    assert room(thresholds=Thresholds(None), terms=OpportunisticTerms(0.0), peak=1000)["cpu"] == 0


def test_with_auto_pods_slots_and_devices_must_be_free_as_ever():
    assert room(thresholds=AUTO, peak=1000)["pods"] == pytest.approx(10 - 2)
    assert room(thresholds=AUTO, peak=1000)["x.y/gpu"] == 2
