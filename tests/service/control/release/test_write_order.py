"""The order of the writes for held pods: releases come soon after nominations, and a gang's after all of its own."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import pytest

from extender.control.release.write_order import WRITES_BETWEEN, WriteOrder


class Writes:
    """`made` is what was written. Each nomination adds its pod's release; whoever adds one calls `run_soon`."""

    def __init__(self, pods, *, gang=(), run_soon=lambda _: None):
        self.order, self.made, self.gang, self.lock = WriteOrder(), [], set(gang), Lock()
        self.run_soon = run_soon
        self.add(range(pods))

    def add(self, pods):
        for pod in pods:
            self.order.add_nomination(lambda pod=pod: self.nominate(pod))
            self.run_soon(self.order.next)

    def note(self, *what):
        with self.lock:
            self.made.append(what)

    def nominate(self, pod):
        self.note("nominate", pod)
        self.order.add_release(lambda: self.note("release", pod), whole=pod in self.gang)
        self.run_soon(self.order.next)

    def places(self, pod):
        return self.made.index(("nominate", pod)), self.made.index(("release", pod))


def test_a_release_waits_for_a_few_nominations_and_not_for_all():
    writes = Writes(100)
    for _ in range(200):
        writes.order.next()
    for pod in range(100):
        nominated, released = writes.places(pod)
        between = [what for what, _ in writes.made[nominated + 1 : released]]
        assert between.count("nominate") == min(WRITES_BETWEEN - 1, 99 - pod)
    assert [pod for what, pod in writes.made if what == "release"] == list(range(100))


def test_nobody_of_a_gang_is_released_before_all_that_were_added_with_it_are_nominated():
    writes = Writes(30, gang=range(30))
    for _ in range(60):
        writes.order.next()
    assert [what for what, _ in writes.made] == ["nominate"] * 30 + ["release"] * 30


def test_nobody_of_a_gang_is_released_while_another_thread_nominates_its_last_one():
    writes = Writes(0, gang=[0])
    begun, may_end = Event(), Event()

    def slow():
        begun.set()
        may_end.wait(10)
        writes.note("nominate", 1)

    writes.order.add_nomination(slow)
    writes.add([0])
    with ThreadPoolExecutor(1) as pool:
        pool.submit(writes.order.next)
        assert begun.wait(10)
        writes.order.next()
        writes.order.next()
        assert writes.made == [("nominate", 0)]
        may_end.set()
    assert writes.made == [("nominate", 0), ("nominate", 1), ("release", 0)]


def test_pods_that_come_later_do_not_hold_up_a_gang():
    writes = Writes(3, gang=range(3))
    for _ in range(3):
        writes.order.next()
    writes.add(range(3, 40))
    for _ in range(3):
        writes.order.next()
    assert writes.made[3:] == [("release", 0), ("release", 1), ("release", 2)]


def test_a_nomination_that_fails_does_not_hold_up_releases():
    writes = Writes(1, gang=[0])

    def fail():
        raise RuntimeError

    writes.order.add_nomination(fail)
    writes.order.next()
    with pytest.raises(RuntimeError):
        writes.order.next()
    writes.order.add_nomination(lambda: writes.note("nominate", 7))
    writes.order.next()
    assert writes.made == [("nominate", 0), ("release", 0)]


def test_threads_make_each_write_once():
    with ThreadPoolExecutor(4) as pool:
        writes = Writes(300, gang=range(100, 200), run_soon=pool.submit)
        while len(writes.made) < 600:
            time.sleep(0.01)
    assert sorted(writes.made) == sorted((what, pod) for what in ("nominate", "release") for pod in range(300))
