from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from extender.cluster.waiting import Blocks, Running
from extender.planner import Policy
from tests.service.planner.scenes import cluster, load_of, once, pairs, real_scenes, reserved_nodes, tasks


def with_barred(waiting, *barred):
    return replace(waiting, barred=np.array(barred, bool))


@pytest.mark.parametrize("matching", ["machine", "pair"])
def test_a_class_goes_only_where_it_may(matching):
    waiting = with_barred(tasks((0, 9, (1,)), (1, 9, (1,))), [True, False], [False, False])
    plan = once(cluster((2,), (2,)), waiting, Policy(matching=matching, fairness=0))
    assert sorted(pairs(plan)) == [(0, 1), (0, 1), (1, 0), (1, 0)]


def test_a_starved_class_goes_and_reserves_only_where_it_may():
    # n0 is empty, but barred; n1 will have room at 50 s, n2 at 20 s, but is barred as well.
    running = Running(np.array([1, 2]), np.array([50.0, 20.0]), np.array([[3.0, *[0] * 5]] * 2))
    waiting = with_barred(tasks((0, 1, (4,)), (1, 9, (1,)), running=running), [True, False, True], [False] * 3)
    snapshot = cluster((4,), (4,), (4,), allocated=[[0] * 6, [3, *[0] * 5], [3, *[0] * 5]])
    plan = once(snapshot, waiting, now=1000.0)
    assert reserved_nodes(plan) == {"class0": ["n1"]}
    assert sorted(pairs(plan)) == [(1, 0)] * 4 + [(1, 2)]
    nowhere = replace(waiting, barred=np.array([[True] * 3, [False] * 3]))
    assert not once(snapshot, nowhere, now=1000.0).carried.reserved


def test_a_block_on_a_barred_node_is_read_from_elsewhere():
    waiting = tasks((0, 1, (1,), 5, Blocks(np.array([[0]]), np.ones(1, bool), 2)))
    plan = once(cluster((4, 4, 10, 10, 10, 10), (4, 4, 10, 10, 10, 10)), with_barred(waiting, [True, False]))
    assert pairs(plan) == [(0, 1)]
    assert plan.assignments.source.tolist() == [0]


def test_who_may_go_anywhere_leaves_the_node_that_more_may_use():
    # Both nodes hold one task. Job 0 may go to either; job 1 to n0 only, which would come first by its name.
    waiting = with_barred(tasks((0, 1, (4,)), (1, 1, (4,))), [False, False], [False, True])
    assert sorted(pairs(once(cluster((4,), (4,)), waiting))) == [(0, 1), (1, 0)]


def test_barring_nobody_is_as_nothing_barred():
    waiting = tasks((0, 3, (2, 1)), (1, 3, (1, 2)))
    snapshot = cluster((9, 6), (5, 9))
    assert pairs(once(snapshot, with_barred(waiting, *[[False] * 2] * 2))) == pairs(once(snapshot, waiting))


@settings(max_examples=250, deadline=None)
@given(real_scenes())
def test_no_plan_over_allocates_or_uses_or_reserves_a_barred_node(scene):
    snapshot, waiting, policy = scene
    plan = once(snapshot, waiting, policy, now=1000.0)
    assert (load_of(snapshot, waiting, plan) <= snapshot.layout.capacity).all()
    assert (np.bincount(plan.assignments.task_class, minlength=len(waiting.count)) <= waiting.count).all()
    named = [(c, t) for c, t in zip(plan.assignments.task_class, plan.assignments.task, strict=True) if t >= 0]
    assert len(named) == len(set(named))
    assert len(plan.terms) == len(plan.assignments)
    if waiting.barred is not None:
        assert not waiting.barred[plan.assignments.task_class, plan.assignments.node].any()
        for name, node, _ in (room for of in plan.carried.reserved.values() for room in of.room):
            assert not waiting.barred[waiting.names.index(name), snapshot.layout.rows[node]]
