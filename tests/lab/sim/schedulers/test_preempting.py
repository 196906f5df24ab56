"""A planner on a cluster whose kube-scheduler preempts: for whom pods end, and for whom none does."""

from dataclasses import replace

import numpy as np
import pytest

from extender.cluster.waiting import Running
from extender.planner import Plan, Planner
from lab.sim.preemption import PlanWithVictims
from lab.sim.schedulers.kube import KubeDefault, WithExtender
from lab.sim.schedulers.preempting import Preempting
from tests.lab.sim.small import Class, cluster, machine, row, started, waiting, where

CORE, FOUR_CORES = row(cpu=1, memory=1), row(cpu=4, memory=1)


class Withholding:
    """A planner that starts nothing."""

    def plan(self, snapshot, waits, now):
        """Return nothing to start."""
        return replace(Planner().plan(snapshot, waiting(), now), again_at=77.0)


def important(waits, priority, *runs):
    """Return what waits with this priority each, while tasks run, each (node, demand, priority)."""
    node, demand, less = zip(*runs, strict=True)
    seconds = np.full(len(runs), 100.0)
    running = Running(np.array(node), seconds, np.array(demand), seconds, np.array(less))
    return replace(waits, priority=np.array(priority), running=running)


def victims(plan):
    """Return who is preempted."""
    return plan.victims.tolist() if isinstance(plan, PlanWithVictims) else []


def full(*tasks):
    """Return machines of four cores with these tasks on them, each (node, demand, priority), and the tasks."""
    nodes = max(node for node, *_ in tasks) + 1
    held = [sum((demand for at, demand, _ in tasks if at == node), start=row()) for node in range(nodes)]
    return cluster(*[machine(4, 8, 100)] * nodes, allocated=held)


def test_its_room_goes_to_no_other_even_of_its_priority():
    runs, planner = [(0, CORE, 1)] * 4, Preempting(Planner())
    waits = important(waiting(Class(1, FOUR_CORES, name="big")), [5], *runs)
    plan = planner.plan(full(*runs), waits, 0.0)
    assert sorted(victims(plan)) == [0, 1, 2, 3]
    both = replace(waiting(Class(4, CORE, name="small"), Class(1, FOUR_CORES, name="big")), priority=np.array([9, 5]))
    then = planner.plan(cluster(machine(4, 8, 100)), both, 0.0)
    assert started(then, 2) == [0, 1]
    assert then.again_at == 0.0
    assert started(planner.plan(cluster(machine(4, 8, 100)), both, 0.0), 2) == [4, 0]


def test_who_is_gone_meanwhile_holds_nothing():
    runs, planner = [(0, CORE, 1)] * 4, Preempting(Planner())
    planner.plan(full(*runs), important(waiting(Class(1, FOUR_CORES, name="big")), [5], *runs), 0.0)
    others = waiting(Class(4, CORE, name="small"))
    assert where(planner.plan(cluster(machine(4, 8, 100)), others, 0.0), 0) == [0] * 4


def test_the_most_important_goes_first():
    runs = [(0, FOUR_CORES, 1)]
    waits = important(waiting(Class(1, FOUR_CORES, name="low"), Class(1, FOUR_CORES, name="high")), [5, 9], *runs)
    planner = Preempting(Planner())
    assert victims(planner.plan(full(*runs), waits, 0.0)) == [0]
    assert started(planner.plan(cluster(machine(4, 8, 100)), waits, 0.0), 2) == [0, 1]


def test_nobody_goes_for_who_has_room_and_was_not_let_go_there():
    runs = [(0, FOUR_CORES, 1), (1, CORE, 1)]
    waits = important(waiting(Class(1, CORE)), [5], *runs)
    plan = Preempting(Withholding()).plan(full(*runs), waits, 0.0)
    assert not isinstance(plan, PlanWithVictims)
    assert plan.again_at == 77.0


def test_nobody_goes_for_a_gang():
    runs = [(0, FOUR_CORES, 1)]
    waits = important(waiting(Class(2, CORE)), [5], *runs)
    gang = replace(waits, gang=np.array([0]), gang_least=np.array([2]))
    assert victims(Preempting(Planner()).plan(full(*runs), waits, 0.0)) == [0]
    assert victims(Preempting(Planner()).plan(full(*runs), gang, 0.0)) == []


def test_without_priorities_nobody_goes():
    plan = Preempting(Planner()).plan(full((0, FOUR_CORES, 1)), waiting(Class(1, CORE)), 0.0)
    assert type(plan) is Plan


@pytest.mark.parametrize("scheduler", [Preempting(Planner()), WithExtender()], ids=lambda it: type(it).__name__)
def test_nobody_goes_where_a_disk_would_still_be_short(scheduler):
    disk = row(cpu=1, memory=1, disk_read=60)
    runs = [(0, row(cpu=4, memory=1), 1), (0, row(disk_read=50), 9), (1, row(cpu=3, memory=1), 2)]
    waits = important(waiting(Class(1, disk)), [5], *runs, (1, CORE, 2))
    held = full(*runs, (1, CORE, 2))
    assert victims(KubeDefault().plan(held, waits, 0.0)) == [0]
    assert victims(scheduler.plan(held, waits, 0.0)) == [3]


def test_what_the_plan_itself_starts_is_counted():
    runs = [(0, row(cpu=3, memory=1), 1)]
    waits = important(waiting(Class(2, CORE)), [5], *runs)
    plan = Preempting(Planner()).plan(full(*runs), waits, 0.0)
    assert started(plan, 1) == [1]
    assert victims(plan) == [0]
