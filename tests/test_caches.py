"""Whether what the watches brought can be trusted."""

import threading
from types import SimpleNamespace

import pytest

from extender.app import Caches


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


class FakeWatch:
    """Offers what Caches asks of a watch."""

    def __init__(self, name, clock, heard_at=None, connected=False):
        self.resource = SimpleNamespace(name=name)
        self.synced = threading.Event()
        self.connected = connected
        self.heard_at = heard_at
        self._clock = clock

    def age_seconds(self):
        return float("inf") if self.heard_at is None else self._clock() - self.heard_at


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watches(clock):
    return [FakeWatch(name, clock, heard_at=1_000.0, connected=True) for name in ("nodes", "pods")]


@pytest.fixture
def settled(watches, clock):
    for watch in watches:
        watch.synced.set()
    caches = Caches(watches, 60.0, clock)
    caches.settle()
    return caches


def test_caches_are_not_ready_before_every_watch_has_listed(watches, clock):
    caches = Caches(watches, 60.0, clock)
    thread = threading.Thread(target=caches.settle)
    thread.start()
    watches[0].synced.set()
    assert not caches.wait(0.8)  # longer than they take to settle
    assert caches.problem() == "caches are not synced yet"
    watches[1].synced.set()
    assert caches.wait(10)
    thread.join()
    assert caches.problem() is None


def test_bindings_under_way_at_the_start_get_a_moment_to_show(watches, clock):
    for watch in watches:
        watch.synced.set()
    caches = Caches(watches, 60.0, clock)
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


def test_while_a_watch_is_down_flights_do_not_grow_old(settled, watches, clock):
    clock.now = 1_010.0
    assert settled.flight_time() == 1_010
    watches[0].connected, watches[0].heard_at = False, 1_004.0
    watches[1].connected, watches[1].heard_at = False, 1_007.0
    assert settled.flight_time() == 1_004  # the watch that has been down for longest
    watches[0].connected = True
    assert settled.flight_time() == 1_007


def test_a_watch_that_was_never_heard_stops_no_clock(settled, watches, clock):
    watches[0].connected, watches[0].heard_at = False, None
    clock.now = 1_010.0
    assert settled.flight_time() == 1_010


def test_ages_are_told_by_resource(settled, watches, clock):
    clock.now = 1_003.0
    watches[1].heard_at = None
    assert settled.ages() == {"nodes": 3, "pods": float("inf")}
