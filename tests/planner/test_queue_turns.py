"""Which queues are served: shares as parts of what all have, by hand."""

import numpy as np
import pytest

from extender.cluster.waiting import Jobs
from extender.planner.queue_turns import QueueTurns
from extender.policy.shares import in_proportion


def turn(share, fair, wanting=None):
    share, fair = np.array(share, dtype=float), np.array(fair, dtype=float)
    return in_proportion(share, fair, np.ones(len(fair), dtype=bool) if wanting is None else np.array(wanting))[0]


def test_who_has_more_than_its_proportion_waits():
    # In all 0.8; fair 1/2, 1/3, 1/6 of it: 0.4, 0.27, 0.13.
    assert turn([0.5, 0.2, 0.1], [1 / 2, 1 / 3, 1 / 6]).tolist() == [False, True, True]
    assert turn([0.3, 0.3, 0.2], [1 / 2, 1 / 3, 1 / 6]).tolist() == [True, False, False]


def test_all_are_served_where_nobody_has_anything_and_where_all_have_their_part():
    assert turn([0, 0, 0], [0.5, 0.3, 0.2]).all()
    assert turn([0.25, 0.15, 0.1], [0.5, 0.3, 0.2]).all()


def test_only_who_wants_something_counts():
    # Without the first, 0.3 in all: 0.15 each.
    assert turn([0.9, 0.1, 0.2], [0.4, 0.3, 0.3], [False, True, True]).tolist() == [False, True, False]


def test_a_queue_without_a_share_is_served_only_when_nobody_else_wants_anything():
    assert turn([0, 0.5], [0, 1]).tolist() == [False, True]
    assert turn([0, 0.5], [0, 1], [True, False]).tolist() == [True, False]


@pytest.mark.parametrize("seed", range(20))
def test_somebody_is_always_served(seed):
    draw = np.random.default_rng(seed)
    wanting = draw.random(6) < 0.5
    assert turn(draw.random(6), draw.random(6), wanting).any() == wanting.any()


def test_a_queue_of_many_jobs_with_nothing_each_does_not_go_before_one_that_is_owed_more():
    # Queue 0: one job with 0.3; queue 1: a job with 0.4 and two with nothing. Equal weights: queue 0 is below.
    jobs = Jobs(
        names=["a", "b", "c", "d"],
        queue=np.array([0, 1, 1, 1]),
        weight=np.ones(4),
        allocated=np.zeros((4, 1)),
        work=np.ones(4),
        queue_names=["x", "y"],
        queue_weight=np.array([0.5, 0.5]),
    )
    everyone = np.ones(4, dtype=bool)
    turns = QueueTurns(jobs, np.array([[0.3], [0.4], [0.0], [0.0]]), everyone)
    assert turns.jobs(everyone).tolist() == [True, False, False, False]
    assert not turns.count(0, np.array([0.04])), "0.34 of 0.7: still below the half"
    assert turns.count(0, np.array([0.04]))
    assert turns.jobs(everyone).tolist() == [True, False, False, False]
    turns.count(0, np.array([0.04]))
    assert turns.jobs(everyone).tolist() == [False, True, True, True]
