"""Nothing registered outlives its owner; what was taken off the list is left alone."""

import subprocess

import pytest

from lab.controlplane.guard import Guard, watch


@pytest.fixture
def sleepers():
    started = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_what_is_still_registered_at_the_end_is_killed_and_nothing_else(sleepers):
    left, removed = sleepers
    watch([f"+{left.pid}\n", f"+{removed.pid}\n", f"-{removed.pid}\n"])
    assert left.wait(5) == -9
    assert removed.poll() is None


def test_the_guard_acts_when_its_owner_lets_go(sleepers):
    guard = Guard()
    guard.add(sleepers[0].pid)
    guard.add(sleepers[1].pid)
    guard.remove(sleepers[1].pid)
    guard.close()
    assert sleepers[0].wait(5) == -9
    assert sleepers[1].poll() is None


def test_a_process_that_has_gone_already_is_no_error():
    gone = subprocess.Popen(["true"])
    gone.wait()
    watch([f"+{gone.pid}\n"])
