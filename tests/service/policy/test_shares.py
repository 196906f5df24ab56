import numpy as np
from numpy.testing import assert_allclose

from extender.policy import shares

ALL = np.array([True, True, True, True])


def test_the_dominant_share_is_the_largest_and_leaves_out_what_nobody_limits():
    allocated = np.array([[9.0, 2.0, 5.0], [3.0, 12.0, 5.0]])
    total = np.array([18.0, 36.0, np.inf])
    assert_allclose(shares.dominant_shares(allocated, total), [9 / 18, 12 / 36])


def test_a_queues_fair_share_is_divided_among_its_active_jobs_by_weight():
    # Queue weights 3 : 1; in the first, jobs of weight 2 and 1; its third job wants nothing.
    fair = shares.fair_shares(
        np.array([0, 0, 0, 1]),
        np.array([2.0, 1.0, 5.0, 1.0]),
        np.array([3.0, 1.0]),
        np.array([True, True, False, True]),
    )
    assert_allclose(fair, [0.75 * 2 / 3, 0.75 / 3, 0.0, 0.25])


def test_a_queue_without_active_jobs_leaves_its_share_to_the_others():
    fair = shares.fair_shares(np.array([0, 1]), np.ones(2), np.array([9.0, 1.0]), np.array([False, True]))
    assert_allclose(fair, [0.0, 1.0])


def test_the_fairness_knob_admits_the_jobs_furthest_below_their_share():
    owed = np.array([0.1, 0.9, -0.5, 0.4])
    assert shares.first_in_line(owed, ALL, fairness=0.0)[0].all()
    assert shares.first_in_line(owed, ALL, fairness=0.25)[0].tolist() == [True, True, False, True]  # ceil(0.75 * 4) = 3
    assert shares.first_in_line(owed, ALL, fairness=0.99)[0].tolist() == [False, True, False, False]  # ceil(0.04) = 1


def test_only_active_jobs_are_in_line():
    owed = np.array([0.9, 0.1, 0.2, 0.3])
    active = np.array([False, True, True, True])
    assert shares.first_in_line(owed, active, fairness=0.5)[0].tolist() == [False, False, True, True]  # ceil(1.5) = 2
