import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.policy import locality

WAITS = (10.0, 5.0)


def now(level, waited, waits=WAITS):
    return locality.level_now(np.array([level]), np.array([float(waited)]), np.array([waits], dtype=float)).item()


def to_next(level, waited, waits=WAITS):
    return locality.seconds_to_next(np.array([level]), np.array([float(waited)]), np.array([waits], dtype=float)).item()


@pytest.mark.parametrize(
    ("level", "waited", "then"),
    [
        (0, 0, 0),
        (0, 9.9, 0),
        (0, 10, 1),  # W1
        (0, 14.9, 1),
        (0, 15, 2),  # W1 + W2
        (1, 4.9, 1),
        (1, 5, 2),  # it was on a rack already: W2 alone
        (2, 0, 2),  # and anywhere already
    ],
)
def test_a_job_gets_from_level_to_level_as_algorithm_3_says(level, waited, then):
    assert now(level, waited) == then


def test_three_levels_of_waits_go_on_in_the_same_way():
    waits = (4.0, 2.0, 1.0)
    assert [now(0, seconds, waits) for seconds in (3, 4, 5, 6, 7)] == [0, 1, 1, 2, 3]


def test_a_level_without_a_wait_is_passed_at_once():
    assert now(0, 0, (0.0, 5.0)) == 1
    assert now(0, 0, (0.0, 0.0)) == 2


def test_without_waits_a_job_starts_anywhere():
    assert now(0, 0, ()) == 0  # the only level there is
    assert to_next(0, 0, ()) == math.inf


def test_it_is_known_how_long_it_takes_to_the_next_level():
    assert to_next(0, 4) == 6  # 10 - 4
    assert to_next(0, 12) == 3  # 10 + 5 - 12
    assert to_next(1, 1) == 4  # 5 - 1
    assert to_next(2, 0) == math.inf


@given(st.integers(0, 3), st.floats(0, 50), st.lists(st.floats(0, 10), min_size=3, max_size=3))
def test_after_all_waits_a_job_starts_anywhere_and_before_that_something_is_left_to_wait(level, waited, waits):
    found = now(level, waited, waits)
    assert level <= found <= 3
    if waited >= sum(waits[level:]):
        assert found == 3
    if found < 3:
        assert 0 < to_next(level, waited, waits) <= sum(waits)


def test_the_papers_example_of_equation_2():
    skips = locality.skips_for(0.95, tasks=20, nodes=1000, replicas=3)
    assert skips == pytest.approx(1000 / 3 * math.log(2))  # (1 - 0.95) x 20 = 1, and 1 / (1 + 1) = 1/2
    assert skips / 1000 == pytest.approx(0.23, abs=0.002)
    # 8 slots per node: D / S x T = 0.23 M / (8 M) x T, 2.8 % of T as the paper has it
    rate = locality.rate_of_room(8 * 1000, task_seconds=100.0)
    assert locality.wait_for(skips, rate) == pytest.approx(2.9, abs=0.1)


def test_the_papers_example_of_facebook():
    skips = locality.skips_in(10.0, rate=27.0)
    assert skips == 270
    # 1 - exp(-3 x 270 x 1 / 620) = 0.73 (4.1)
    assert locality.expected_locality(skips, tasks=1, nodes=620, replicas=3) == pytest.approx(0.729, abs=0.001)


def test_expected_locality_is_the_mean_over_the_tasks_left():
    # R D / M = 3 x 10 / 30 = 1: (1 - 1/e + 1 - 1/e^2) / 2
    found = locality.expected_locality(10, tasks=2, nodes=30, replicas=3)
    assert found == pytest.approx(1 - (math.exp(-1) + math.exp(-2)) / 2)


@given(st.floats(0.01, 0.999), st.integers(1, 500), st.integers(1, 5000), st.integers(1, 5))
def test_equation_2_meets_its_target_by_the_closed_form_and_exceeds_it_by_the_sum(target, tasks, nodes, replicas):
    skips = locality.skips_for(target, tasks=tasks, nodes=nodes, replicas=replicas)
    assert locality.least_locality(skips, tasks=tasks, nodes=nodes, replicas=replicas) == pytest.approx(target)
    assert locality.expected_locality(skips, tasks=tasks, nodes=nodes, replicas=replicas) >= target - 1e-9


def test_who_lets_nothing_pass_expects_nothing():
    assert locality.expected_locality(0, tasks=10, nodes=100, replicas=3) == 0
    assert locality.least_locality(0, tasks=10, nodes=100, replicas=3) == 0
