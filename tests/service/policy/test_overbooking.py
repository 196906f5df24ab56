"""What a start beyond what there is gains, and what it costs others: the arithmetic, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.policy.overbooking import benefit, cost


def test_two_tasks_of_six_tenths_of_a_link_as_in_the_paper():
    # Each takes t = 10 and .6 of the link. Both at once take 1.2 t. The first one has just begun.
    # Waiting, the second would end at 20, now at 12. The first ends at 12 instead of 10.
    assert benefit(10.0, 10.0, 1.2) == pytest.approx(8.0)
    assert cost(np.array([10.0]), np.ones(1), np.array([1.2]), 12.0) == pytest.approx(2.0)


def test_if_another_machine_has_room_at_once_nothing_is_gained():
    assert benefit(0.1, 10.0, 1.2) == pytest.approx(-1.9)


def test_who_ends_later_than_the_new_task_is_slowed_only_while_that_is_there():
    # In 12 s at 1.2 times as long it does 10 s of its work: 2 s late, whatever is left after that.
    for left in (10.0, 50.0, np.inf):
        assert cost(np.array([left]), np.ones(1), np.array([1.2]), 12.0) == pytest.approx(2.0)


def test_who_is_not_slowed_costs_nothing_even_if_it_never_ends():
    assert cost(np.array([np.inf, 5.0]), np.ones(2), np.array([1.0, 1.1]), 99.0) == pytest.approx(0.5)


@given(st.floats(0.1, 100), st.floats(1, 2), st.floats(0, 1), st.floats(0.1, 100))
def test_the_cost_is_what_a_replay_says(left, before, more, present):
    after = before + more
    done = min(present / after, left)  # while the new task is there
    ends = done * after + (left - done) * before
    assert cost(np.array([left]), np.array([before]), np.array([after]), present) == pytest.approx(
        ends - left * before, abs=1e-6
    )
