"""How far the order of a job's DAG counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.policy.dag_order import order_factor


def test_the_first_waiting_task_of_a_job_keeps_its_alignment_and_others_lose_how_far_they_are_behind():
    # 0.75 is the first; 0.5 is 0.25 behind it, and counts half of that at rank 0.5.
    priority = np.array([0.5, 0.75, -np.inf])
    assert order_factor(priority, rank=1.0).tolist() == [0.75, 1.0, 1.0]
    assert order_factor(priority, rank=0.5).tolist() == [0.875, 1.0, 1.0]


def test_at_rank_0_and_where_nobody_waits_nothing_counts():
    assert order_factor(np.array([0.5, 1.0]), rank=0.0).tolist() == [1.0, 1.0]
    assert order_factor(np.array([-np.inf, -np.inf]), rank=1.0).tolist() == [1.0, 1.0]
    assert order_factor(np.empty(0), rank=1.0).tolist() == []


@given(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=6), st.floats(0.0, 0.5))
def test_a_job_that_is_nearly_done_is_not_behind_one_that_begins(priorities, later):
    early = order_factor(np.array(priorities) * 0.5 + 0.5, rank=1.0)
    late = order_factor(np.array(priorities) * 0.5 + 0.5 - later * 0.99, rank=1.0)
    assert late == pytest.approx(early)
    assert early.max() == 1.0
