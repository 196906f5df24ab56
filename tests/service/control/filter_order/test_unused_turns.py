"""Turns that nobody comes for end, and begin again."""

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
