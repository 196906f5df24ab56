from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from extender.policy.peak import (
    History,
    PeakTuning,
    SigmaRule,
    auto_room,
    class_peaks,
    is_warm,
    next_sigmas,
    peak,
    percentile_peak,
    sigma_peak,
)

NAN, INF = np.nan, np.inf
TWO = PeakTuning(warm_up_seconds=2.0, step_seconds=1.0, percentile=0.5)


def two(percentile):
    return replace(TWO, percentile=percentile)


def history(use, node=None, *, expected=10.0, most=INF, present=None):
    """One resource: `use` has a row of samples for each pod; all pods are on node 0 unless said."""
    use = np.array(use, dtype=float)[:, :, np.newaxis]
    node = np.zeros(len(use), dtype=np.intp) if node is None else np.array(node, dtype=np.intp)
    present = np.zeros(node.max(initial=0) + 1) if present is None else np.array(present, dtype=float)
    shape = (len(use), 1)
    return History(use, node, np.full(shape, expected), np.full(shape, most), present[:, np.newaxis])


def test_the_sigma_peak_is_the_mean_of_the_pods_total_and_n_deviations_of_it():
    # Totals 4, 8: the mean is 6, the deviation 2.
    both = history([[1, 3], [3, 5]])
    assert_allclose(sigma_peak(both, 0.0, TWO), [[6]])
    assert_allclose(sigma_peak(both, 5.0, TWO), [[16]])


def test_pods_that_take_turns_have_a_total_that_does_not_vary():
    assert_allclose(sigma_peak(history([[1, 3], [3, 1]]), 5.0, TWO), [[4]])


def test_the_percentile_peak_is_the_sum_of_what_each_pod_used_at_that_part_of_its_samples():
    # Of 1, 2, 3, 4 half is at most 2; of 5, 5, 5, 9 half is at most 5.
    both = history([[4, 2, 3, 1], [5, 9, 5, 5]])
    assert_allclose(percentile_peak(both, TWO), [[2 + 5]])
    assert_allclose(percentile_peak(both, two(0.75)), [[3 + 5]])
    assert_allclose(percentile_peak(both, two(0.99)), [[4 + 9]])


def test_the_peak_is_the_larger_of_both():
    turns = history([[1, 3], [3, 1]])  # 4 by the total, 3 + 3 by the pods' largest
    assert_allclose(peak(turns, 5.0, two(0.99)), [[6]])
    together = history([[1, 3], [1, 3]])  # 4 + 5 x 2 by the total, 6 by the pods
    assert_allclose(peak(together, 5.0, two(0.99)), [[14]])


@pytest.mark.parametrize(
    "predicted", [lambda pods: sigma_peak(pods, 5.0, TWO), lambda pods: percentile_peak(pods, TWO)]
)
def test_a_pod_in_warm_up_counts_as_expected_and_its_few_samples_do_not(predicted):
    assert_allclose(predicted(history([[2, 2], [NAN, 1]])), [[2 + 10]])
    assert_allclose(predicted(history([[NAN, NAN]])), [[10]])
    assert_allclose(predicted(history(np.empty((1, 0)))), [[10]])


def test_the_warm_up_is_a_time_and_lost_samples_do_not_make_it_longer():
    four = PeakTuning(warm_up_seconds=4 * 300.0)
    assert is_warm(history([[2, NAN, NAN, 3], [NAN, 2, 2, 2], [NAN, NAN, NAN, 2]]).use, four).T.tolist() == [
        [True, False, False]
    ]
    # Less than half of the time is too little, and so is what is known of long ago only.
    assert is_warm(history([[2, NAN, NAN, NAN, 3], [2, 2, NAN, NAN, NAN]]).use, four).tolist() == [[True], [False]]
    assert is_warm(history([[2, NAN, NAN, NAN, NAN, 3]]).use, replace(four, warm_up_seconds=1500.0)).tolist() == [
        [False]
    ]


def test_a_class_counts_by_what_nearly_all_of_its_pods_never_passed():
    tuning, classes = PeakTuning(percentile=0.8), np.array([0] * 5 + [1] * 4, dtype=np.intp)
    most = np.array([[5.0], [1], [4], [2], [3], [1], [1], [1], [1]])
    everyone = np.ones(9, dtype=bool)
    # Four of five pods never passed 4; of class 1 four have shown what they use, which is too few.
    assert_allclose(class_peaks(most, classes, everyone, 3, tuning), [[4], [NAN], [NAN]])
    # Those that still run count, but do not make a class known.
    running = everyone.copy()
    running[0] = False
    assert_allclose(class_peaks(most, classes, running, 2, tuning), [[NAN], [NAN]])
    six = np.concatenate((most[:5], [[9.0]], most[5:])), np.concatenate(([0], classes))
    assert_allclose(class_peaks(*six, np.arange(10) != 5, 2, tuning), [[5], [NAN]])


def test_a_class_of_which_a_resource_was_never_measured_is_not_known_by_it():
    most = np.full((5, 2), NAN)
    most[:, 0] = 7.0
    found = class_peaks(most, np.zeros(5, dtype=np.intp), np.ones(5, dtype=bool), 1, PeakTuning())
    assert_allclose(found, [[7, NAN]])


def test_a_pod_that_came_later_is_no_jump_of_the_total():
    # The second pod's mean, 3, stands where it was not there: totals 5, 5, 5.
    assert_allclose(sigma_peak(history([[2, 2, 2], [NAN, 3, 3]]), 5.0, TWO), [[5]])


def test_a_peak_is_at_most_what_pods_may_use_and_at_least_what_is_used_now():
    pods = [[0, 4], [0, 4]]  # 4 + 5 x 4 by the total
    assert_allclose(sigma_peak(history(pods, most=6), 5.0, TWO), [[12]])
    assert_allclose(sigma_peak(history(pods, most=6, present=[13]), 5.0, TWO), [[13]])


def test_a_node_without_pods_has_the_peak_of_what_it_uses_now_and_one_not_measured_has_none():
    pods = history([[1, 1]], node=[1], present=[3, 0, NAN])
    assert_allclose(peak(pods, 5.0, TWO), [[3], [1], [NAN]])
    nobody = History(np.empty((0, 4, 2)), np.empty(0, np.intp), np.empty((0, 2)), np.empty((0, 2)), np.ones((2, 2)))
    assert_allclose(peak(nobody, 5.0, TWO), np.ones((2, 2)))


def test_room_is_what_the_peak_leaves_and_none_where_nothing_was_predicted():
    allocatable, predicted = np.array([10.0, 10, 10, INF]), np.array([4.0, 12, NAN, NAN])
    assert_allclose(auto_room(allocatable, predicted), [6, 0, 0, INF])
    assert_allclose(auto_room(np.array([INF]), np.array([INF])), [INF])


def test_n_falls_slowly_under_the_budget_and_rises_with_what_is_over_it_by_one_at_most():
    # A tenth down without evictions, nothing at the budget, a tenth up for each budget beyond, at most 1.
    rule = SigmaRule(budget=2)
    assert_allclose(next_sigmas(np.full(5, 5.0), np.array([0.0, 1, 2, 6, 1000]), rule), [4.9, 4.95, 5, 5.2, 6])


def test_without_a_budget_one_eviction_is_too_many():
    assert_allclose(next_sigmas(np.full(2, 5.0), np.array([0.0, 1]), SigmaRule(budget=0)), [4.9, 6])


def test_n_stays_in_its_bounds():
    rule = SigmaRule(budget=2, least=1, most=10)
    assert_allclose(next_sigmas(np.array([9.5, 1.05]), np.array([100.0, 0]), rule), [10, 1])


# Properties

_AMOUNTS = st.floats(0, 1e6) | st.just(0.0)
_SAMPLES = _AMOUNTS | st.just(NAN)


@st.composite
def histories(draw):
    pods, samples, nodes, resources = (draw(st.integers(low, 4)) for low in (0, 0, 1, 1))
    return History(
        use=draw(arrays(float, (pods, samples, resources), elements=_SAMPLES)),
        node=draw(arrays(np.intp, pods, elements=st.integers(0, nodes - 1))),
        expected=draw(arrays(float, (pods, resources), elements=_AMOUNTS)),
        most=draw(arrays(float, (pods, resources), elements=_AMOUNTS | st.just(INF))),
        present=draw(arrays(float, (nodes, resources), elements=_AMOUNTS)),
    )


_TUNINGS = st.builds(
    PeakTuning, warm_up_seconds=st.integers(0, 4), step_seconds=st.just(1.0), percentile=st.floats(0, 1)
)


@given(histories(), st.floats(0, 20), _TUNINGS)
def test_no_peak_is_below_what_is_used_now_and_the_larger_of_both_is_never_below_either(pods, sigmas, tuning):
    by_sigma, by_percentile = sigma_peak(pods, sigmas, tuning), percentile_peak(pods, tuning)
    assert (by_sigma >= pods.present).all()
    assert (by_percentile >= pods.present).all()
    assert_array_equal(peak(pods, sigmas, tuning), np.maximum(by_sigma, by_percentile))


@given(histories(), st.floats(0, 20), st.floats(0, 20), _TUNINGS)
def test_a_larger_n_never_predicts_less_nor_makes_room(pods, one, other, tuning):
    low, high = (peak(pods, sigmas, tuning) for sigmas in sorted((one, other)))
    assert (low <= high).all()
    allocatable = np.full_like(low, 1e6)
    assert (auto_room(allocatable, low) >= auto_room(allocatable, high)).all()


@given(histories(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_percentile_never_predicts_less(pods, one, other):
    low, high = (percentile_peak(pods, two(part)) for part in sorted((one, other)))
    assert (low <= high).all()


@given(histories(), st.floats(0, 20), _TUNINGS)
def test_a_node_asked_about_alone_has_the_same_peak(pods, sigmas, tuning):
    whole = peak(pods, np.full(len(pods.present), sigmas), tuning)
    for node in range(len(pods.present)):
        mine = pods.node == node
        alone = History(
            use=pods.use[mine],
            node=np.zeros(mine.sum(), dtype=np.intp),
            expected=pods.expected[mine],
            most=pods.most[mine],
            present=pods.present[[node]],
        )
        assert_allclose(peak(alone, sigmas, tuning), whole[[node]], rtol=1e-9)


@given(histories(), st.integers(1, 1000), _TUNINGS)
def test_the_unit_of_an_amount_does_not_matter(pods, unit, tuning):
    scaled = replace(
        pods, use=pods.use * unit, expected=pods.expected * unit, most=pods.most * unit, present=pods.present * unit
    )
    assert_allclose(peak(scaled, 3.0, tuning), peak(pods, 3.0, tuning) * unit, rtol=1e-6, atol=1e-6 * unit)


@given(st.lists(st.floats(0, 100), max_size=300), st.floats(1, 10))
def test_until_n_is_at_its_most_evictions_keep_to_the_budget_over_time(evictions, start):
    rule = SigmaRule(budget=2, start=start)
    sigmas, counted, periods = np.float64(start), 0.0, 0
    for count in evictions:
        sigmas = next_sigmas(sigmas, np.float64(count), rule)
        assert rule.least <= sigmas <= rule.most
        if sigmas == rule.most:
            break
        counted, periods = counted + min(count / rule.budget, 1 + rule.rise / rule.fall), periods + 1
    # Every rise is paid by falls, but for the way from the start to the top.
    assert counted <= periods + (rule.most - start) / rule.fall + 1e-6


@given(st.floats(1, 10), st.floats(0, 100), st.floats(0, 100), st.floats(0, 10))
def test_more_evictions_never_lead_to_a_smaller_n(sigmas, one, other, budget):
    few, many = (
        next_sigmas(np.float64(sigmas), np.float64(count), SigmaRule(budget)) for count in sorted((one, other))
    )
    assert few <= many
