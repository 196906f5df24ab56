"""The order among queues and their parts, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.policy.shares import parts_as_wanted
from extender.policy.turn import first_by_rank, leaf_ranks, paths_from_top, sibling_keys


def keys(share, weight, minimum, held=None):
    share = np.array(share, float)
    return sibling_keys(share, share if held is None else np.array(held, float), np.array(weight), np.array(minimum))


def parts(weight, minimum, wanted, parent=None):
    count = len(weight)
    above = np.full(count, -1) if parent is None else np.array(parent)
    return parts_as_wanted(np.array(weight, float), np.array(minimum, float), above, np.array(wanted, float))


def test_who_is_below_its_minimum_comes_first_however_little_others_have_by_their_weight():
    # 0.1 of a minimum of 0.2, against nothing and a weight of 100.
    found = keys([0.1, 0.0, 0.3], [1.0, 100.0, 1.0], [0.2, 0.0, 0.0])
    assert found.argsort().tolist() == [0, 1, 2]


def test_of_two_below_their_minimums_the_one_that_has_less_of_it_comes_first():
    assert keys([0.1, 0.1, 0.0], [1.0] * 3, [0.2, 0.4, 0.0]).argsort().tolist() == [1, 0, 2]


def test_beyond_minimums_it_is_the_share_by_weight():
    # 0.3 / 3 = 0.1, 0.2 / 1, 0.15 / 1.
    assert keys([0.3, 0.2, 0.15], [3.0, 1.0, 1.0], [0.0] * 3) == pytest.approx([0.1, 0.2, 0.15])


def test_what_a_queue_saves_counts_beyond_its_minimum_only():
    assert keys([0.1], [1.0], [0.2], held=[0.9]) == pytest.approx([-0.5])
    assert keys([0.2], [1.0], [0.2], held=[0.9]) == pytest.approx([0.9])


def test_a_queue_without_weight_comes_last():
    assert keys([0.0, 0.5], [0.0, 1.0], [0.0, 0.0]).argsort().tolist() == [1, 0]


def test_among_cousins_their_parents_come_first():
    # Groups: a team with two queues, and a queue beside it. The team has 0.5, the queue 0.3: the queue goes first,
    # although one of the team's queues has nothing.
    parent, leaf = np.array([-1, 0, 0, -1]), np.array([1, 2, 3])
    found = keys([0.5, 0.5, 0.0, 0.3], [1.0] * 4, [0.0] * 4)
    assert leaf_ranks(found, parent, leaf).tolist() == [2, 1, 0]


def test_parts_go_by_weight():
    assert parts([3, 1], [0, 0], [9, 9]) == pytest.approx([0.75, 0.25])


def test_what_one_does_not_want_the_others_divide():
    # The first wants 0.1: 0.9 for the others, by weight.
    assert parts([1, 2, 1], [0, 0, 0], [0.1, 9, 9]) == pytest.approx([0.1, 0.6, 0.3])


def test_nobody_is_below_its_minimum_and_the_others_divide_the_rest():
    assert parts([3, 1, 1], [0, 0, 0.35], [9, 9, 9]) == pytest.approx([0.4875, 0.1625, 0.35])


def test_a_minimum_that_is_not_wanted_is_others():
    assert parts([1, 1], [0.6, 0], [0.2, 9]) == pytest.approx([0.2, 0.8])


def test_minimums_that_are_too_much_are_scaled_down():
    assert parts([1, 1], [0.9, 0.6], [9, 9]) == pytest.approx([0.6, 0.4])


def test_children_divide_what_their_parent_has():
    # A team of weight 1 beside a queue of weight 1; in the team weights 3 and 1.
    found = parts([1, 3, 1, 1], [0] * 4, [0, 9, 9, 9], parent=[-1, 0, 0, -1])
    assert found == pytest.approx([0.5, 0.375, 0.125, 0.5])


def test_what_is_wanted_may_be_more_than_there_is_by_no_more_than_rounding():
    # The second is 0.6 and one in the last digit, so the sum is more than 1.
    wanted = [0.3, np.nextafter(0.6, 1), 0.1]
    assert parts([3, 1, 1], [0, 0, 0], wanted) == pytest.approx(wanted)


amounts = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0, 3.0]), st.sampled_from([0.0, 0.1, 0.5]), st.floats(0, 2)),
    min_size=1,
    max_size=6,
)


@given(amounts)
def test_all_is_given_out_or_everybody_has_what_it_wants(queues):
    weight, minimum, wanted = (np.array(column) for column in zip(*queues, strict=True))
    found = parts(weight, minimum, wanted)
    assert found.sum() == pytest.approx(min(1.0, np.minimum(wanted, 1.0).sum()))
    assert (found <= wanted + 1e-9).all()
    least = np.minimum(minimum, wanted)
    assert (found >= least * min(1.0, 1.0 / max(least.sum(), 1e-9)) - 1e-9).all()


def test_queues_with_equal_keys_below_one_parent_are_equal_and_those_of_other_parents_are_not():
    # Two parents with equal keys; below the first two queues that are equal, below the second one with the same key.
    parent, leaf = np.array([-1, -1, 0, 0, 1]), np.array([2, 3, 4])
    ranks = leaf_ranks(np.array([0.5, 0.5, 0.2, 0.2, 0.2]), parent, leaf).tolist()
    assert ranks[0] == ranks[1] != ranks[2]


def test_who_is_below_its_minimum_comes_first_wherever_it_stands():
    # Below p, which has much, a queue that has half of its minimum; beside p one that has nothing and no minimum.
    parent, leaf = np.array([-1, -1, 0, 0]), np.array([1, 2, 3])
    ranks = leaf_ranks(np.array([0.9, 0.0, -0.5, 0.3]), parent, leaf).tolist()
    assert ranks == [1, 0, 2]
    # What is below a group that is below its minimum comes before others too.
    assert leaf_ranks(np.array([-0.1, 0.0, 0.5, 0.3]), parent, leaf).tolist() == [2, 1, 0]


def test_queues_of_weight_0_below_one_parent_are_equal_too():
    parent, leaf = np.array([-1, -1, 0, 0]), np.array([1, 2, 3])
    assert leaf_ranks(np.array([0.5, 0.2, np.inf, np.inf]), parent, leaf).tolist() == [0, 1, 1]


def test_a_queue_beside_a_group_is_held_against_the_group_however_much_is_below_that():
    # Below p: queue x, and group g with queue y. x has less than g: it goes first, though p has more than y.
    parent, leaf = np.array([-1, 0, 0, 2]), np.array([1, 3])
    assert leaf_ranks(np.array([1.0, 0.4, 0.6, 0.6]), parent, leaf).tolist() == [0, 1]
    assert leaf_ranks(np.array([1.0, 0.6, 0.4, 0.4]), parent, leaf).tolist() == [1, 0]


def test_queues_at_the_top_with_equal_keys_are_equal_beside_one_that_has_a_parent():
    parent, leaf = np.array([-1, -1, -1, 0]), np.array([1, 2, 3])
    assert leaf_ranks(np.array([0.5, 0.2, 0.2, 0.5]), parent, leaf).tolist() == [0, 0, 1]


def test_who_is_below_its_minimum_comes_first_though_its_parent_has_more_than_others():
    # Rows: two parents, and a queue of each.
    keys, parent, leaf, queues = (
        np.array([0.5, 0.0, -0.5, 0.0]),
        np.array([-1, -1, 0, 1]),
        np.array([2, 3]),
        np.arange(2),
    )
    assert first_by_rank(keys, paths_from_top(parent, leaf), queues, np.ones(2, bool)).tolist() == [True, False]


@given(st.data())
def test_who_is_first_by_rank_is_who_has_the_least_rank(data):
    count = data.draw(st.integers(1, 7))
    parent = np.array([data.draw(st.integers(-1, group - 1)) for group in range(count)])
    leaf = np.setdiff1d(np.arange(count), parent)
    keys = np.array(data.draw(st.lists(st.sampled_from([-0.5, 0.0, 0.5, np.inf]), min_size=count, max_size=count)))
    queue = np.array(data.draw(st.lists(st.integers(0, len(leaf) - 1), max_size=9)), dtype=np.intp)
    pool = np.array([data.draw(st.booleans()) for _ in queue], dtype=bool)
    ranks = leaf_ranks(keys, parent, leaf)[queue]
    expected = pool & (ranks == ranks[pool].min(initial=np.inf))
    assert first_by_rank(keys, paths_from_top(parent, leaf), queue, pool).tolist() == expected.tolist()
