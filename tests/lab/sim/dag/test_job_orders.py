"""The orders of jobs in a replay."""

import numpy as np
import pytest

from extender.graph.orders import breadth_first
from lab.sim.dag.job_orders import JobOrders, priorities, searched
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.schedulers.policies import choice
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import SHUFFLE, Job, Machines, Stage, Workload
from tests.lab.sim.small import machine, row

ONE = Machines("one", np.array([machine(4, 8)]))
EVENTS = SimulationSettings(heartbeat_seconds=0)


def stage(name, tasks, cpu, seconds, parents=(), truth=None):
    return Stage(name, row(cpu=cpu), 0.0, seconds, np.full(tasks, truth or seconds), parents)


def chain_beside_bulk(truth=None):
    """Return a job of 6 tasks: `head` must go before the long `tail`; `bulk` fits beside the tail, not the head."""
    stages = [stage("bulk", 4, 3.0, 10.0), stage("head", 1, 2.9, 10.0), stage("tail", 1, 1.0, 40.0, (1,), truth)]
    return Workload("one job", [Job("a", 0.0, stages)])


def test_priorities_are_places_as_parts_and_equal_ranks_share_the_first_place():
    # Five tasks: ranks 1, 2, 2, 7, 9 have places 0, 1, 1, 3, 4. Of each stage the tasks go by rank.
    first, second = priorities([np.array([9.0, 2.0]), np.array([1.0, 2.0, 7.0])])
    assert first.tolist() == pytest.approx([0.8, 0.2])
    assert second.tolist() == pytest.approx([1.0, 0.8, 0.4])


def test_the_planner_goes_by_the_order_and_so_does_better_than_by_what_it_sees():
    # By packing alone 4 x 10 s of bulk come first, then head and tail: 40 + 10 + 40. By the order the head comes
    # first, and the bulk runs beside the tail: 10 + 40.
    outcomes = {
        name: run(chain_beside_bulk(), ONE, choice(name).make(1), seed=1, settings=EVENTS, order=choice(name).order)
        for name in ("tetris", "graphene")
    }
    assert outcomes["tetris"].makespan == pytest.approx(90.0)
    assert outcomes["graphene"].makespan == pytest.approx(50.0)


def test_a_run_is_the_same_twice():
    first, second = (
        run(chain_beside_bulk(), ONE, choice("graphene").make(1), seed=1, settings=EVENTS, order=searched)
        for _ in range(2)
    )
    assert first.tasks.started.tolist() == second.tasks.started.tolist()


def test_an_order_is_found_by_what_the_scheduler_expects():
    orders = [JobOrders(table_of(chain_beside_bulk(truth), ONE), ONE.capacity, searched) for truth in (None, 0.1)]
    for each in orders:
        each.arrive(0, 1)
    assert orders[0].priority.tolist() == orders[1].priority.tolist()
    assert orders[0].priority.min() < 1.0


def test_a_job_gets_the_part_of_the_machines_that_it_shares_with_the_others():
    seen = []

    def noted(dag, machines):
        seen.append((machines.count, machines.capacity.tolist(), dag.demand.tolist()))
        return breadth_first(dag)

    stages = [stage("a", 2, 1.0, 10.0), Stage("b", row(cpu=2), 5e6, 1.0, np.ones(3), (0,), source=SHUFFLE)]
    machines = Machines("five", np.array([machine(2, 8)] * 4 + [machine(4, 8)]))
    orders = JobOrders(table_of(Workload("w", [Job("j", 0.0, stages)]), machines), machines.capacity, noted)
    orders.arrive(0, 2)
    # 5 machines for 2 jobs: 5 / 1.41 = 3.5, so 4 of the largest shape. What a shuffle reads comes by its link.
    assert seen == [(4, [4000.0, 1e9], [[1000.0, 0.0], [2000.0, 5e6]])]
    order = orders.of(np.array([0, 1]), np.array([1, 3]))
    assert order.next.tolist() == [1, 2]
    assert order.priority.tolist() == pytest.approx([1.0, 1.0, 0.6, 0.6, 0.6])
