"""Who is below its share and may have room back, and who may lose it."""

import numpy as np
import pytest

from extender.policy.reclaim import below_fair_share, below_minimum_share, excess, may_lose

TOTAL = np.array([10.0, 100.0])


def alone(queues):
    """Return the groups of queues without parents: each is in itself."""
    return np.arange(queues)[:, np.newaxis]


def test_a_queue_is_below_its_fair_share_only_while_it_wants_more():
    share, fair = np.array([0.1, 0.1, 0.7, 0.3]), np.array([0.3, 0.3, 0.3, 0.3])
    wants = np.array([True, False, True, True])
    assert below_fair_share(share, fair, wants).tolist() == [True, False, False, False]


def test_a_queue_without_a_minimum_has_no_right_by_one():
    share, fair, minimum = np.array([0.0, 0.0]), np.array([0.5, 0.5]), np.array([0.2, 0.0])
    assert below_minimum_share(share, fair, minimum, np.array([True, True]), alone(2)).tolist() == [True, False]


def test_a_minimum_counts_as_far_as_its_fair_share_goes():
    # Sure of 0.6, but there is only 0.4 for it: at 0.4 it has what there is.
    share, fair, minimum = np.array([0.4]), np.array([0.4]), np.array([0.6])
    assert not below_minimum_share(share, fair, minimum, np.array([True]), alone(1)).any()


@pytest.mark.parametrize(("parent", "expected"), [(0.3, True), (0.4, False)])
def test_a_child_has_a_right_by_its_parents_minimum_while_that_is_not_met(parent, expected):
    # Two children with 0.25 of fair share each, the first with nothing; the parent is sure of 0.4.
    groups_of = np.array([[0, 2], [1, 2]])
    share, fair, minimum = np.array([0.0, parent, parent]), np.array([0.25, 0.25, 0.5]), np.array([0.0, 0.0, 0.4])
    found = below_minimum_share(share, fair, minimum, np.array([True, True]), groups_of)
    assert found.tolist() == [expected, False], "the other is at its fair share or above"


def test_a_parents_minimum_counts_as_far_as_its_fair_share_goes():
    # The parent is sure of 0.8, but there is only 0.5 for it, and it has that: what its child lacks, a sibling has.
    groups_of = np.array([[0, 2], [1, 2]])
    share, fair, minimum = np.array([0.0, 0.5, 0.5]), np.array([0.25, 0.25, 0.5]), np.array([0.0, 0.0, 0.8])
    assert not below_minimum_share(share, fair, minimum, np.array([True, True]), groups_of).any()


def test_a_parents_minimum_gives_no_right_to_a_queue_that_is_not_below_it():
    # The first queue is below a parent that lacks 0.4, the second below none.
    groups_of = np.array([[0, 2], [1, -1]])
    share, fair, minimum = np.array([0.0, 0.2, 0.0]), np.array([0.5, 0.5, 0.5]), np.array([0.0, 0.0, 0.4])
    assert below_minimum_share(share, fair, minimum, np.array([True, True]), groups_of).tolist() == [True, False]


def test_what_is_above_the_fair_share_is_the_most_that_may_be_cut():
    assert excess(np.array([0.7, 0.2]), np.array([0.5, 0.5])) == pytest.approx([0.2, 0.0])


@pytest.mark.parametrize(("amount", "may"), [([1.0, 0.0], True), ([2.0, 0.0], True), ([3.0, 0.0], False)])
def test_nobody_is_cut_below_his_fair_share(amount, may):
    # 7 of 10 is 0.7: with 2 less it is at its half.
    held, fair = np.array([[7.0, 10.0]]), np.array([0.5])
    assert may_lose(held, np.array(amount), TOTAL, fair) == may


def test_a_loss_that_is_not_of_the_dominant_resource_does_not_count():
    held, fair = np.array([[6.0, 10.0]]), np.array([0.6])
    assert may_lose(held, np.array([0.0, 10.0]), TOTAL, fair)


def test_each_of_the_groups_must_keep_its_share():
    # The queue is far above, its parent is at its share.
    held, fair = np.array([[5.0, 0.0], [5.0, 0.0]]), np.array([0.2, 0.5])
    loss = np.array([1.0, 0.0])
    assert not may_lose(held, loss, TOTAL, fair)
    assert may_lose(held[:1], loss, TOTAL, fair[:1]), "for a sibling the parent loses nothing"


def test_many_may_be_asked_about_at_once():
    # 4 of 10 are left of 6 less 2: above 0.4 by nothing, below 0.5.
    held, fair = np.array([[[6.0, 0.0]], [[6.0, 0.0]]]), np.array([[0.4], [0.5]])
    assert may_lose(held, np.array([[2.0, 0.0], [2.0, 0.0]]), TOTAL, fair).tolist() == [True, False]
