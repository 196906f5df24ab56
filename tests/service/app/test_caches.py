"""Whether what the watches brought can be trusted."""

import threading
from types import SimpleNamespace

import pytest

from extender.app.caches import Caches


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


class FakeWatch:
    """Offers what Caches asks of a watch."""

    def __init__(self, name, clock, heard_at=None, connected=False, optional=False):
        self.resource = SimpleNamespace(name=name, optional=optional)
        self.synced, self.tried = threading.Event(), threading.Event()
        self.connected = connected
        self.heard_at = heard_at
        self.up = 0.0
        self._clock = clock

    def connected_seconds(self, _now):
        return self.up

    def age_seconds(self):
        return float("inf") if self.heard_at is None else self._clock() - self.heard_at


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watches(clock):
    return [FakeWatch(name, clock, heard_at=1_000.0, connected=True) for name in ("nodes", "pods")]


@pytest.fixture
def settled(watches):
    for watch in watches:
        watch.synced.set()
    caches = Caches(watches, 60.0)
    caches.settle()
    return caches


def test_caches_are_not_ready_before_every_watch_has_listed(watches):
    caches = Caches(watches, 60.0)
    thread = threading.Thread(target=caches.settle)
    thread.start()
    watches[0].synced.set()
    assert not caches.wait(0.8)  # longer than they take to settle
    assert caches.problem() == "caches are not synced yet"
    watches[1].synced.set()
    assert caches.wait(10)
    thread.join()
    assert caches.problem() is None


def test_an_optional_kind_is_waited_for_until_it_has_tried_once(watches, clock):
    groups = FakeWatch("podgroups", clock, optional=True)
    for watch in watches:
        watch.synced.set()
    caches = Caches([*watches, groups], 60.0)
    thread = threading.Thread(target=caches.settle)
    thread.start()
    assert not caches.wait(0.8)  # its first list may yet come, and with it what is a gang
    groups.tried.set()  # and failed
    assert caches.wait(10)
    thread.join()
    assert caches.problem() is None


def test_bindings_under_way_at_the_start_get_a_moment_to_show(watches):
    for watch in watches:
        watch.synced.set()
    caches = Caches(watches, 60.0)
    thread = threading.Thread(target=caches.settle)
    thread.start()
    assert not caches.wait(0.1)
    thread.join()
    assert caches.wait(0)


def test_a_watch_that_has_been_down_for_too_long_is_named(settled, watches, clock):
    watches[1].connected = False
    clock.now = 1_060.0
    assert settled.problem() is None  # 60 s, not more
    clock.now = 1_060.1
    assert settled.problem() == "the watch of pods has been down for more than 60 s"
    watches[1].connected = True
    assert settled.problem() is None


def test_a_connected_watch_may_be_silent_for_long(settled, clock):
    clock.now = 5_000.0
    assert settled.problem() is None


def test_flights_grow_old_by_the_watch_that_was_open_for_the_least_time(settled, watches):
    watches[0].up, watches[1].up = 40.0, 25.0
    assert settled.flight_time() == 25.0


def test_time_that_one_watch_was_down_for_is_not_made_up_for_while_another_is(settled, watches):
    watches[0].up, watches[1].up = 100.0, 60.0  # the second was down for 40 s, long ago
    before = settled.flight_time()
    watches[1].up += 30.0  # now it is the first that is down
    assert settled.flight_time() == before
    watches[0].up, watches[1].up = 110.0, 100.0
    assert settled.flight_time() == before + 10.0


def test_a_kind_that_is_needed_later_counts_from_then_on(watches, clock):
    needed = list(watches)
    caches = Caches(needed, 60.0)
    watches[0].up = watches[1].up = 100.0
    assert caches.flight_time() == 100.0
    late = FakeWatch("late", clock)
    needed.append(late)
    late.up, watches[0].up, watches[1].up = 3.0, 101.0, 101.0
    assert caches.flight_time() == 101.0
    watches[0].up = watches[1].up = 150.0
    assert caches.flight_time() == 101.0, "it is down"


def test_ages_are_told_by_resource(settled, watches, clock):
    clock.now = 1_003.0
    watches[1].heard_at = None
    assert settled.ages() == {"nodes": 3, "pods": float("inf")}
