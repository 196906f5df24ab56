"""What idle room suits: short tasks, and those that are seldom evicted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.policy.suitability import suitability

seconds = st.lists(st.one_of(st.floats(0, 1e6), st.just(np.inf)), min_size=1, max_size=6)


def test_short_tasks_that_are_seldom_evicted_suit_idle_room_best():
    # The median is 20: brevity 2/3, 1/2, 1/3; of the evicted one 1/2 is left.
    found = suitability(np.array([10.0, 20.0, 40.0]), np.array([0.0, 0.5, 0.0]))
    assert np.allclose(found, [(2 / 3 + 1) / 2, (1 / 2 + 1 / 2) / 2, (1 / 3 + 1) / 2])


def test_a_task_of_unknown_duration_counts_as_long_and_still_by_its_evictions():
    assert suitability(np.array([np.inf, np.inf]), np.array([0.0, 1.0])).tolist() == [0.5, 0.0]


@given(seconds, st.floats(1e-3, 1e3))
def test_it_is_a_part_and_the_unit_of_time_makes_no_difference(durations, unit):
    known, nobody = np.array(durations), np.zeros(len(durations))
    found = suitability(known, nobody)
    assert ((found >= 0) & (found <= 1)).all()
    assert np.allclose(found, suitability(known * unit, nobody))


@given(seconds)
def test_a_shorter_task_never_suits_less(durations):
    found = suitability(np.array(durations), np.zeros(len(durations)))
    order = np.argsort(durations)
    assert (np.diff(found[order]) <= 1e-12).all()
