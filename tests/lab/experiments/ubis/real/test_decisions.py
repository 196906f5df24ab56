"""What is counted of a run on the real cluster: the fewest pods, samples, promotions, writes, and what is lost."""

import json

import numpy as np
import pytest

from extender.cluster.resources import CPU, DISK_READ, MEMORY
from lab.controlplane import builders
from lab.experiments.ubis.real import audit, counts
from lab.experiments.ubis.real.course import FinishedRun
from lab.experiments.ubis.real.decisions import decisions, smallest
from lab.experiments.ubis.real.recording import state_of
from lab.experiments.ubis.real.scale import DIMENSIONS, OFFERED, TASK
from lab.experiments.ubis.real.series import MeasuredSeries, Samples, of_counter
from lab.experiments.ubis.real.stage import JOB_LABEL, Span, usage

NODES = ("node-0", "node-1")
POD = TASK[CPU]
SPANS = tuple(
    Span(name, begun, begun + 10.0, kind)
    for name, begun, kind in (
        ("fill", 0.0, ""),
        ("filled", 10.0, ""),
        ("cpu", 20.0, ""),
        ("budget", 30.0, ""),
        ("promote", 40.0, ""),
        ("outage", 50.0, "stopped"),
    )
)


def pod_at(at, name, *, node="node-0", opportunistic=True, held=False, job="task", gone=False, leaving=False):
    """Return the state of a Job's pod that uses what a task does."""
    pod = builders.pod(name, cpu=0 if opportunistic else "120m", memory=0 if opportunistic else "192Mi")
    pod["metadata"] |= {"uid": f"uid-{name}", "labels": {JOB_LABEL: job}, "annotations": usage(TASK)}
    if opportunistic:
        pod["metadata"]["annotations"]["dovetail.dev/regular-requests"] = "{}"
    if leaving:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pod["spec"] |= {"schedulingGates": [{"name": "dovetail.dev/hold"}]} if held else {"nodeName": node}
    pod["status"] = {"phase": "Pending" if held else "Running"}
    return state_of(pod, at, gone=gone)


def evicted(at, name, status=201):
    return audit.Write(at, name, "create", "eviction", status)


def node_cpu(*uses, begun=20.0):
    """Return samples of a node's CPU, one a second, in millicores."""
    return Samples(begun + np.arange(len(uses), dtype=float), np.array(uses, dtype=float))


def course(states=(), writes=(), cpu=None, holders=(), jobs=None):
    """Return a run in which node-0 uses this CPU and every pod what a task does."""
    names = {state.name for state in states}
    always = Samples(np.array([0.0, 100.0]), np.full(2, POD))
    nodes = {dimension: {} for dimension in DIMENSIONS} | {CPU: {"node-0": cpu or node_cpu(0.0)}}
    pods = {dimension: {} for dimension in DIMENSIONS} | {CPU: dict.fromkeys(names, always)}
    return FinishedRun(
        NODES, SPANS, list(states), list(holders), [], list(writes), MeasuredSeries(nodes, pods), jobs or {}, "v1.36.3"
    )


def test_the_smallest_set_is_found_where_one_is_large_and_where_resources_add_up():
    use = np.array([[1.0, 0.0], [1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    assert smallest(np.array([2.5, 0.0]), use) == 1
    assert smallest(np.array([3.5, 0.0]), use) == 2
    assert smallest(np.array([3.5, 1.0]), use) == 3
    assert smallest(np.array([0.0, 0.0]), use) == 0


def test_all_are_needed_where_even_all_do_not_suffice():
    assert smallest(np.array([9.0]), np.array([[1.0], [2.0]])) == 2


def test_a_rate_is_the_growth_over_a_full_window_and_unknown_before():
    at = np.arange(8, dtype=float)
    total = np.array([0, 1, 2, 3, 4, 5, 8, 11], dtype=float)
    found = of_counter(at, total, window=3.0)
    # The window before 6 holds the samples at 4, 5 and 6: (8 - 4) / 2.
    assert np.isnan(found.use[:3]).all()
    assert found.use[3:].tolist() == [1.0, 1.0, 1.0, 2.0, 3.0]
    assert found.before(6.5) == 2.0
    assert np.isnan(found.before(-1.0))


def test_evictions_of_one_moment_are_one_decision_and_its_need_is_by_the_last_sample_before():
    # The limit is 7,600. The last sample before 24.5 is over by 180: one pod of 120 is not enough, two are.
    states = [pod_at(1.0, f"task-{number}") for number in range(5)]
    found = course(states, [evicted(24.5, "task-0"), evicted(24.7, "task-1")], node_cpu(7000, 7700, 7700, 7700, 7780))
    (one,) = decisions(found, "guarded")
    assert (one.node, one.phase, one.evicted, one.needed, one.samples, one.led) == ("node-0", "cpu", 2, 2, 4, True)


def test_evictions_that_are_apart_are_two_decisions_and_who_leaves_counts_as_gone():
    states = [pod_at(1.0, f"task-{number}") for number in range(5)]
    states.append(pod_at(24.6, "task-0", leaving=True))
    use = node_cpu(7780, 7780, 7780, 7780, 7780, 7780, 7780, 7780, 7780)
    first, second = decisions(course(states, [evicted(24.5, "task-0"), evicted(28.5, "task-1")], use), "guarded")
    assert (first.needed, second.needed) == (2, 1)
    # Samples whose window reaches back before the first eviction say nothing.
    assert (first.samples, second.samples) == (5, 0)


def test_a_decision_under_a_new_leader_is_told_apart():
    states = [pod_at(1.0, f"task-{number}") for number in range(5)]
    writes, use = [evicted(23.5, "task-0")], node_cpu(7650, 7650, 7650, 7650)
    assert decisions(course(states, writes, use, holders=[(1.0, "a"), (10.0, "b")]), "guarded")[0].led
    assert not decisions(course(states, writes, use, holders=[(1.0, "a"), (22.0, "b")]), "guarded")[0].led


def test_protected_pods_are_no_candidates_in_their_phase():
    states = [pod_at(1.0, "guarded-0", job="guarded"), pod_at(1.0, "task-0"), pod_at(1.0, "task-1")]
    found = course(states, [evicted(33.5, "task-0")], node_cpu(7900, 7900, 7900, 7900, begun=30.0))
    assert decisions(found, "guarded")[0].needed == 2  # 300 over: all that may go do not suffice
    assert decisions(found, "nobody")[0].needed == 3


def test_an_eviction_of_a_pod_with_requests_is_a_regular_one_and_two_of_one_pod_are_seen():
    states = [pod_at(1.0, "task-0"), pod_at(1.0, "task-1"), pod_at(20.0, "task-1", opportunistic=False)]
    writes = [evicted(22.0, "task-0"), evicted(23.0, "task-1"), evicted(24.0, "task-0"), evicted(25.0, "task-2", 429)]
    found = course(states, writes)
    assert (counts.regular_evicted(found), counts.evicted_twice(found), len(found.evictions)) == (1, 1, 3)


@pytest.mark.parametrize(
    ("at", "opportunistic", "expected"),
    [(50.5, True, (0, 0)), (52.0, True, (1, 0)), (52.0, False, (0, 1)), (60.5, True, (0, 0))],
)
def test_what_is_released_in_an_outage_counts_but_for_writes_that_were_under_way(at, opportunistic, expected):
    # The outage goes from 50 to 60; a write may come a second later.
    states = [pod_at(1.0, "task-0", opportunistic=opportunistic, held=True)]
    states.append(pod_at(at, "task-0", opportunistic=opportunistic))
    assert counts.released_unmeasured(course(states)) == expected


def test_promotions_are_counted_with_those_that_would_have_fit():
    states = [pod_at(1.0, f"task-{number}", node="node-1") for number in range(3)]
    states.append(pod_at(42.0, "task-0", node="node-1", opportunistic=False))
    assert counts.promoted(course(states)) == (1, 2)  # 7,880 are free: both others fit


def test_writes_count_up_to_the_release_those_done_only_and_beside_them_the_later_ones():
    states = [pod_at(1.0, "task-0", held=True), pod_at(2.0, "task-0"), pod_at(40.0, "task-0", opportunistic=False)]
    writes = [
        audit.Write(1.1, "task-0", "patch", "", 200),
        audit.Write(1.2, "task-0", "patch", "resize", 409),
        audit.Write(1.3, "task-0", "patch", "resize", 200),
        audit.Write(39.0, "task-0", "patch", "resize", 200),
        evicted(41.0, "task-0"),
    ]
    found = course(states, writes)
    assert counts.writes_to_release(found).tolist() == [2.0]
    assert counts.writes_to_promote(found).tolist() == [1.0]


def test_lost_is_who_did_not_end_well_or_failed():
    assert counts.lost(course(jobs={"task": (10, 8, 0), "scan": (5, 5, 1)})) == 3


def test_an_audit_log_is_read_up_to_the_line_that_is_being_written():
    event = {
        "requestReceivedTimestamp": "2026-01-01T00:00:01.500000Z",
        "objectRef": {"name": "task-0", "subresource": "eviction"},
        "verb": "create",
        "responseStatus": {"code": 429},
    }
    (found,) = audit.read([json.dumps(event) + "\n", '{"requestRec'])
    assert (found.pod, found.eviction, found.done, found.forbidden) == ("task-0", True, False, True)
    assert found.at == pytest.approx(1767225601.5)


def test_a_state_has_what_a_pod_uses_and_what_counts():
    state = pod_at(1.0, "task-0", opportunistic=False)
    assert state.use == {CPU: 120.0, MEMORY: TASK[MEMORY], DISK_READ: 0.0}
    assert state.counted == {CPU: 120.0, MEMORY: TASK[MEMORY]}
    assert OFFERED[CPU] / 8 == 1000.0
