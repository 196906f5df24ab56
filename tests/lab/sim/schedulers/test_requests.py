"""Schedulers that see only what job managers ask for first."""

from extender.planner import Planner, Policy
from lab.sim.schedulers.requests import RequestsInOrder
from tests.service.planner.scenes import cluster, pairs, tasks
from tests.service.planner.test_dag_progress import ordered


def started(capacities, waiting):
    plan = RequestsInOrder(Planner(Policy())).plan(cluster(*capacities), waiting, 0.0)
    return [row for row, _ in pairs(plan)]


def test_what_is_asked_for_first_goes_first_though_what_comes_later_packs_better():
    # Packing alone would begin with class 1, which takes half of the node.
    waiting = tasks((0, 2, (1,)), (0, 1, (4,)))
    assert [row for row, _ in pairs(Planner(Policy()).plan(cluster((8,)), waiting, 0.0))] == [1, 0, 0]
    assert started([(8,)], ordered(waiting, (1.0, 0.5), (0.25,))) == [0, 0, 1]


def test_what_comes_later_starts_where_what_is_asked_for_first_does_not_fit():
    assert started([(4,)], ordered(tasks((0, 1, (6,)), (0, 3, (2,))), (1.0,), (0.5, 0.5, 0.5))) == [1, 1]


def test_requests_that_are_alike_are_seen_together_and_each_job_has_its_first():
    waiting = tasks((0, 1, (1,)), (0, 1, (4,)), (1, 1, (1,)))
    assert started([(8,)], ordered(waiting, (1.0,), (1.0,), (1.0,)))[0] == 1
    assert sorted(started([(6,)], ordered(waiting, (1.0,), (0.5,), (1.0,)))) == [0, 1, 2]


def test_where_nothing_waits_nothing_starts():
    assert started([(4,)], ordered(tasks((0, 0, (1,))), ())) == []
