import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from lab.sim.engine.use.peak_estimates import LEAST_ENDED, RAMP_SECONDS, estimated_demand, ramp_up_allowance

NAN = np.nan
AMOUNTS = st.floats(0, 1e12)
SHAPE = (3, 2)
SOME = arrays(float, SHAPE, elements=AMOUNTS)


def test_what_three_tasks_of_the_stage_have_shown_counts_before_all_else():
    shown = np.array([[3, 2]])
    assert_array_equal(estimated_demand([[8.0, 8.0]], np.array([[5.0, 5.0]]), [[2.0, 2.0]], shown), [[2, 5]])


def test_what_earlier_runs_ended_with_counts_before_what_is_declared():
    nothing = np.zeros((1, 2)), np.zeros((1, 2), dtype=int)
    assert_array_equal(estimated_demand([[8.0, 8.0]], np.array([[5.0, NAN]]), *nothing), [[5, 8]])


def test_an_estimate_can_be_above_what_is_declared():
    assert_array_equal(estimated_demand([[8.0]], np.array([[NAN]]), [[9.0]], np.array([[3]])), [[9]])


@given(SOME, SOME, SOME, arrays(int, SHAPE, elements=st.integers(0, 5)))
def test_an_estimate_is_always_one_of_the_three(declared, earlier, measured, shown):
    demand = estimated_demand(declared, earlier, measured, shown)
    assert ((demand == declared) | (demand == earlier) | (demand == measured)).all()
    assert_array_equal(demand[shown >= LEAST_ENDED], measured[shown >= LEAST_ENDED])


def test_the_allowance_falls_to_nothing_at_thirty_seconds():
    # 8 promised, 2 used: 6 x (1 - age / 30).
    ages = np.array([0.0, 10.0, 15.0, 30.0, 300.0])
    assert_allclose(ramp_up_allowance(np.full((1, 5), 8.0), np.full((1, 5), 2.0), ages), [[6, 4, 3, 0, 0]])


def test_who_uses_more_than_was_promised_is_allowed_no_more():
    assert ramp_up_allowance(np.array([[2.0]]), np.array([[8.0]]), np.array([0.0])) == 0


@given(SOME, SOME, arrays(float, SHAPE[1], elements=st.floats(0, 100)))
def test_with_its_allowance_a_task_counts_between_what_it_uses_and_the_larger_of_use_and_promise(promised, used, age):
    counted = used + ramp_up_allowance(promised, used, age)
    assert (counted >= used).all()
    assert (counted <= np.maximum(promised, used) * (1 + 1e-12)).all()
    old = age >= RAMP_SECONDS
    assert_array_equal(counted[:, old], used[:, old])


@given(SOME, SOME, arrays(float, SHAPE[1], elements=st.floats(0, 100)), st.floats(0, 100))
def test_the_allowance_never_grows_with_age(promised, used, age, more):
    assert (ramp_up_allowance(promised, used, age + more) <= ramp_up_allowance(promised, used, age)).all()
