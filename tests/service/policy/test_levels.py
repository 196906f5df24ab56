from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from extender.policy.levels import best, levels


def longhand(keys):
    """Levels by the definition: count who is strictly better."""
    ranks = [sum(other > key for other in keys) for key in keys]
    return [max(0, 10 - ceil(log2(rank + 1))) for rank in ranks]


def test_each_level_holds_twice_as_many_nodes_as_the_one_above():
    found = levels(np.arange(5000.0), np.zeros(5000), step=0.05)
    # Ranks 0, 1, 2-3, 4-7, ... 256-511 on levels 10 to 1, the other 4,488 on level 0.
    assert_array_equal(np.bincount(found), [4488, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1])


def test_the_best_of_a_close_field_wins():
    assert_array_equal(levels(np.array([0.981, 0.982, 0.983]), np.zeros(3), step=0.0), [8, 9, 10])


def test_scores_of_one_step_are_equal_and_then_the_fuller_node_wins():
    scores, fullness = np.array([0.98, 0.99, 0.70]), np.array([0.6, 0.2, 0.9])
    # By twentieths 0.98 and 0.99 are both 1.00; 0.70 stays behind, however full.
    assert_array_equal(levels(scores, fullness, step=0.05), [10, 9, 8])
    assert_array_equal(levels(scores, fullness, step=0.0), [9, 10, 8])


def test_equal_nodes_share_the_level_of_the_first():
    # Ranks 0, 0, 0, 3, 4: three before the fourth.
    assert_array_equal(levels(np.array([5.0, 5, 5, 4, 3]), np.zeros(5), step=0.0), [10, 10, 10, 8, 7])


def test_noise_of_floats_makes_no_difference():
    assert_array_equal(levels(np.array([0.3, 0.1 + 0.2]), np.array([0.7, 0.1 * 7]), step=0.0), [10, 10])


def test_a_score_of_minus_infinity_is_the_last():
    assert_array_equal(levels(np.array([-np.inf, -3.0, -1.0]), np.array([1.0, 0, 0]), step=0.05), [8, 9, 10])


@pytest.mark.parametrize("nodes", [0, 1])
def test_few_nodes_are_all_best(nodes):
    assert_array_equal(levels(np.zeros(nodes), np.zeros(nodes), step=0.05), [10] * nodes)


@given(arrays(float, st.integers(0, 40), elements=st.integers(-5, 5).map(float)), st.data())
def test_levels_agree_with_counting_who_is_better(scores, data):
    fullness = data.draw(arrays(float, scores.shape, elements=st.sampled_from([0.0, 0.5, 1.0])))
    scores.setflags(write=False)
    fullness.setflags(write=False)
    expected = longhand(list(zip(np.rint(scores / 2), fullness, strict=True)))
    assert_array_equal(levels(scores, fullness, step=2.0), expected)


@given(arrays(float, st.integers(1, 40), elements=st.floats(-3, 3)), st.floats(0, 1))
def test_somebody_is_always_best_and_no_level_leaves_the_range(scores, step):
    found = levels(scores, np.zeros(scores.shape), step=step)
    assert found.max() == 10
    assert found.min() >= 0
    assert found[np.argmax(scores)] == 10


def test_what_is_stranded_comes_before_shape_and_fullness():
    scores, fullness = np.array([0.9, 0.9, 0.5, 0.9]), np.array([0.5, 0.9, 0.1, 0.9])
    strands = np.array([0, 2, -3, 0])
    assert levels(scores, fullness, step=0.05, strands=strands).tolist() == [8, 8, 10, 9]
    assert best(scores, fullness, step=0.05, strands=strands).tolist() == [False, False, True, False]


def test_scores_of_any_size_are_told_apart_behind_what_is_stranded():
    scores, alike = np.array([-np.inf, 3.0, 2.0, 5.0]), np.zeros(4)
    for most in (1, 6):
        assert levels(scores, alike, step=0.0, strands=np.array([0, 0, 0, most])).tolist() == [8, 10, 9, 8]


def test_where_everywhere_as_much_is_stranded_it_changes_nothing():
    scores, fullness = np.array([0.9, 0.9, 0.5]), np.array([0.5, 0.9, 0.1])
    alike = np.full(3, 7)
    assert levels(scores, fullness, step=0.05, strands=alike).tolist() == levels(scores, fullness, step=0.05).tolist()
    assert best(scores, fullness, step=0.05, strands=alike).tolist() == best(scores, fullness, step=0.05).tolist()


numbers = st.integers(-3, 3)


@given(st.lists(st.tuples(numbers, st.sampled_from([0.0, 0.5, 1.0]), numbers), max_size=9), st.sampled_from([0.0, 2.0]))
def test_the_best_are_those_of_the_first_level(nodes, step):
    scores, fullness, strands = np.array(nodes, dtype=float).reshape(-1, 3).T
    for stranded in (None, strands.astype(np.int64)):
        found = best(scores, fullness, step=step, strands=stranded)
        assert found.tolist() == (levels(scores, fullness, step=step, strands=stranded) == 10).tolist()
