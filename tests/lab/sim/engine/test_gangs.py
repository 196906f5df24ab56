"""Groups under schedulers that start their tasks one by one: room is held, and work begins when enough are there."""

from dataclasses import replace

import numpy as np
import pytest

from extender.cluster.resources import DIMENSIONS
from extender.errors import DovetailError
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.engine.use.sampling import Sampling
from lab.sim.schedulers.first_fit import FirstFit
from lab.sim.workloads.workload import Job, Machines, Stage, Workload

EVENTS = SimulationSettings(heartbeat_seconds=0.0)
USED = replace(EVENTS, sampling=Sampling())


def machine(cores):
    return Machines("one", np.array([[1000.0 * cores, 64, 100, 100, 100, 100]]))


def stage(name, *seconds, memory=0.0, write=0.0, gang=False, least=0):
    demand = np.array([1000.0, memory, 0, write, 0, 0])
    return Stage(name, demand, 0.0, float(np.mean(seconds)), np.array(seconds, dtype=float), gang=gang, least=least)


def ran(cores, *jobs, settings=EVENTS):
    """Return when tasks started and ended, in the order of the jobs, which come at 0, 1, 2 s ..."""
    workload = Workload("test", [Job(one.name, float(at), [one]) for at, one in enumerate(jobs)])
    tasks = run(workload, machine(cores), FirstFit(), seed=1, settings=settings).tasks
    return tasks.started.tolist(), tasks.ended.round(6).tolist()


@pytest.mark.parametrize("settings", [EVENTS, USED])
def test_the_work_of_a_group_begins_when_its_last_task_is_there(settings):
    # Two cores. a has one until 10 s. g starts a task at 1 s, which holds the other; both work from 10 s on.
    assert ran(2, stage("a", 10), stage("g", 5, 7, gang=True), settings=settings) == ([0, 1, 10], [10, 15, 17])
    assert ran(2, stage("a", 10), stage("g", 5, 7), settings=settings) == ([0, 1, 6], [10, 6, 13])


@pytest.mark.parametrize("settings", [EVENTS, USED])
def test_a_group_begins_when_as_many_are_there_as_it_needs_and_later_ones_at_once(settings):
    # Of three two are needed: they work from 1 s on, the third from 6 s, when the first of them has ended.
    started, ended = ran(3, stage("a", 10), stage("g", 5, 7, 2, gang=True, least=2), settings=settings)
    assert (started, ended) == ([0, 1, 1, 6], [10, 6, 8, 8])


@pytest.mark.parametrize("settings", [EVENTS, USED])
def test_who_waits_for_others_of_its_group_slows_nobody_down(settings):
    # a leaves memory for one task of g until 10 s. b wants the whole disk from 2 to 8 s, g from 10 s on.
    jobs = (
        stage("a", 10, memory=33),
        stage("g", 5, 5, memory=31, write=50, gang=True),
        stage("b", 6, write=100),
    )
    assert ran(4, *jobs, settings=settings) == ([0, 1, 10, 2], [10, 15, 15, 8])


@pytest.mark.parametrize("settings", [EVENTS, USED])
def test_two_gangs_that_hold_what_the_other_needs_never_go_on_and_one_is_named(settings):
    jobs = stage("a", 4), stage("b", 4), stage("f", 5, 5, gang=True), stage("g", 5, 5, 5, gang=True)
    with pytest.raises(DovetailError, match="g/g has begun and never goes on: tasks of gangs hold room"):
        ran(2, *jobs, settings=settings)


def test_a_task_that_waits_for_its_group_does_not_use_the_devices_that_it_holds():
    # Two cores and two GPUs. a has a core and a GPU until 10 s; g holds the other GPU from 0 s on, and works from 10 s.
    axis = (*DIMENSIONS, "nvidia.com/gpu")
    machines = Machines("one", np.array([[2000.0, 64, 100, 100, 100, 100, 2]]), axis=axis)
    stages = [replace(one, demand=np.append(one.demand, 1.0)) for one in (stage("a", 10), stage("g", 9, 9, gang=True))]
    stages = [replace(one, demand=one.demand + np.array([0, 8, 0, 0, 0, 0, 0])) for one in stages]
    workload = Workload("test", [Job(one.name, 0.0, [one]) for one in stages])
    made = run(workload, machines, FirstFit(), seed=1, settings=EVENTS)
    of = {at: row.tolist() for at, row in zip(made.series.at.tolist(), made.series.used[:, [0, 1, 6]], strict=True)}
    assert (of[5.0], of[15.0]) == ([0.5, 0.25, 0.5], [1.0, 0.25, 1.0])
