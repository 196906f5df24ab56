"""When a class is due: 120 s, and on top twice the seconds that its queue's part needs for what its jobs have left.

All nodes are full, with nothing that ends; the class with the first row has waited since 0.
"""

from dataclasses import replace

import numpy as np
import pytest

from extender.planner import Planner
from tests.service.planner.fairness.test_turn import in_queues, taken
from tests.service.planner.scenes import cluster, once, tasks

LATE = 1000.0


def due(plan, name="class0"):
    return plan.carried.due[name].due


def test_a_queue_with_half_of_the_cluster_takes_twice_as_long_for_its_work():
    waiting = in_queues((0, 1, 4), (1, 1, 4), has=[4, 4])
    waiting = replace(waiting, jobs=replace(waiting.jobs, work=np.array([20.0, 20.0, 0.0, 0.0])))
    assert due(once(taken(4, 4), waiting, now=LATE)) == pytest.approx(120 + 2 * 20 / 0.5)


def test_of_work_in_several_resources_the_one_counts_of_which_a_job_takes_most():
    # A task takes all CPUs and half of the memory, so of the 30 s of both 20 are of CPU.
    full = cluster((4, 8), allocated=[[4, 8, *[0] * 4]])
    assert due(once(full, tasks((0, 1, (4, 4)), work=[30.0]), now=LATE)) == pytest.approx(120 + 2 * 20)


def test_of_work_that_runs_the_resource_counts_of_which_its_job_holds_most():
    # job1 runs, and nothing of it waits. It holds all CPUs and half of the memory, so of its 30 s 20 are of CPU. The
    # waiting task of job0 takes 10 s of all CPUs.
    full = cluster((4, 8), allocated=[[4, 4, *[0] * 4]])
    waiting = tasks((0, 1, (4, 4)), (1, 0, (4, 4)), work=[0.0, 30.0], held=[[0] * 6, [4, 4, *[0] * 4]])
    assert due(once(full, waiting, now=LATE)) == pytest.approx(120 + 2 * (10 + 20))


def test_nobody_is_due_later_than_after_a_day_on_top():
    assert due(once(taken(4), tasks((0, 1, (4,)), work=[1e9]), now=LATE)) == 120 + 86_400


def test_of_a_fifo_queue_only_the_first_in_line_is_due():
    waiting = replace(tasks((0, 1, (4,)), (0, 1, (4,))), behind=np.array([1, 0]))
    assert list(once(taken(4), waiting, now=LATE).carried.due) == ["class1"]


def test_a_class_that_has_started_since_has_a_due_time_of_its_new_wait():
    planner, waiting = Planner(), tasks((0, 1, (4,)), work=[25.0])
    assert due(planner.plan(taken(4), waiting, LATE)) == 120 + 2 * 25
    assert due(planner.plan(taken(4), replace(waiting, since=np.array([500.0])), LATE)) == 500 + 120 + 2 * 25


def test_for_the_next_due_time_a_plan_asks_again_but_not_at_once():
    waiting = tasks((0, 1, (4,)), work=[25.0])  # due at 170
    assert once(taken(4), waiting, now=150.0).again_at == 170.0
    assert once(taken(4), waiting, now=169.5).again_at == 170.5
