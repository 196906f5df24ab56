"""Room kept for a queue below its part: nodes of 4 cores, tasks that want nothing but cores, weights 1 and 1.

Class 0 is of the queue `large`, class 1 of the queue `small`.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from extender.cluster.waiting import Blocks
from extender.planner import Policy, plan_once
from extender.planner.board import Board
from extender.planner.checkpoint import checkpoint
from extender.planner.plan import Carried
from extender.planner.prepared import prepared
from extender.planner.starvation import keep_room
from tests.planner.scenes import cluster, filled, once, pairs, real_scenes, tasks

LARGE, SMALL = 0, 1


def nodes(*taken, cores=4.0):
    """Return nodes of which so many cores are taken."""
    return cluster(*[(cores,)] * len(taken), allocated=[[it, *[0] * 5] for it in taken])


def two_queues(*classes, large=0.0, small=0.0, **more):
    """Return classes (queue, count, cores) of two queues, each of one job, and what these have."""
    waiting = tasks(*((queue, count, (cores,)) for queue, count, cores in classes), **more)
    jobs = replace(
        waiting.jobs,
        queue=np.array([0, 1]),
        queue_names=["large", "small"],
        queue_weight=np.array([0.5, 0.5]),
        allocated=np.array([[large, *[0] * 5], [small, *[0] * 5]]),
    )
    return replace(waiting, jobs=jobs)


WAITS = two_queues((LARGE, 1, 4), (SMALL, 9, 1), small=4)
"""`small` has 4 of 8 cores: its half. The task of `large` takes a node; nodes with 2 free do not do."""
HALF_FULL = nodes(2, 2)


def test_a_queue_that_has_its_part_leaves_room_to_one_that_has_less():
    assert pairs(once(HALF_FULL, WAITS)) == []


def test_the_room_goes_to_whom_it_was_kept_for_and_others_go_on_to_their_parts():
    # Two of four small tasks have ended. `large` takes the empty node; `small` has 2 of 8, and goes on to 4.
    waiting = two_queues((LARGE, 1, 4), (SMALL, 9, 1), small=2)
    assert pairs(once(nodes(0, 2), waiting)) == [(LARGE, 0), (SMALL, 1), (SMALL, 1)]


def test_what_a_queue_does_not_want_is_not_kept():
    # `large` wants 3 of 12 cores, nothing more: `small`, which has 6, may have 9.
    waiting = two_queues((LARGE, 1, 3), (SMALL, 9, 1), small=6)
    assert pairs(once(nodes(2, 2, 2), waiting)) == [(SMALL, 0), (SMALL, 0), (SMALL, 1)]


def test_nothing_is_kept_for_a_task_that_would_take_its_queue_beyond_its_part():
    # One node: 4 of 4 cores would be more than the half.
    waiting = two_queues((LARGE, 1, 4), (SMALL, 9, 1), small=2)
    assert pairs(once(nodes(2), waiting)) == [(SMALL, 0), (SMALL, 0)]


@pytest.mark.parametrize("cores", [5, 4])
def test_nothing_is_kept_for_a_task_that_no_node_could_ever_take(cores):
    # Ten nodes: 5 cores are on none. 4 are, but the task may use none.
    barred = np.zeros((2, 10), dtype=bool)
    barred[0] = cores == 4
    waiting = replace(two_queues((LARGE, 1, cores), (SMALL, 2, 1), small=36), barred=barred)
    assert len(once(nodes(*[3.6] * 10), waiting).assignments) == 0
    assert len(once(nodes(*[2.0] * 10), waiting).assignments) == 2


def test_who_has_waited_too_long_has_a_node_reserved_instead():
    # After 120 s without a start one node is reserved; on the other small tasks go on.
    waiting = replace(WAITS, since=np.array([0.0, 119.0]))
    assert pairs(once(HALF_FULL, waiting, now=119.0)) == []
    plan = once(HALF_FULL, waiting, now=120.0)
    assert plan.carried.reserved == {"class0": "n0"}
    assert pairs(plan) == [(SMALL, 1), (SMALL, 1)]


def test_a_plan_says_when_room_will_be_kept_no_longer():
    assert once(HALF_FULL, WAITS, now=50.0).again_at == 120.0
    assert once(nodes(0, 2), WAITS, now=50.0).again_at == np.inf


def test_nothing_is_kept_for_gangs():
    waiting = replace(WAITS, gang=np.array([0, -1]), gang_least=np.array([2]), count=np.array([2, 9]))
    assert pairs(once(HALF_FULL, waiting)) == [(SMALL, 0), (SMALL, 0), (SMALL, 1), (SMALL, 1)]


@pytest.mark.parametrize("policy", [Policy(fairness=0), Policy(sharing="deficit")])
def test_without_fair_queues_nothing_is_kept(policy):
    assert len(once(HALF_FULL, WAITS, policy).assignments) == 4


def test_the_room_is_kept_from_lower_priorities_and_not_for_them():
    above = replace(WAITS, priority=np.array([10, 0]))
    assert pairs(once(HALF_FULL, above)) == []
    below = replace(WAITS, priority=np.array([0, 10]))
    assert len(once(HALF_FULL, below).assignments) == 4


def test_what_somebody_waits_to_have_nearer_is_not_kept():
    # `large` would fit on n0 but waits for n1, which has its block: delay scheduling lets others go meanwhile.
    waiting = two_queues((LARGE, 1, 1), (SMALL, 9, 1), small=6)
    block = Blocks(np.array([[1]], np.intp), np.ones(1, bool), 2)
    waiting = replace(waiting, inputs=[block, None])
    assert pairs(once(nodes(2, 4), waiting, Policy(locality_waits=(5.0,)))) == [(SMALL, 0), (SMALL, 0)]


def test_once_nobody_is_owed_anything_the_nodes_that_were_passed_by_are_filled():
    # Of 24 cores `small` has its half; `large` 6, and a task of 4 more is within its half, two are not. n1 (half
    # empty) is looked at first, and kept; then `large` takes what n0 has, and n1 is for anybody.
    snapshot = cluster((16,), (4,), (4,), allocated=[[12, *[0] * 5], [2, *[0] * 5], [4, *[0] * 5]])
    waiting = two_queues((LARGE, 2, 4), (SMALL, 9, 1), large=6, small=12)
    assert pairs(once(snapshot, waiting)) == [(LARGE, 0), (SMALL, 1), (SMALL, 1)]


def test_who_leaves_room_to_others_is_told_so():
    held = once(HALF_FULL, WAITS, explain=True).held
    assert (held[LARGE].kind, held[SMALL].kind) == ("no-room", "kept")
    assert held[SMALL].text == "it would fit, but its queue has its share: room is kept for queues that have less"


@settings(max_examples=200, deadline=None)
@given(real_scenes())
def test_with_several_queues_what_was_tried_can_be_taken_back_as_well(scene):
    snapshot, waiting, policy = scene
    jobs = waiting.jobs
    queue = np.arange(len(jobs.names))
    weight = np.ones(len(queue)) / len(queue)
    waiting = replace(waiting, jobs=replace(jobs, queue=queue, queue_names=jobs.names, queue_weight=weight))
    board = Board(policy, snapshot, waiting, Carried(), prepared(waiting, snapshot.layout))
    keep_room(board, 100.0 - waiting.since, waiting.count > 0)
    undo = checkpoint(board)
    first = filled(board, waiting)
    undo()
    again = filled(board, waiting)
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))


@settings(max_examples=200, deadline=None)
@given(real_scenes())
def test_somebody_always_goes_on_an_empty_cluster_where_without_keeping_somebody_would(scene):
    snapshot, waiting, policy = scene
    jobs = waiting.jobs
    queue = np.arange(len(jobs.names))
    weight = np.ones(len(queue)) / len(queue)
    shared = replace(waiting, jobs=replace(jobs, queue=queue, queue_names=jobs.names, queue_weight=weight))
    kept = plan_once(policy, snapshot, shared, 100.0, Carried())
    freely = plan_once(replace(policy, fairness=0.0), snapshot, shared, 100.0, Carried())
    assert (len(kept.assignments) > 0) == (len(freely.assignments) > 0)
