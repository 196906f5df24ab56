"""The second pass, on idle room, and promotion: amounts small enough to check by hand."""

from dataclasses import replace

import numpy as np
import pytest

from extender.planner import Planner, Policy
from extender.planner.opportunistic import idle_snapshot, nobody_before, promotions, second_pass, second_planner
from tests.service.planner.scenes import cluster, pairs, tasks

FULL = [[10.0, 10.0, 0, 0, 0, 0]]


def room_of(*rows):
    return np.array([[*row, *(0.0,) * (6 - len(row))] for row in rows])


def test_only_the_idle_room_is_free_however_much_is_allocated():
    snapshot = cluster((10, 10), allocated=FULL)
    idle = idle_snapshot(snapshot, room_of((4.9, 3)))
    free = idle.layout.capacity - idle.allocated - idle.in_flight
    assert free[0, :2].tolist() == [4, 3]  # a part of a unit is nobody's


def test_what_a_node_does_not_limit_stays_unlimited():
    snapshot = cluster((10, 10, np.inf))
    idle = idle_snapshot(snapshot, np.array([[1.0, 1.0, np.inf, 0, 0, 0]]))
    assert (idle.layout.capacity - idle.allocated)[0, 2] == np.inf


def test_a_full_cluster_takes_what_fits_its_idle_room():
    # 5 x 2 of CPU are idle, 7 x 2 of memory: two tasks of (2, 2) fit.
    snapshot, waiting = cluster((10, 10), allocated=FULL), tasks((0, 9, (2, 2)))
    assert pairs(Planner().plan(snapshot, waiting, 0.0)) == []
    plan = second_pass(second_planner(Policy()), snapshot, room_of((5, 7)), waiting, 0.0)
    assert pairs(plan) == [(0, 0), (0, 0)]


def test_shares_of_idle_room_are_apart_from_regular_ones():
    # Regularly job 0 holds all and job 1 nothing; of idle room it is the other way round, so that job 0 has its turn.
    snapshot, waiting = cluster((10, 10), allocated=FULL), tasks((0, 1, (4, 4)), (1, 1, (4, 4)))
    allocated, given = np.zeros((2, 6)), np.zeros((2, 6))
    allocated[0, :2], given[1, :2] = 10, 4
    jobs = replace(waiting.jobs, allocated=allocated)
    room, policy = room_of((4, 4)), Policy(fairness=0.99)
    alone = second_pass(second_planner(policy), snapshot, room, replace(waiting, jobs=jobs), 0.0)
    assert len(pairs(alone)) == 1
    both = replace(waiting, jobs=replace(jobs, opportunistic=given))
    assert pairs(second_pass(second_planner(policy), snapshot, room, both, 0.0)) == [(0, 0)]
    assert pairs(Planner(policy).plan(cluster((4, 4)), replace(waiting, jobs=jobs), 0.0)) == [(1, 0)]


def test_gangs_and_classes_that_may_not_stay_regular():
    snapshot, waiting = cluster((10, 10), allocated=FULL), tasks((0, 1, (2, 2)), (1, 1, (2, 2)), (2, 1, (2, 2)))
    gangs = replace(waiting, gang=np.array([-1, 0, -1]), gang_least=np.array([1]))
    may = np.array([True, True, False])
    plan = second_pass(second_planner(Policy()), snapshot, room_of((10, 10)), gangs, 0.0, may=may)
    assert pairs(plan) == [(0, 0)]


def test_nothing_of_idle_room_is_reserved_however_long_a_class_waits():
    snapshot, waiting = cluster((10, 10), (10, 10), allocated=FULL * 2), tasks((0, 1, (8, 8)), (1, 9, (2, 2)))
    planner = second_planner(Policy())
    for now in (0.0, 1_000.0):
        plan = second_pass(planner, snapshot, room_of((2, 2), (2, 2)), waiting, now)
        assert pairs(plan) == [(1, 0), (1, 1)]
        assert not plan.carried.reserved


def test_the_oldest_become_regular_first_where_room_is():
    # 4 are free on the first node: of three tasks of 2 there, those that began at 1 and 2; none fits on the second.
    node, demand = np.array([0, 0, 0, 1]), np.array([[2.0]] * 4)
    since, may = np.array([3.0, 1.0, 2.0, 0.0]), np.ones(4, dtype=bool)
    assert promotions(np.array([[4.0], [1.0]]), node, demand, since, may=may).tolist() == [1, 2]
    assert promotions(np.array([[4.0], [1.0]]), node, demand, since, may=~may).tolist() == []


def test_a_queue_with_less_that_waits_for_the_room_comes_before_a_promotion():
    # The task of queue 0 (half of all) on node 0 waits for queue 1 (a tenth); on node 1 nothing of that queue fits.
    waits = [(0, 0.5, lambda: np.array([True, True])), (0, 0.1, lambda: np.array([True, False]))]
    may = nobody_before(np.zeros(3, np.int64), np.array([0.5, 0.5, 0.1]), np.array([0, 1, 0]), waits, 2)
    assert may.tolist() == [False, True, True]


def test_room_that_a_higher_priority_waits_for_makes_nobody_of_a_lower_one_regular():
    waits = [(5, 0.9, lambda: np.array([True, False]))]
    may = nobody_before(np.array([0, 5, 0]), np.full(3, 0.5), np.array([0, 0, 1]), waits, 2)
    assert may.tolist() == [False, True, True]


@pytest.mark.parametrize("starved_after", [1.0, 120.0])
def test_the_regular_planner_keeps_its_own_notes(starved_after):
    policy = Policy(starved_after=starved_after)
    assert second_planner(policy).policy == replace(policy, starved_after=np.inf)
