"""Dominant resource fairness, by hand."""

import numpy as np
import pytest

from extender.cluster.waiting import Running
from lab.sim.schedulers.drf import Drf, YarnDrf
from tests.lab.sim.small import Class, Tenants, cluster, machine, row, started, waiting, where


def figure_1(*, tenants=None):
    """Return the maps of Tetris' figure 1: 18 of A (1 core, 2 GB), 6 each of B and C (3 cores, 1 GB)."""
    large = row(cpu=3, memory=1)
    return waiting(
        Class(18, row(cpu=1, memory=2), job=0), Class(6, large, job=1), Class(6, large, job=2), tenants=tenants
    )


def test_figure_1_gives_each_job_a_third_of_its_dominant_resource():
    # On 18 cores and 36 GB: A's tasks take 1/18 of the memory, B's and C's 1/6 of the cores. 6 x 1/18 = 2 x 1/6 = 1/3.
    plan = Drf().plan(cluster(machine(18, 36)), figure_1(), 0.0)
    assert started(plan, 3) == [6, 2, 2]


def test_a_job_of_twice_the_weight_gets_twice_the_share():
    # By weight, a task is 1/18 of A's share, 1.5/18 of B's (3/18, weight 2), 3/18 of C's. After 4, 3 and 1 tasks, A has
    # 4/18, B 4.5/18, C 3/18, and 4 + 9 + 3 = 16 cores are taken: of what is left only two of A's tasks fit.
    plan = Drf().plan(cluster(machine(18, 36)), figure_1(tenants=Tenants(weight=[1, 2, 1])), 0.0)
    assert started(plan, 3) == [6, 3, 1]


def test_what_jobs_already_hold_counts():
    # B holds 12 of 18 cores: it waits. A takes 1/18, C 3/18, then A twice until it is level: 3 + 3 = 6 cores.
    held = row(cpu=12, memory=4)
    plan = Drf().plan(cluster(machine(18, 36), allocated=[held]), figure_1(tenants=Tenants(allocated={1: held})), 0.0)
    assert started(plan, 3) == [3, 0, 1]


def test_what_jobs_already_hold_counts_by_their_weight():
    # 8 cores. A holds 4 and weighs 4, B holds 2 and weighs 1: 4/8 / 4 = 1/8 against 2/8. A gets the two that are left.
    one, held = row(cpu=1, memory=1), [row(cpu=4), row(cpu=2)]
    tenants = Tenants(weight=[4, 1], allocated=dict(enumerate(held)))
    waits = waiting(Class(9, one), Class(9, one, job=1), tenants=tenants)
    assert started(Drf().plan(cluster(machine(8, 80), allocated=[sum(held)]), waits, 0.0), 2) == [2, 0]


def test_what_the_jobs_of_a_queue_already_hold_counts_for_the_queue():
    # 8 cores; job 0 of the first queue holds 4, so the second queue gets the other 4.
    one, held = row(cpu=1, memory=1), row(cpu=4)
    tenants = Tenants(queue=[0, 0, 1], allocated={0: held})
    waits = waiting(*(Class(9, one, job=j) for j in range(3)), tenants=tenants)
    assert started(Drf().plan(cluster(machine(8, 80), allocated=[held]), waits, 0.0), 3) == [0, 0, 4]


def test_queues_share_before_their_jobs_do():
    # Jobs 0 and 1 in one queue, job 2 alone in another: 4 cores and 4 cores, not 8 thirds each.
    one = row(cpu=1, memory=1)
    waits = waiting(*(Class(9, one, job=j) for j in range(3)), tenants=Tenants(queue=[0, 0, 1]))
    assert started(Drf().plan(cluster(machine(8, 80)), waits, 0.0), 3) == [2, 2, 4]


def test_a_queue_of_three_times_the_weight_gets_three_times_as_much():
    one = row(cpu=1, memory=1)
    waits = waiting(*(Class(9, one, job=j) for j in range(2)), tenants=Tenants(queue=[0, 1], queue_weight=[3, 1]))
    assert started(Drf().plan(cluster(machine(8, 80)), waits, 0.0), 2) == [6, 2]


def test_a_queue_without_work_leaves_its_part_to_the_others():
    one = row(cpu=1, memory=1)
    waits = waiting(Class(9, one, job=0), Class(1, one, job=1), tenants=Tenants(queue=[0, 1]))
    assert started(Drf().plan(cluster(machine(8, 80)), waits, 0.0), 2) == [7, 1]


@pytest.mark.parametrize(("cpu", "memory", "fits"), [(4, 8, 1), (4.001, 8, 0), (4, 8.001, 0)])
def test_a_task_must_fit_in_cpu_and_in_memory(cpu, memory, fits):
    plan = Drf().plan(cluster(machine(4, 8)), waiting(Class(1, row(cpu=cpu, memory=memory))), 0.0)
    assert started(plan, 1) == [fits]


def test_disks_and_networks_are_not_looked_at():
    greedy = row(cpu=1, memory=1, disk_write=900, network_out=900)
    plan = Drf().plan(cluster(machine(4, 8, rates=10)), waiting(Class(4, greedy, reading=900)), 0.0)
    assert started(plan, 1) == [4]


def test_a_job_that_fits_nowhere_steps_aside():
    waits = waiting(Class(1, row(cpu=5, memory=1), job=0), Class(2, row(cpu=2, memory=1), job=1))
    assert started(Drf().plan(cluster(machine(4, 8)), waits, 0.0), 2) == [0, 2]


def test_no_machine_is_filled_with_one_job():
    # Eight tasks on two machines of 4 cores: one here, one there.
    one = row(cpu=1, memory=1)
    plan = Drf().plan(cluster(machine(4, 8), machine(4, 8)), waiting(Class(4, one), Class(4, one, job=1)), 0.0)
    assert sorted(where(plan, 0) + where(plan, 1)) == [0] * 4 + [1] * 4
    nodes = plan.assignments.node
    assert (nodes[1:] != nodes[:-1]).all()


# -- as in YARN


@pytest.mark.parametrize(("cpu", "memory", "fit"), [(0.4, 2, 8), (1, 2, 8), (1.1, 2, 4), (2.9, 2, 2), (0.4, 2.1, 5)])
def test_yarn_counts_whole_cores_and_memory_in_steps_of_1_gb(cpu, memory, fit):
    # 8 cores and 16 GB: 8 of one core and 2 GB, 4 of two cores, 2 of three, 5 of 3 GB.
    waits = waiting(Class(20, row(cpu=cpu, memory=memory)))
    assert started(YarnDrf().plan(cluster(machine(8, 16)), waits, 0.0), 1) == [fit]


def test_yarn_sees_no_disk_and_no_network():
    waits = waiting(Class(20, row(cpu=1, memory=2, disk_write=900)))
    assert started(YarnDrf().plan(cluster(machine(8, 16)), waits, 0.0), 1) == [8]


def test_for_yarn_a_running_task_keeps_the_cores_and_containers_that_it_was_counted_with():
    # Two tasks of 1.2 cores and 0.5 GB run, as 2 cores and a container each: 4 of 8 cores are left, not 5.6.
    one = row(cpu=1.2, memory=0.5)
    running = Running(np.array([0, 0]), np.ones(2), np.array([one, one]))
    waits = waiting(Class(20, row(cpu=1, memory=1)), running=running)
    plan = YarnDrf().plan(cluster(machine(8, 16), allocated=[2 * one]), waits, 0.0)
    assert started(plan, 1) == [4]


def test_for_yarn_the_share_of_a_job_is_that_of_its_rounded_requests():
    # 12 cores, memory for all. A task of 1.1 cores counts as 2: A gets half as many as B, 3 x 2 + 6 x 1 = 12.
    waits = waiting(Class(9, row(cpu=1.1, memory=2)), Class(9, row(cpu=1, memory=2), job=1))
    assert started(YarnDrf().plan(cluster(machine(12, 96)), waits, 0.0), 2) == [3, 6]


def test_for_yarn_what_a_job_holds_counts_as_it_was_rounded():
    # 8 cores; A runs two of 1.1 cores as 4 cores. B gets the other four; by exact requests A would get one of them.
    held = 2 * row(cpu=1.1, memory=2)
    running = Running(np.array([0, 0]), np.ones(2), np.array([held / 2, held / 2]))
    waits = waiting(
        Class(9, row(cpu=1.1, memory=2)),
        Class(9, row(cpu=1, memory=2), job=1),
        tenants=Tenants(allocated={0: held}),
        running=running,
    )
    assert started(YarnDrf().plan(cluster(machine(8, 96), allocated=[held]), waits, 0.0), 2) == [0, 4]
