"""The cluster experiment's workload: what its page says of it, and the waits that follow from it."""

import math

import numpy as np
import pytest

from lab.experiments.cluster import workload as drawn
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, Job, Stage, Workload

SEEDS = range(3)


@pytest.fixture(params=SEEDS)
def full(request):
    machines = drawn.machines(drawn.FULL)
    return machines, drawn.workload(drawn.FULL, machines, request.param)


def test_there_are_a_hundred_nodes_and_some_two_thousand_tasks_in_some_tens_of_jobs(full):
    machines, jobs = full
    assert len(machines.capacity) == 100
    assert np.bincount(machines.racks).tolist() == [20] * 5
    assert 1_700 < jobs.tasks < 2_600
    assert len(jobs.jobs) == 48
    assert {job.queue for job in jobs.jobs} == {"research", "analytics", "reports"}


def test_the_first_job_arrives_at_once_and_the_last_within_a_minute(full):
    arrives = [job.arrives_at for job in full[1].jobs]
    assert arrives[0] == 0.0
    assert arrives == sorted(arrives)
    assert arrives[-1] <= 60.0


def test_maps_read_blocks_with_copies_on_two_racks_and_reduces_read_what_the_stage_before_wrote(full):
    machines, jobs = full
    for job in jobs.jobs:
        first, *others = job.stages
        assert first.source == BLOCKS
        racks = machines.racks[first.copies]
        assert all(len(set(row)) == 2 for row in racks.tolist())
        assert [it.source for it in others] == [SHUFFLE] * len(others)
        assert [it.parents for it in others] == [(place,) for place in range(len(others))]


def test_the_same_seed_draws_the_same_workload_and_another_one_another():
    machines = drawn.machines(drawn.QUICK)
    one, same, other = (drawn.workload(drawn.QUICK, machines, seed) for seed in (1, 1, 2))
    assert [stage.durations.tolist() for job in one.jobs for stage in job.stages] == [
        stage.durations.tolist() for job in same.jobs for stage in job.stages
    ]
    assert one.tasks != other.tasks


def test_jobs_keep_the_cluster_busy_for_longer_than_they_take_to_arrive(full):
    machines, jobs = full
    table = table_of(jobs, machines)
    assert table.least_seconds(machines.capacity.sum(axis=0)) > 2 * 60.0
    assert table.path.max() < table.least_seconds(machines.capacity.sum(axis=0))


def test_waits_are_those_of_equation_2():
    machines = drawn.machines(drawn.FULL)
    demand = np.array([1000.0, 1.0, 0, 0, 0, 0])
    maps = Stage("map", demand, 0.0, 10.0, np.full(20, 10.0), source=BLOCKS)
    jobs = Workload("one", [Job("j", 0.0, [maps])])
    # 400 tasks of a core on 100 nodes of 4, each for 10 s: 40 free up a second; 20 maps: (1 - .95) x 20 = 1 may miss
    for_node, for_rack = 100 / 3 * math.log(2), 5 / 2 * math.log(2)
    assert drawn.waits(jobs, machines) == (round(for_node / 40, 2), round(for_rack / 40, 2))
