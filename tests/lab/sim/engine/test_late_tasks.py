"""Tasks that come after their job begin when they are there; a gang waits until enough of it is."""

from dataclasses import replace

import numpy as np
import pytest

from extender.planner import Planner
from lab.sim.engine.clock import run
from lab.sim.schedulers.kube import KubeDefault
from lab.sim.workloads.workload import Job
from tests.lab.sim.engine.test_clock import EVENTS, Greedy, machines, stage, workload


def ran(scheduler, *, gang=False):
    """Return when the tasks of a job start that comes at 1 s; its second task comes 5 s later, its third 30 s later."""
    late = replace(stage("s", [10.0, 10.0, 7.0]), comes=np.array([0.0, 5.0, 30.0]), gang=gang)
    after = replace(stage("t", [2.0]), parents=(0,))
    outcome = run(workload(Job("j", 1.0, [late, after])), machines(), scheduler, seed=1, settings=EVENTS)
    return outcome.tasks.started.tolist(), outcome.makespan


@pytest.mark.parametrize("scheduler", [Greedy, KubeDefault, Planner])
def test_each_starts_when_it_is_there(scheduler):
    assert ran(scheduler()) == ([1.0, 6.0, 31.0, 38.0], 39.0)


def test_a_gang_starts_when_all_of_it_is_there():
    assert ran(Planner(), gang=True) == ([31.0, 31.0, 31.0, 41.0], 42.0)
