"""Turns that nobody comes for end, and begin again."""

from itertools import pairwise

from extender.control.filter_order.unused_turns import UnusedTurns


def unused():
    return UnusedTurns(refused_seconds=2.0, untried_seconds=20.0, again_seconds=30.0)


def test_a_turn_of_refused_pods_ends_sooner_than_one_of_pods_that_were_never_tried():
    turns = unused()
    for second in range(3):
        turns.note({"refused": False, "new": True}, float(second))
    assert set(turns.out(2.0)) == {"refused"}
    turns.note({"new": True}, 20.0)
    assert set(turns.out(20.0)) == {"refused", "new"}


def test_who_comes_starts_anew():
    turns = unused()
    turns.note({"a": False}, 0.0)
    turns.use("a")
    turns.note({"a": False}, 2.0)
    assert not turns.out(2.0)
    turns.note({"a": False}, 4.0)
    turns.use("a")
    assert not turns.out(4.0)


def test_a_turn_that_was_interrupted_is_counted_from_its_new_beginning():
    turns = unused()
    turns.note({"a": False}, 0.0)
    turns.note({}, 1.0)
    turns.note({"a": False}, 2.0)
    assert not turns.out(2.0)


def test_a_class_gets_another_chance_after_a_while():
    turns = unused()
    turns.note({"a": False}, 0.0)
    turns.note({"a": False}, 2.0)
    assert set(turns.out(32.0)) == {"a"}
    assert not turns.out(32.1)


def test_a_turn_that_is_back_within_a_second_goes_on():
    turns = unused()
    for step in range(21):  # every other plan, ten a second
        turns.note({"b" if step % 2 else "a": False}, step / 10)
    assert set(turns.out(2.0)) == {"a"}
    turns.note({"b": False}, 2.1)
    assert set(turns.out(2.1)) == {"a", "b"}


def test_a_class_that_is_left_out_again_and_again_waits_longer_each_time_up_to_five_minutes():
    turns = unused()
    left_out = []
    for second in range(1_500):
        if "a" not in turns.out(float(second)):
            turns.note({"a": False}, float(second))
            if "a" in turns.out(float(second)):
                left_out.append(second)
    pauses = [later - earlier for earlier, later in pairwise(left_out)]
    assert pauses == [33, 63, 123, 243, 303, 303, 303]  # 30, 60, 120, 240, 300; and 1 + 2 s until it is left out again


def test_who_came_once_waits_no_longer_than_at_first():
    turns = unused()
    for second in (0.0, 2.0, 33.0, 35.0):  # left out twice
        turns.note({"a": False}, second)
    turns.use("a")
    turns.note({"a": False}, 36.0)
    turns.note({"a": False}, 38.0)
    assert set(turns.out(68.0)) == {"a"}
    assert not turns.out(68.1)


def test_a_class_that_got_no_other_turn_for_long_waits_no_longer_than_at_first():
    turns = unused()
    turns.note({"a": False}, 0.0)
    turns.note({"a": False}, 2.0)
    for second in (333.0, 335.0):  # 30 s, and five minutes more, after 2.0
        turns.note({"a": False}, second)
    assert set(turns.out(365.0)) == {"a"}
    assert not turns.out(365.1)
