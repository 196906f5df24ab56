"""First fit, by hand."""

from lab.sim.schedulers.first_fit import FirstFit
from tests.lab.sim.small import Class, blocks, cluster, machine, row, started, waiting, where

TASK = row(cpu=1, memory=2)


def test_each_task_goes_to_the_first_machine_by_name_where_cpu_and_memory_fit():
    # Machine 0: 3 by CPU, 2 by memory. Machine 1: 1. Machine 2 gets what is left of 5.
    snapshot = cluster(machine(3, 4), machine(1, 90), machine(9, 90))
    assert where(FirstFit().plan(snapshot, waiting(Class(5, TASK)), 0.0), 0) == [0, 0, 1, 2, 2]


def test_a_task_that_fits_nowhere_steps_aside():
    plan = FirstFit().plan(cluster(machine(2, 4)), waiting(Class(3, row(cpu=3, memory=1)), Class(3, TASK)), 0.0)
    assert started(plan, 2) == [0, 2]


def test_what_came_first_goes_first_whatever_its_row():
    scheduler, full = FirstFit(), cluster(machine(2, 4), allocated=[row(cpu=2)])
    scheduler.plan(full, waiting(Class(2, TASK, name="old")), 0.0)
    both = waiting(Class(2, TASK, name="a-new"), Class(1, TASK, name="old"))
    assert started(scheduler.plan(cluster(machine(2, 4)), both, 1.0), 2) == [1, 1]
    assert started(FirstFit().plan(cluster(machine(2, 4)), both, 1.0), 2) == [2, 0]


def test_a_task_that_asks_for_nothing_goes_to_the_first_machine_even_if_that_is_full():
    plan = FirstFit().plan(cluster(machine(1, 1), allocated=[row(cpu=1, memory=1)]), waiting(Class(2, row())), 0.0)
    assert where(plan, 0) == [0, 0]


def test_the_machine_is_chosen_first_and_then_a_task_whose_block_is_there():
    inputs = blocks(2, [1], [0])
    plan = FirstFit().plan(cluster(machine(2, 4), machine(2, 4)), waiting(Class(2, TASK, inputs=inputs)), 0.0)
    assert (plan.assignments.node.tolist(), plan.assignments.task.tolist()) == ([0, 0], [1, 0])
    assert plan.assignments.source.tolist() == [0, 1]
