"""What a Job has lost comes again after a while, as the Job controller has it; once a pod of it has ended, at once."""

from dataclasses import replace

import numpy as np
import pytest

from lab.sim.engine.clock import run
from lab.sim.engine.job_backoff import JobBackoff
from lab.sim.schedulers.kube import KubeDefault
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import Job
from tests.lab.sim.engine.test_clock import EVENTS, machines, stage, workload


def of_jobs(*tasks, backs_off=True):
    """Return the back-off of Jobs with one stage each, of so many tasks."""
    jobs = [Job(f"j{row}", 0.0, [stage("s", [1.0] * count)], backs_off=backs_off) for row, count in enumerate(tasks)]
    return JobBackoff(table_of(workload(*jobs), machines()))


def lose(backoff, now, *tasks, stage=0):
    """Note at `now` that these tasks of a stage were lost, which ran on node 0; return which are missing."""
    rows = np.array(tasks)
    return backoff.lose(np.full(len(rows), stage), rows, np.zeros(len(rows), dtype=np.intp), now).tolist()


@pytest.mark.parametrize(
    ("losses", "at"),
    [
        pytest.param([(5.0, 1)], 15.0, id="the first"),
        pytest.param([(5.0, 1), (8.0, 1)], 28.0, id="the second, counted from it"),
        pytest.param([(5.0, 3)], 45.0, id="three at once are three"),
        pytest.param([(5.0, 7)], 605.0, id="ten minutes at most"),
        pytest.param([(5.0, 9)], 605.0, id="however many"),
    ],
)
def test_it_takes_twice_as_long_for_each(losses, at):
    backoff, first = of_jobs(10), 0
    for now, count in losses:
        assert lose(backoff, now, *range(first, first + count)) == [True] * count
        first += count
    assert backoff.next_at == at
    assert backoff.missing.tolist() == [first]
    assert len(backoff.made(at - 1.0)[0]) == 0
    stages, tasks, nodes = backoff.made(at)
    assert tasks.tolist() == list(range(first))
    assert stages.tolist() == nodes.tolist() == [0] * first
    assert backoff.missing.tolist() == [0]
    assert backoff.next_at == np.inf


def test_how_often_is_counted_from_the_last_that_ended_and_by_job():
    backoff = of_jobs(10, 10)
    lose(backoff, 0.0, 0, 1)
    lose(backoff, 0.0, 10, stage=1)
    backoff.end(np.array([0]))
    assert backoff.made(0.0)[1].tolist() == [0, 1]
    assert backoff.next_at == 10.0
    lose(backoff, 3.0, 0)
    backoff.made(10.0)
    assert backoff.next_at == 13.0


def test_what_is_no_job_is_there_at_once():
    backoff = of_jobs(2, backs_off=False)
    assert lose(backoff, 0.0, 0) == [False]
    assert (backoff.next_at, backoff.missing.tolist()) == (np.inf, [0])


@pytest.mark.parametrize(("backs_off", "ended"), [(False, 115.0), (True, 120.0)])
def test_a_preempted_pod_of_a_job_waits_for_the_job_controller(backs_off, ended):
    """At 10 s the first has to go, until 15 s others have its room."""
    low = Job("low", 0.0, [stage("s", [100.0], cpu=4000.0)], backs_off=backs_off)
    high = Job("high", 10.0, [replace(stage("s", [5.0], cpu=4000.0), priority=9)])
    outcome = run(workload(low, high), machines(), KubeDefault(), seed=1, settings=EVENTS)
    assert {job.name: job.ended for job in outcome.jobs} == {"low": ended, "high": 15.0}
    assert outcome.begun_anew.times == 1
