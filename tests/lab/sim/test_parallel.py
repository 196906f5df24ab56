"""Runs over processes: the same results whoever ends first, and a bad run takes no other with it."""

import os
import signal
import time

import pytest

from extender.errors import DovetailError, TraceError
from lab.sim.parallel import Failed, run_all, unless_failed

ON_IMPORT = signal.getsignal(signal.SIGINT)
"""What an interrupt does to a process that is just beginning: a worker imports this before it does anything."""


def nobody(_name, _done, _total):
    pass


def double(task, tell):
    tell(0, task)
    time.sleep(0.05 if task == 1 else 0)  # the first ends last
    return 2 * task


def picky(task, _tell):
    if task == "trace":
        raise TraceError("jobs.csv, line 2: no column 'x'")
    if task == "bug":
        raise KeyError("x")
    if task == "killed":
        os._exit(9)
    return task


def handlers(_task, _tell):
    return ON_IMPORT, signal.getsignal(signal.SIGINT)


def test_an_interrupt_is_the_parent_s_from_the_moment_at_which_workers_begin():
    before = signal.getsignal(signal.SIGINT)
    found = run_all(handlers, {"a": 1, "b": 2}, processes=2, show=nobody)
    assert list(found.values()) == [(signal.SIG_IGN, signal.SIG_IGN)] * 2
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.parametrize("processes", [1, 2])
def test_results_are_in_the_order_of_the_tasks(processes):
    found = run_all(double, {"a": 1, "b": 2, "c": 3}, processes=processes, show=nobody)
    assert list(found.items()) == [("a", 2), ("b", 4), ("c", 6)]


@pytest.mark.parametrize("processes", [1, 2])
def test_every_run_is_shown_to_its_end(processes):
    shown = {}
    run_all(double, {"a": 1, "b": 2}, processes=processes, show=lambda name, *far: shown.update({name: far}))
    assert shown == {"a": (1, 1), "b": (1, 1)}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_that_fails_is_named_with_its_reason_and_the_others_are_done(processes):
    found = run_all(picky, {"good": 1, "bad": "trace", "better": 2}, processes=processes, show=nobody)
    assert found == {"good": 1, "bad": Failed("jobs.csv, line 2: no column 'x'"), "better": 2}
    with pytest.raises(DovetailError, match=r"^bad: jobs.csv, line 2: no column 'x'$"):
        unless_failed(found)


def test_a_mistake_of_ours_comes_with_its_trace():
    found = run_all(picky, {"a": "bug", "b": 1}, processes=2, show=nobody)
    assert found["a"].reason == "KeyError: 'x'"
    assert "in picky" in found["a"].trace
    with pytest.raises(DovetailError, match="in picky"):
        unless_failed(found)


def test_a_process_that_is_killed_fails_its_run_only():
    found = run_all(picky, {"a": "killed", "b": 1, "c": 2}, processes=2, show=nobody)
    assert (found["b"], found["c"]) == (1, 2)
    assert "its process has ended" in found["a"].reason


def test_without_processes_left_the_other_runs_fail_too():
    found = run_all(picky, dict.fromkeys("abcd", "killed"), processes=2, show=nobody)
    assert list(found) == list("abcd")
    assert all(isinstance(result, Failed) for result in found.values())


def test_results_that_are_all_there_are_returned():
    assert unless_failed({"a": 1}) == {"a": 1}
