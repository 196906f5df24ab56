import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from extender.policy.slack import LEAST_LOAD, idle_room, load_besides_pods, over, ramped_up, smallest_set, to_free, used

NAN, INF = np.nan, np.inf


def rows(*values):
    return np.array(values, dtype=float)


def test_use_is_the_larger_of_what_pods_use_and_what_the_node_uses_beyond_the_systems_part():
    # The node uses 7, 2 of that is the system's. Its pods say 4, or 6.
    assert_allclose(used(rows([7], [7]), rows([4], [6]), rows([2], [2])), [[5], [6]])


def test_use_of_which_one_half_is_missing_is_the_other_half_and_of_which_both_are_is_unknown():
    assert_allclose(used(rows([7], [NAN], [NAN]), rows([NAN], [3], [NAN]), rows([0], [0], [0])), [[7], [3], [NAN]])


def test_a_system_that_uses_less_than_its_part_does_not_make_room():
    assert_allclose(used(rows([1], [1]), rows([0], [NAN]), rows([2], [2])), [[0], [0]])


def test_a_load_that_neither_pods_nor_the_system_account_for_is_told_and_a_small_difference_is_none():
    node, pods, system = rows([7, 3.0 + 5 * LEAST_LOAD]), rows([3, 2]), rows([1, 1])
    assert_allclose(load_besides_pods(node, pods, system, rows([10, 10])), [[3, 0]])


def test_where_the_node_or_its_pods_were_not_measured_no_load_is_known():
    assert_allclose(load_besides_pods(rows([NAN, 9]), rows([3, NAN]), rows([0, 0]), rows([10, 10])), [[0, 0]])
    assert_allclose(load_besides_pods(rows([9]), rows([3]), rows([0]), rows([INF])), [[0]])


def test_a_young_pod_counts_as_expected_and_only_once():
    # 5 measured, 1 of them of a pod that is expected to use 4.
    assert_allclose(ramped_up(rows([5]), rows([1]), rows([4])), [[8]])


def test_a_young_pod_that_was_measured_at_more_than_its_node_takes_nothing_off_what_is_expected():
    assert_allclose(ramped_up(rows([1]), rows([3]), rows([4])), [[4]])


def test_idle_room_is_what_use_leaves_below_the_threshold():
    assert_allclose(idle_room(rows([3, 1], [9, 1]), rows([10, 2], [10, 2]), rows(0.8, 0.5)), [[5, 0.6], [0, 0]])


def test_what_was_not_measured_is_no_room_and_what_is_not_limited_is_any_room():
    assert_allclose(idle_room(rows([NAN, NAN]), rows([10, INF]), rows(0.8)), [[0, INF]])


def test_with_a_threshold_of_nothing_there_is_no_room_not_even_of_what_is_not_limited():
    assert_allclose(idle_room(rows([3, 1]), rows([10, INF]), rows(0.0)), [[0, 0]])


def test_over_is_by_how_much_use_passes_the_threshold_and_never_of_what_was_not_measured():
    assert_allclose(over(rows(9.95, NAN, 100, 5), rows(10, 10, INF, 10), rows(0.99, 0.9, 0.9, 0.9)), [0.05, 0, 0, 0])


def choice(short, use, lost=None, may_go=None):
    use = np.array(use, dtype=float)
    lost = np.ones(len(use)) if lost is None else rows(*lost)
    may_go = np.ones(len(use), bool) if may_go is None else np.array(may_go)
    chosen = smallest_set(rows(*short), use, lost, may_go)
    return None if chosen is None else sorted(chosen.tolist())


def test_nobody_goes_where_nothing_is_over():
    assert choice([0, 0], [[1, 1]]) == []


def test_one_that_suffices_goes_alone_and_of_several_the_one_that_loses_least():
    assert choice([2], [[1], [5], [2]], lost=[0, 9, 3]) == [2]


def test_two_go_where_no_one_suffices():
    assert choice([3, 1], [[2, 0], [1, 1], [1, 0]]) == [0, 1]


def test_who_may_not_go_stays_even_if_another_loses_more():
    assert choice([2], [[2], [2]], lost=[0, 9], may_go=[False, True]) == [1]


def test_nobody_goes_in_vain():
    assert choice([5], [[1], [2]]) is None
    assert choice([5], [[9], [2]], may_go=[False, True]) is None
    assert choice([5], [[NAN]]) is None


@pytest.mark.parametrize("short", range(1, 13))
def test_as_many_go_as_are_short_whatever_part_of_that_each_is(short):
    # Six sixths add up to less than 1: six devices that are short are six of one each all the same.
    assert len(choice([short], [[1]] * short)) == short
    assert len(choice([short], [[1]] * (short + 2))) == short


def test_beyond_two_those_that_others_make_needless_stay_first_who_would_lose_most():
    # The first brings most, 6 of 10 three times, and not one of the other three can be left out for it.
    assert choice([10, 10, 10], [[6, 6, 6], [10, 0, 0], [0, 10, 0], [0, 0, 10]]) == [1, 2, 3]
    # All four bring (6, 6). The first or the second may stay, but not both: (3, 3) would be left.
    assert choice([4, 4], [[2, 1], [1, 2], [0, 3], [3, 0]], lost=[2, 1, 1, 2]) == [1, 2, 3]


def test_all_go_once_where_what_all_bring_is_enough_but_for_rounding():
    # 0.4 - 0.1 - 0.1 - 0.1 - 0.1 leaves 3e-17.
    assert choice([0.4], [[0.1]] * 4, lost=[1, 2, 2, 2]) == [0, 1, 2, 3]


amounts = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 5.0])


@st.composite
def nodes(draw):
    pods, resources = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    use = np.array(draw(st.lists(amounts, min_size=pods * resources, max_size=pods * resources)))
    short = np.array(draw(st.lists(amounts, min_size=resources, max_size=resources)))
    lost = np.array(draw(st.lists(amounts, min_size=pods, max_size=pods)))
    return short, use.reshape(pods, resources), lost


@settings(max_examples=300, deadline=None)
@given(nodes())
def test_the_set_is_the_smallest_there_is_and_of_its_size_the_one_that_loses_least(node):
    short, use, lost = node
    chosen = smallest_set(short, use, lost, np.ones(len(use), bool))
    sets = [
        subset
        for size in range(len(use) + 1)
        for subset in itertools.combinations(range(len(use)), size)
        if (use[list(subset)].sum(axis=0) >= short).all()
    ]
    if chosen is None:
        assert not sets
        return
    assert (use[chosen].sum(axis=0) >= short).all()
    least = min(len(subset) for subset in sets)
    assert len(chosen) == least
    assert lost[chosen].sum() == pytest.approx(min(lost[list(subset)].sum() for subset in sets if len(subset) == least))


def free(waited, used, allocatable=100.0):
    return to_free(rows(waited), rows(used), rows(allocatable), at_most=0.1, floor=0.8).tolist()[0]


def test_where_regular_pods_wait_a_tenth_comes_free_at_once_but_nothing_below_the_floor():
    assert free(0.11, 100) == pytest.approx(10)
    assert free(1.0, 100) == pytest.approx(10)  # it does not say how much is lacking
    assert free(0.5, 83) == pytest.approx(3)
    assert free(0.5, 79) == 0


def test_where_they_do_not_wait_for_longer_than_is_borne_or_nobody_knows_nothing_comes_free():
    assert free(0.1, 100) == 0
    assert free(NAN, 100) == 0
    assert free(0.5, NAN) == 0
    assert free(0.5, 100, INF) == 0
