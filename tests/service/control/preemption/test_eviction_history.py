"""Which part of a class's starts on idle room was evicted."""

from extender.control.preemption.eviction_history import EvictionHistory


def history(starts, evictions, name="a"):
    found = EvictionHistory()
    for _ in range(starts):
        found.note_start(name)
    for _ in range(evictions):
        found.note_eviction(name)
    return found


def test_it_is_the_part_of_the_starts_and_nothing_of_who_never_started():
    assert history(4, 1).evicted(["a", "b"]).tolist() == [0.25, 0.0]


def test_it_never_is_more_than_all_also_where_the_starts_were_seen_by_a_predecessor():
    assert history(0, 3).evicted(["a"]).tolist() == [1.0]


def test_what_is_long_past_counts_for_less():
    found = history(64, 64)
    for _ in range(64):
        found.note_start("a")
    # 64 of 64, halved to 32 of 32, 32 starts more; 32 of 64, halved to 16 of 32, and 32 starts more.
    assert found.evicted(["a"]).tolist() == [16 / 64]


def test_classes_that_have_ended_are_forgotten():
    found = history(1, 1)
    found.note_start("b")
    found.keep({"b"})
    assert (len(found), found.evicted(["a"]).tolist()) == (1, [0.0])
