import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from extender.policy.shares import parts_as_wanted, queue_shares, scaled_minimums


def shares(*queues):
    """Each queue: (weight, minimum, parent, active)."""
    weight, minimum, parent, active = zip(*queues, strict=True)
    return queue_shares(
        np.array(weight, float), np.array(minimum, float), np.array(parent, np.intp), np.array(active, bool)
    )


def test_active_queues_share_by_weight_and_others_get_nothing():
    assert_allclose(shares((3, 0, -1, True), (1, 0, -1, True), (4, 0, -1, False)), [0.75, 0.25, 0])


def test_a_queue_gets_at_least_its_minimum_and_the_others_divide_the_rest_by_weight():
    # By weight 1/10, 3/10, 6/10. The first gets .4; the level of the others is .6 / 9: .2 and .4.
    assert_allclose(shares((1, 0.4, -1, True), (3, 0, -1, True), (6, 0, -1, True)), [0.4, 0.2, 0.4])


def test_a_minimum_that_the_rest_falls_below_counts_as_well():
    # By weight .1, .3, .6. The first takes .5; by weight the others had .1667 and .3333, but the second wants .25.
    assert_allclose(shares((1, 0.5, -1, True), (3, 0.25, -1, True), (6, 0, -1, True)), [0.5, 0.25, 0.25])


def test_a_minimum_below_what_the_weight_gives_changes_nothing():
    assert_allclose(shares((3, 0.5, -1, True), (1, 0.1, -1, True)), [0.75, 0.25])


def test_a_queue_without_weight_gets_its_minimum_only():
    assert_allclose(shares((0, 0.2, -1, True), (0, 0, -1, True), (5, 0, -1, True)), [0.2, 0, 0.8])


def test_where_nobody_has_a_weight_all_get_the_same_but_none_less_than_its_minimum():
    assert_allclose(shares((0, 0.1, -1, True), (0, 0.3, -1, True)), [0.5, 0.5])
    assert_allclose(shares((0, 0.1, -1, True), (0, 0.7, -1, True)), [0.3, 0.7])
    assert_allclose(shares((0, 0, -1, True), (0, 0, -1, True)), [0.5, 0.5])


def wanted_parts(*siblings):
    """Each sibling: (weight, minimum, wanted)."""
    weight, minimum, wanted = np.array(siblings, dtype=float).T
    return parts_as_wanted(weight, minimum, np.full(len(siblings), -1), wanted)


def test_a_minimum_counts_as_far_as_it_is_wanted():
    # The minimums are more than the whole. The first wants a tenth only, so nobody's is scaled down.
    assert_allclose(wanted_parts((1, 0.7, 0.1), (1, 0.5, np.inf)), [0.1, 0.9])


def test_what_those_with_a_weight_do_not_want_goes_to_those_without():
    assert_allclose(wanted_parts((1, 0, 0.3), (0, 0, np.inf), (0, 0.1, np.inf)), [0.3, 0.35, 0.35])


def test_parents_divide_what_their_children_may_use():
    # The parent (weight 3 of 4) has .75: its children divide it 1 : 2.
    queues = (3, 0, -1, False), (1, 0, 0, True), (2, 0, 0, True), (1, 0, -1, True)
    assert_allclose(shares(*queues), [0, 0.25, 0.5, 0.25])


def test_a_parent_with_no_active_child_takes_no_part():
    assert_allclose(shares((3, 0.5, -1, True), (1, 0, 0, False), (1, 0, -1, True)), [0, 0, 1])


def test_a_parents_minimum_counts_for_its_children_and_theirs_are_scaled_down_into_its_share():
    # The parent gets its .5. Its children want at least .4 and .6 of the cluster: half of each.
    queues = (1, 0.5, -1, False), (1, 0.4, 0, True), (1, 0.6, 0, True), (9, 0, -1, True)
    assert_allclose(shares(*queues), [0, 0.2, 0.3, 0.5])


def test_minimums_that_are_larger_than_the_parents_share_are_scaled_down_by_their_size():
    # The parent gets .2; .6 and .2 of the cluster become three parts and one.
    queues = (1, 0, -1, False), (1, 0.6, 0, True), (5, 0.2, 0, True), (4, 0, -1, True)
    assert_allclose(shares(*queues), [0, 0.15, 0.05, 0.8])


def test_minimums_of_siblings_that_exceed_the_cluster_are_scaled_down_and_that_is_said():
    minimum, scaled = scaled_minimums(np.array([0.5, 1.5, 0.3, 0.3]), np.array([-1, -1, 0, 0]))
    assert_allclose(minimum, [0.25, 0.75, 0.3, 0.3])
    assert scaled
    minimum, scaled = scaled_minimums(np.array([0.1] * 10), np.full(10, -1))
    assert_allclose(minimum, 0.1)
    assert not scaled


@pytest.mark.parametrize("parent", [[0], [1, 0], [-1, 2, 3, 1], [1, 2, 1]])
def test_parents_that_go_round_in_a_circle_are_refused(parent):
    ones = np.ones(len(parent))
    with pytest.raises(ValueError, match="circle"):
        queue_shares(ones, ones, np.array(parent), ones > 0)


def test_without_queues_there_are_no_shares():
    none = np.empty(0)
    assert len(queue_shares(none, none, np.empty(0, np.intp), none > 0)) == 0
    assert not scaled_minimums(none, np.empty(0, np.intp))[1]


@st.composite
def trees(draw):
    count = draw(st.integers(1, 9))
    amounts = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0, 3.0]), min_size=count, max_size=count)
    weight, minimum = np.array(draw(amounts)), np.array(draw(amounts))
    parent = np.array([draw(st.integers(-1, row - 1)) for row in range(count)], np.intp)
    active = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    return weight, scaled_minimums(minimum, parent)[0], parent, active


def leaves(parent):
    return ~np.isin(np.arange(len(parent)), parent)


def above(parent, queue):
    """Return the queue and all that is above it."""
    return [] if queue < 0 else [queue, *above(parent, parent[queue])]


@settings(max_examples=200, deadline=None)
@given(trees())
def test_shares_add_up_to_the_cluster_and_only_active_leaves_have_one(tree):
    _, _, parent, active = tree
    share = queue_shares(*tree)
    counts = active & leaves(parent)
    assert (share >= 0).all()
    assert not share[~counts].any()
    assert share.sum() == pytest.approx(1.0 if counts.any() else 0.0)


@settings(max_examples=200, deadline=None)
@given(trees())
def test_nobody_gets_less_than_its_minimum_where_no_parent_has_too_little_for_it(tree):
    _, minimum, parent, active = tree
    share = queue_shares(*tree)
    counts = active & leaves(parent)
    subtree = np.array([share[[queue in above(parent, leaf) for leaf in range(len(parent))]].sum() for queue in parent])
    for queue in np.flatnonzero(counts):
        siblings = [other for other in range(len(parent)) if parent[other] == parent[queue]]
        there_is = 1.0 if parent[queue] < 0 else subtree[queue]
        if minimum[siblings].sum() <= there_is:
            assert share[queue] >= minimum[queue] - 1e-9


@settings(max_examples=200, deadline=None)
@given(trees(), st.data())
def test_more_weight_never_means_less(tree, data):
    weight, minimum, parent, active = tree
    queue = data.draw(st.sampled_from(np.flatnonzero(leaves(parent)).tolist()))
    more = weight.copy()
    more[queue] += 0.5
    assert queue_shares(more, minimum, parent, active)[queue] >= queue_shares(*tree)[queue] - 1e-9


@settings(max_examples=200, deadline=None)
@given(trees(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(tree, random):
    weight, minimum, parent, active = tree
    order = np.array(random.sample(range(len(weight)), len(weight)))
    place = np.append(np.argsort(order), -1)  # where each row went; the last: no parent
    share = queue_shares(weight[order], minimum[order], place[parent[order]], active[order])
    assert_allclose(share, queue_shares(*tree)[order], atol=1e-12)
