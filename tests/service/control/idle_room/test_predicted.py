"""Peaks of nodes by what their pods have used: one node of 10 cores and 1,000 of memory unless said."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from extender.cluster.events import NodesListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Identity, Node, Pod
from extender.cluster.resources import CPU_INDEX, DIMENSIONS, MEMORY_INDEX
from extender.cluster.usage_history import UsageHistory
from extender.control.idle_room.predicted import PeakPredictor
from extender.policy.peak import PeakTuning

STEPS, STEP = 30, 300.0
NOW = 1_000_000.0
LONG = 24
"""Samples in two hours."""


def layout_of(*names):
    ledger = Ledger(in_flight_seconds=15.0)
    ledger.apply(NodesListed([Node(name, {"cpu": 10_000.0, "memory": 1000.0, "pods": 50.0}) for name in names]))
    return ledger.snapshot(NOW).layout


ONE = layout_of("n1")


def pod(name, cpu=1000.0, *, started=0.0, job="j", **more):
    demand = {"cpu": cpu, "memory": 10.0, "pods": 1.0}
    more = {"node": "n1", **more}
    return Pod(f"uid-{name}", "lab", name, demand, started=started, identity=Identity(job=job, stage="s"), **more)


def history(whose, *, end=NOW, window=60.0):
    """Return the history of pods on n1, or of nodes ("n1"), by their last samples of CPU, oldest first; memory is 1."""
    rows = {(name, "", "") if name.startswith("n") else ("n1", "lab", name): row for row, name in enumerate(whose)}
    use = np.full((len(rows), STEPS, len(DIMENSIONS)), np.nan)
    for row, values in enumerate(whose.values()):
        use[row, STEPS - len(values) :, CPU_INDEX] = values
        use[row, STEPS - len(values) :, MEMORY_INDEX] = np.where(np.isnan(values), np.nan, 1.0)
    return UsageHistory(end - STEP * np.arange(STEPS - 1, -1, -1.0), rows, use, window)


def predictor(**tuning):
    return PeakPredictor(0.01, 100.0, PeakTuning(**tuning))


def cpu(pods, found, *, by=None, now=NOW, layout=ONE):
    """Return the predicted CPU of each node."""
    return (by or predictor()).predict(layout, pods, found, now).peak[:, layout.columns["cpu"]].tolist()


def test_a_pod_of_which_two_hours_are_known_counts_by_its_own_samples():
    assert cpu([pod("a")], history({"a": [200.0] * LONG})) == pytest.approx([200])
    # 99 % of 24 samples is all of them.
    assert cpu([pod("a")], history({"a": [*[200.0] * (LONG - 1), 700.0]})) == pytest.approx([700])


def test_where_samples_vary_the_mean_and_five_deviations_may_be_the_larger():
    # Mean 300, deviation 100: 800, above the largest sample.
    assert cpu([pod("a")], history({"a": [200.0, 400.0] * 15})) == pytest.approx([800])


def test_a_pod_of_which_less_is_known_counts_by_its_demand():
    assert cpu([pod("a")], history({"a": [200.0] * (LONG - 1)})) == pytest.approx([1000])
    assert cpu([pod("a")], history({})) == pytest.approx([1000])
    assert cpu([pod("a")], UsageHistory()) == pytest.approx([1000])


def test_where_five_of_a_class_have_ended_its_pods_count_by_what_they_used():
    names = [f"done{number}" for number in range(5)]
    by, found = predictor(), history({name: [100.0 + 10 * row] for row, name in enumerate(names)})
    by.predict(ONE, [pod(name) for name in names], found, NOW - 10.0)
    assert cpu([pod("new")], found, by=by) == pytest.approx([140])
    # One of another class counts in full.
    assert cpu([pod("other", job="other")], found, by=by) == pytest.approx([1000])


def test_a_pod_that_says_something_else_by_now_is_of_another_class():
    names = [f"done{number}" for number in range(5)]
    by, found = predictor(), history({name: [100.0] for name in names})
    by.predict(ONE, [pod(name) for name in names], found, NOW - 10.0)
    assert cpu([pod("new")], found, by=by) == pytest.approx([100])
    assert cpu([pod("new", job="other", resource_version=2)], found, by=by) == pytest.approx([1000])


def test_pods_that_still_run_make_no_class_known_but_count_in_one_that_is():
    names = [f"p{number}" for number in range(6)]
    found = history({**{name: [100.0] for name in names[:5]}, names[5]: [600.0]})
    pods = [pod(name) for name in names]
    assert cpu(pods, found) == pytest.approx([6000])
    by = predictor()
    by.predict(ONE, pods, found, NOW - 10.0)
    assert cpu([pods[5]], found, by=by) == pytest.approx([600])


def test_an_evicted_pod_has_not_shown_what_its_class_uses():
    names = [f"p{number}" for number in range(5)]
    by, found = predictor(), history({name: [100.0] for name in names})
    by.predict(ONE, [pod(name) for name in names], found, NOW - 10.0)
    by.note_eviction(pod("p0"), NOW - 5.0)
    assert cpu([pod("new")], found, by=by) == pytest.approx([1000])


def test_who_has_ended_counts_in_its_class_only_while_there_is_a_sample_of_it():
    names = [f"p{number}" for number in range(5)]
    by, found = predictor(), history({name: [100.0] for name in names})
    by.predict(ONE, [pod(name) for name in names], found, NOW - 10.0)
    by.predict(ONE, [], history({}), NOW - 5.0)
    assert cpu([pod("new")], found, by=by) == pytest.approx([1000])


def test_samples_of_another_pod_of_the_same_name_and_of_a_window_that_is_not_full_do_not_count():
    found = history({"a": [200.0] * LONG})
    assert cpu([pod("a", started=NOW - 600.0)], found) == pytest.approx([1000])
    oldest = NOW - STEP * (LONG - 1)
    assert cpu([pod("a", started=oldest - 60.0)], found) == pytest.approx([200])
    assert cpu([pod("a", started=oldest - 59.0)], found) == pytest.approx([1000])


def test_use_that_no_pod_accounts_for_counts_as_one_more_pod():
    found = history({"n1": [900.0] * LONG, "a": [200.0] * LONG})
    assert cpu([pod("a")], found) == pytest.approx([200 + 700])
    # Also while less than two hours are known of the node.
    assert cpu([pod("a")], history({"n1": [900.0] * 3, "a": [200.0] * LONG})) == pytest.approx([200 + 700])


def test_a_history_that_was_not_read_for_long_counts_no_more():
    found = history({"a": [200.0] * STEPS})
    assert cpu([pod("a", started=0.0)], found, now=NOW + 2 * STEP) == pytest.approx([200])
    assert cpu([pod("a", started=0.0)], found, now=NOW + 3 * STEP) == pytest.approx([1000])
    assert cpu([pod("a", started=0.0)], found, now=NOW + 1e6) == pytest.approx([1000])


def test_lost_samples_do_not_begin_the_warm_up_anew():
    holes = [200.0] * STEPS
    holes[8:14] = [np.nan] * 6
    assert cpu([pod("a")], history({"a": holes})) == pytest.approx([200])


def test_pods_that_began_lately_or_have_not_are_left_to_the_release_loop():
    peaks = predictor().predict(ONE, [pod("new", started=NOW - 29.0), pod("none", started=None)], history({}), NOW)
    assert peaks.cutoff == NOW - 30.0
    assert not peaks.peak.any()


def test_peaks_are_by_node_and_move_to_another_layout_by_name():
    two, three = layout_of("n1", "n2"), layout_of("n0", "n1", "n2")
    pods = [pod("a", 1000.0), pod("b", 3000.0, node="n2"), pod("c", 500.0, node="gone")]
    peaks = predictor().predict(two, pods, history({}), NOW)
    assert peaks.on(two)[:, two.columns["cpu"]].tolist() == [1000, 3000]
    assert_allclose(peaks.on(three)[:, three.columns["cpu"]], [np.nan, 1000, 3000])


def test_nodes_with_a_long_history_are_counted():
    two = layout_of("n1", "n2")
    found = history({"n1": [900.0] * LONG, "n2": [900.0] * 3})
    assert predictor().predict(two, [], found, NOW).known == 1


def sigmas(evictions, pods, by=None):
    """Return N after an hour in which a pod ran opportunistically, with evictions at these times of it."""
    by = by or predictor()
    by.predict(ONE, pods, history({}), NOW)
    for at in evictions:
        by.note_eviction(pod("victim", opportunistic=True), at)
    return by.predict(ONE, pods, history({}), NOW + 3600.0).sigmas


def test_evictions_lead_n_but_not_those_right_after_a_regular_pod_began_beside_them():
    top, old = pod("top", opportunistic=True), pod("old", started=NOW)
    assert sigmas([], [top]) == pytest.approx(4.9)
    assert sigmas([NOW + 101.0], [top, old]) == pytest.approx(6.0)
    assert sigmas([NOW + 100.0], [top, old]) == pytest.approx(4.9)
    # An opportunistic one beside it excuses nothing, nor does one on another node.
    assert sigmas([NOW + 100.0], [top, pod("b", started=NOW, opportunistic=True)]) == pytest.approx(6.0)
    assert sigmas([NOW + 100.0], [top, pod("b", started=NOW, node="n2")]) == pytest.approx(6.0)


def test_who_does_not_lead_learns_nothing_of_n():
    by = predictor()
    sigmas([], [], by)
    assert by.predict(ONE, [], history({}), NOW + 3630.0, leads=False).sigmas == 5.0


def test_a_larger_n_predicts_more():
    by, found = predictor(), history({"a": [200.0, 400.0] * 15})
    pods = [pod("a"), pod("top", opportunistic=True, node="n2")]
    assert cpu(pods, found, by=by) == pytest.approx([800])
    by.note_eviction(pod("victim"), NOW + 5000.0)
    # An hour on, with the same samples, N is 6: mean 300 and six deviations of 100.
    late = history({"a": [200.0, 400.0] * 15}, end=NOW + 3600.0)
    assert cpu(pods, late, by=by, now=NOW + 3600.0) == pytest.approx([900])
