"""Waits for locality between two plans: what they are by then, and what others than a plan do to them.

The last plan was at 100. Waits of 20 s at the node and 5 s at the rack; then anywhere.
"""

import pytest

from extender.planner import Carried, LocalityWait, Policy, farthest, pass_over, start, wait_now

POLICY = Policy(locality_waits=(20.0, 5.0))
INF = float("inf")


def carried(**waits):
    return Carried(locality=waits, planned_at=100.0)


@pytest.mark.parametrize(("counts", "seconds"), [(0.0, 10.0), (3.0, 13.0), (INF, 17.0)])
def test_time_since_the_plan_counts_as_far_as_the_plan_said(counts, seconds):
    # 7 s after it: none of them, 3, or all.
    assert wait_now(carried(j=LocalityWait(1, 10.0, counts)), "j", 107.0) == LocalityWait(1, seconds)


def test_a_job_that_nothing_is_known_of_stands_at_the_beginning():
    assert wait_now(carried(), "j", 107.0) == LocalityWait()


def test_a_clock_that_was_set_back_passes_over_nobody():
    assert wait_now(carried(j=LocalityWait(0, 10.0, INF)), "j", 50.0) == LocalityWait(0, 10.0)


@pytest.mark.parametrize(
    ("wait", "level"),
    [
        (LocalityWait(0, 19.0), 0),
        (LocalityWait(0, 20.0), 1),
        (LocalityWait(0, 24.0), 1),
        (LocalityWait(1, 4.0), 1),
    ],
)
def test_how_far_from_its_input_a_job_may_start_follows_from_its_last_start_and_its_wait(wait, level):
    assert farthest(POLICY, wait, {0, 1, 2}) == level


@pytest.mark.parametrize("wait", [LocalityWait(0, 25.0), LocalityWait(1, 5.0), LocalityWait(2, 0.0), LocalityWait(7)])
def test_after_all_waits_it_may_start_anywhere(wait):
    assert farthest(POLICY, wait, {0, 1, 2}) > 2


def test_it_does_not_wait_for_levels_that_there_are_none_of():
    # Without a rack 20 s are all; without its nodes it begins at the rack, and waits there for 5 s.
    assert farthest(POLICY, LocalityWait(0, 20.0), {0, 2}) > 2
    assert farthest(POLICY, LocalityWait(0, 4.0), {1, 2}) == 1
    assert farthest(POLICY, LocalityWait(0, 5.0), {1, 2}) > 2


def test_without_waits_it_may_start_anywhere():
    assert farthest(Policy(), LocalityWait(), {0, 1}) > 1


def test_being_passed_over_counts_from_then_on_and_for_so_long():
    # At 102, for 5 s: 7 s after the plan it is over. What counted for longer already still does.
    before = carried(j=LocalityWait(0, 10.0), k=LocalityWait(0, 1.0, INF), other=LocalityWait(1))
    after = pass_over(before, {"j", "k", "new"}, 102.0, 5.0)
    assert [wait_now(after, "j", at).seconds for at in (105.0, 107.0, 150.0)] == [15.0, 17.0, 17.0]
    assert wait_now(after, "k", 150.0).seconds == 51.0
    assert wait_now(after, "new", 150.0).seconds == 7.0
    assert after.locality["other"] == LocalityWait(1)


def test_if_nobody_is_passed_over_nothing_changes():
    before = carried(j=LocalityWait(0, 10.0))
    assert pass_over(before, set(), 102.0, 5.0) is before


def test_a_start_sets_the_wait_anew_at_its_level():
    before = carried(j=LocalityWait(0, 19.0, INF), other=LocalityWait(0, 3.0))
    after = start(POLICY, before, "j", 1)
    assert after.locality == {"j": LocalityWait(1), "other": LocalityWait(0, 3.0)}
    assert start(POLICY, before, "j", 9).locality["j"] == LocalityWait(2), "two waits: beyond them is anywhere"


def test_without_waits_a_start_is_not_kept():
    assert start(Policy(), carried(), "j", 1) == carried()
