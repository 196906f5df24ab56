import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.stays_off import StaysOff
from tests.service.costs import lines_of


def off(stays, now, task_class="a", node="n1"):
    return bool(stays.barred([task_class], [node], now)[0, 0])


def test_an_evicted_class_stays_off_that_node_for_a_minute_and_off_no_other():
    stays = StaysOff()
    stays.note("a", "n1", 0.0)
    assert stays.barred(["a", "b"], ["n1", "n2"], 59.0).tolist() == [[True, False], [False, False]]
    assert not off(stays, 60.0)


def test_each_time_it_stays_off_twice_as_long_up_to_an_hour():
    stays, now, seconds = StaysOff(), 0.0, []
    for _ in range(8):
        stays.note("a", "n1", now)
        seconds.append(next(wait for wait in range(1, 4000) if not off(stays, now + wait)))
        now += seconds[-1]
    assert seconds == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_several_pods_of_one_overload_count_once():
    stays = StaysOff()
    for now in (0.0, 1.0, 2.0):
        stays.note("a", "n1", now)
    assert not off(stays, 60.0)


def test_after_as_long_again_without_an_eviction_it_starts_anew():
    stays = StaysOff()
    stays.note("a", "n1", 0.0)
    stays.note("a", "n1", 120.0)
    assert not off(stays, 180.0)


def test_ten_thousand_are_remembered_and_then_one_of_the_first_class_is_forgotten():
    stays = StaysOff()
    for number in range(10_000):
        stays.note("first" if number < 2 else "later", f"n{number}", 0.0)
    stays.note("last", "n1", 1.0)

    assert stays.nodes_of("first", 2.0) == ["n1"]
    assert len(stays.nodes_of("later", 2.0)) == 9_998
    assert stays.nodes_of("last", 2.0) == ["n1"]


def test_a_note_costs_the_same_however_many_nodes_its_class_stays_off():
    def lines(count):
        stays = StaysOff()
        for number in range(count):
            stays.note("a", f"n{number}", 0.0)
        return lines_of(lambda: stays.note("a", "another", 1.0))

    assert lines(800) == lines(50)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.0, 30.0), min_size=1, max_size=40))
def test_a_pod_that_is_evicted_whenever_it_comes_back_is_evicted_ever_more_seldom(delays):
    stays, now, evictions = StaysOff(), 0.0, []
    for delay in delays:
        while off(stays, now):
            now += 10.0
        now += delay
        stays.note("a", "n1", now)
        evictions.append(now)
    gaps = np.diff(evictions)
    assert all(gap >= min(60.0 * 2**place, 3600.0) - 1e-6 for place, gap in enumerate(gaps))
