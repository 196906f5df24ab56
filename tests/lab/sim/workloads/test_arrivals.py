import numpy as np
import pytest

from extender.errors import DovetailError
from lab.sim.workloads.arrivals import PACED, START, TRACE, arrange, core_seconds, window
from lab.sim.workloads.workload import Job, Stage


def job(name, arrives_at, *, millicores=500.0, durations=(10.0, 30.0)):
    demand = np.array([millicores, 0, 0, 0, 0, 0])
    stage = Stage("map", demand, reading=0.0, duration=20.0, durations=np.array(durations))
    return Job(name, arrives_at, (stage,))


JOBS = [job("late", 140.0), job("first", 100.0), job("second", 110.0)]
"""Half a core for 40 seconds each: 60 core seconds, over 40 seconds."""


def test_core_seconds_add_up_over_all_tasks():
    assert core_seconds(JOBS) == 60.0


def test_jobs_come_in_the_order_of_the_trace_the_first_at_zero():
    arranged = arrange(JOBS, arrivals=TRACE, load=1.0)
    assert [(each.name, each.arrives_at) for each in arranged] == [("first", 0), ("second", 10), ("late", 40)]


def test_paced_jobs_ask_for_the_load_while_they_arrive():
    # 60 core seconds at a load of 3 cores are 20 seconds: half of the trace's 40
    assert [each.arrives_at for each in arrange(JOBS, arrivals=PACED, load=3.0)] == [0, 5, 20]


def test_all_can_arrive_at_the_start_still_in_the_order_of_the_trace():
    arranged = arrange(JOBS, arrivals=START, load=3.0)
    assert [(each.name, each.arrives_at) for each in arranged] == [("first", 0), ("second", 0), ("late", 0)]


@pytest.mark.parametrize("arrivals", [PACED, TRACE, START])
def test_jobs_of_one_moment_and_no_jobs_at_all_can_be_arranged(arrivals):
    assert [each.arrives_at for each in arrange([job("a", 7.0), job("b", 7.0)], arrivals=arrivals, load=1.0)] == [0, 0]
    assert arrange([], arrivals=arrivals, load=1.0) == []


def test_other_arrivals_are_refused_with_those_accepted():
    with pytest.raises(DovetailError, match="arrivals 'never'; accepted: paced, trace, start"):
        arrange(JOBS, arrivals="never", load=1.0)


def test_a_window_is_one_piece_somewhere_in_the_trace():
    rng = np.random.default_rng(0)
    windows = [window(rng, 10, 3) for _ in range(200)]
    assert all(piece.stop - piece.start == 3 for piece in windows)
    assert {piece.start for piece in windows} == set(range(8))


@pytest.mark.parametrize("jobs", [None, 10, 99])
def test_a_window_is_the_whole_trace_if_that_is_asked_for(jobs):
    assert window(np.random.default_rng(0), 10, jobs) == slice(0, 10)
