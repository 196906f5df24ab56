"""Sets of tasks that are chosen for one machine as a whole."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.arrays import needs
from extender.policy.bundling import bundle

amounts = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 0.1, 0.7])


def greedy(demand, room, most):
    """Return how many of each class start if each in turn has as many as fit."""
    left, counts = room.copy(), np.zeros(len(demand), dtype=int)
    for row, each in enumerate(demand):
        while counts[row] < most[row] and (each <= left).all():
            counts[row] += 1
            left = left - each
    return counts


def test_two_small_tasks_go_before_a_large_one_that_alone_scores_more():
    # Room for 10: the greedy set is one of 6 (score 6), and 4 stay free; two of 5 (score 5 each) are worth 10.
    chosen = bundle(np.array([6.0, 5.0]), needs(np.array([[6.0], [5.0]])), np.array([10.0]), np.array([9, 9]))
    assert chosen.tolist() == [0, 2]


def test_another_number_than_none_or_all_may_be_the_best():
    # CPU and memory of 10. Two of (5, 4) are worth 2.0 and leave no CPU; one of them with three of (1, 2) is worth 2.5.
    demand = np.array([[5.0, 4.0], [1.0, 2.0]])
    chosen = bundle(np.array([1.0, 0.5]), needs(demand), np.array([10.0, 10.0]), np.array([9, 9]))
    assert chosen.tolist() == [1, 3]


def test_of_equals_the_greedy_set_is_taken():
    chosen = bundle(np.array([1.0, 1.0]), needs(np.array([[1.0], [1.0]])), np.array([2.0]), np.array([5, 5]))
    assert chosen.tolist() == [2, 0]


@given(
    st.lists(st.tuples(amounts, amounts, st.integers(1, 5), st.floats(-2.0, 5.0)), min_size=2, max_size=3),
    st.tuples(st.integers(5, 20), st.integers(5, 20)),
)
def test_a_set_fits_and_is_never_worth_less_than_the_greedy_one(classes, room):
    classes = sorted(classes, key=lambda each: -each[3])
    demand, most = np.array([each[:2] for each in classes]), np.array([each[2] for each in classes])
    scores, room = np.array([each[3] for each in classes]), np.array(room, dtype=float)
    chosen = bundle(scores, needs(demand), room, most)
    assert (chosen <= most).all()
    assert (chosen @ demand <= room + 1e-9).all()
    assert chosen @ scores >= greedy(demand, room, most) @ scores - 1e-9
