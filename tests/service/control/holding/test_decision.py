"""When new pods are held: times by hand."""

from hypothesis import given
from hypothesis import strategies as st

from extender.control.holding.decision import Holding


def test_new_pods_pass_until_somebody_waits_and_are_held_from_then_on():
    holding = Holding()
    assert not holding.held

    holding.note(somebody_waits=False, now=1.0)
    assert not holding.held

    holding.note(somebody_waits=True, now=2.0)
    assert holding.held


def test_they_pass_again_once_nobody_has_waited_for_five_seconds():
    holding = Holding()
    holding.note(somebody_waits=True, now=10.0)

    holding.note(somebody_waits=False, now=14.9)
    assert holding.held

    holding.note(somebody_waits=False, now=15.0)
    assert not holding.held


def test_room_that_comes_and_goes_flips_nothing():
    holding = Holding()
    for second in range(60):
        holding.note(somebody_waits=second % 4 == 0, now=float(second))
        assert holding.held


def test_whom_a_predecessor_held_is_held_for_five_seconds_at_least():
    holding = Holding()
    holding.begin(100.0)

    holding.note(somebody_waits=False, now=104.0)
    assert holding.held
    holding.note(somebody_waits=False, now=105.0)
    assert not holding.held


def test_while_nobody_knows_who_waits_it_stays_as_it_is_and_those_held_are_for_five_seconds_more():
    holding = Holding()
    holding.keep(1.0)
    holding.note(somebody_waits=False, now=1.5)
    assert not holding.held

    holding.note(somebody_waits=True, now=10.0)
    holding.keep(20.0)
    holding.note(somebody_waits=False, now=24.9)
    assert holding.held
    holding.note(somebody_waits=False, now=25.0)
    assert not holding.held


def test_a_clock_that_is_set_back_holds_nobody_for_longer():
    holding = Holding()
    holding.note(somebody_waits=True, now=1_000.0)

    holding.note(somebody_waits=False, now=10.0)
    assert holding.held
    holding.note(somebody_waits=False, now=15.0)
    assert not holding.held


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 20.0)), max_size=60))
def test_it_is_held_just_where_somebody_has_waited_within_the_last_five_seconds_of_looks(looks):
    holding, now, waited_at = Holding(), 0.0, None
    for waits, pause in looks:
        now += pause
        holding.note(somebody_waits=waits, now=now)
        waited_at = now if waits else waited_at

        assert holding.held is (waited_at is not None and now - waited_at < 5.0)
