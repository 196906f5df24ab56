"""Slot-fair and capacity, by hand."""

import numpy as np
import pytest

from extender.cluster.waiting import Running
from lab.sim.schedulers.slots import CapacityScheduler, SlotFair
from tests.lab.sim.small import Class, Tenants, cluster, machine, row, started, waiting, where


def task(memory, cpu=0.1):
    return row(cpu=cpu, memory=memory)


def running(*tasks):
    """Return tasks that run, each given as its node and its memory."""
    node = np.array([n for n, _ in tasks], dtype=np.intp)
    return Running(node, np.zeros(len(tasks)), np.array([task(memory) for _, memory in tasks]))


@pytest.mark.parametrize(
    ("memory", "fit"), [(0, 4), (0.5, 4), (2, 4), (2.001, 2), (4, 2), (4.001, 1), (8, 1), (8.001, 0)]
)
def test_a_task_takes_whole_containers_of_2_gb_of_the_capacity_scheduler(memory, fit):
    # A machine of 9 GB has 4.
    plan = CapacityScheduler().plan(cluster(machine(64, 9)), waiting(Class(9, task(memory))), 0.0)
    assert started(plan, 1) == [fit]


@pytest.mark.parametrize(("memory", "fit"), [(0, 4), (2, 4), (2.25, 4), (2.251, 3), (4.5, 2), (9, 1), (9.001, 0)])
def test_a_task_takes_one_slot_of_2_gb_however_large_it_is_where_its_memory_is_free(memory, fit):
    # A machine of 9 GB has 4 slots; 2.25 GB are a quarter of it.
    plan = SlotFair().plan(cluster(machine(64, 9)), waiting(Class(9, task(memory))), 0.0)
    assert started(plan, 1) == [fit]


@pytest.mark.parametrize("scheduler", [SlotFair, CapacityScheduler])
def test_cpu_disks_and_networks_are_not_looked_at(scheduler):
    greedy = row(cpu=10, memory=2, disk_write=900, network_out=900)
    plan = scheduler().plan(cluster(machine(1, 8, rates=1)), waiting(Class(4, greedy)), 0.0)
    assert started(plan, 1) == [4]


def test_slots_are_split_evenly_whatever_the_tasks_need_of_them():
    # 12 slots: 6 tasks each, though job 0's take three times the memory.
    plan = SlotFair().plan(cluster(machine(64, 24)), waiting(Class(9, task(3)), Class(9, task(1), job=1)), 0.0)
    assert started(plan, 2) == [6, 6]


def test_a_job_with_fewer_slots_catches_up_first():
    # 12 slots. Job 0 holds 4. Of the other 8, job 1 gets 4 to draw level, then each gets 2.
    held = 4 * task(2.5)
    waits = waiting(
        Class(9, task(2.5)),
        Class(9, task(1), job=1),
        tenants=Tenants(allocated={0: held}),
        running=running(*[(0, 2.5)] * 4),
    )
    plan = SlotFair().plan(cluster(machine(64, 24), allocated=[held]), waits, 0.0)
    assert started(plan, 2) == [2, 6]


def test_a_jobs_containers_are_counted_by_the_size_of_the_tasks_that_it_runs_not_by_its_bytes():
    # 7 containers, two queues. Job 0 runs three tasks of 1.1 GB: three containers, though 3.3 GB are less than two.
    # Job 1 runs one task of two.
    small, large = task(1.1), task(4)
    waits = waiting(
        Class(9, small),
        Class(9, task(2)),
        Class(9, large, job=1),
        tenants=Tenants(allocated={0: 3 * small, 1: large}, queue=[0, 1], queue_weight=[1, 1]),
        running=running((0, 1.1), (0, 1.1), (0, 1.1), (0, 4)),
    )
    plan = CapacityScheduler().plan(cluster(machine(64, 14), allocated=[3 * small + large]), waits, 0.0)
    assert started(plan, 3) == [0, 0, 1]


def test_a_job_of_twice_the_weight_gets_twice_the_slots():
    waits = waiting(Class(9, task(2)), Class(9, task(2), job=1), tenants=Tenants(weight=[2, 1]))
    assert started(SlotFair().plan(cluster(machine(64, 24)), waits, 0.0), 2) == [8, 4]


@pytest.mark.parametrize("scheduler", [SlotFair, CapacityScheduler])
def test_a_running_task_keeps_its_whole_slots(scheduler):
    # 4 slots; three tasks of 1 GB run and take three, though 3 GB are two slots' worth.
    waits = waiting(Class(9, task(1)), running=running((0, 1), (0, 1), (0, 1)))
    plan = scheduler().plan(cluster(machine(64, 8), allocated=[3 * task(1)]), waits, 0.0)
    assert started(plan, 1) == [1]


def test_where_running_tasks_are_not_known_allocated_memory_counts_in_whole_slots():
    plan = SlotFair().plan(cluster(machine(64, 8), allocated=[task(3)]), waiting(Class(9, task(1))), 0.0)
    assert started(plan, 1) == [2]


def test_capacity_serves_jobs_in_the_order_in_which_they_came_whatever_their_rows():
    # 4 slots. Job b is seen first, while nothing is free; job a, which comes later, has the row before it.
    scheduler, three = CapacityScheduler(), Class(3, task(2))
    scheduler.plan(cluster(machine(64, 8), allocated=[task(8)]), waiting(three, tenants=Tenants(names=["b"])), 0.0)
    both = waiting(three, Class(3, task(2), job=1), tenants=Tenants(names=["a", "b"]))
    assert started(scheduler.plan(cluster(machine(64, 8)), both, 1.0), 2) == [1, 3]
    assert started(CapacityScheduler().plan(cluster(machine(64, 8)), both, 1.0), 2) == [3, 1]


def test_capacity_gives_a_later_job_what_the_first_cannot_use():
    plan = CapacityScheduler().plan(cluster(machine(64, 8)), waiting(Class(9, task(6)), Class(9, task(2), job=1)), 0.0)
    assert started(plan, 2) == [1, 1]  # 3 slots and 1


def test_capacity_shares_between_queues_by_what_they_use_of_theirs():
    # 8 slots, queues of weight 3 and 1: 6 and 2. In queue 0 the first job takes all 6.
    waits = waiting(
        *(Class(9, task(2), job=j) for j in range(3)), tenants=Tenants(queue=[0, 0, 1], queue_weight=[3, 1])
    )
    assert started(CapacityScheduler().plan(cluster(machine(64, 16)), waits, 0.0), 3) == [6, 0, 2]


def test_machines_get_one_task_each_in_turn():
    plan = SlotFair().plan(cluster(*[machine(64, 8)] * 3), waiting(Class(6, task(2))), 0.0)
    nodes = where(plan, 0)
    assert sorted(nodes[:3]) == sorted(nodes[3:]) == [0, 1, 2]
