"""The order of a job's DAG in a plan."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from extender.cluster.waiting import TaskOrder
from extender.errors import SettingsError
from extender.planner import Carried, Policy, dag_rank, ratings
from extender.planner.dag_progress import DagProgress
from tests.service.planner.scenes import cluster, once, pairs, scenes, tasks


def ordered(waiting, *priorities, dag=None):
    """Return the same with these priorities of each class's waiting tasks; None: its job has no order."""
    ends = np.cumsum([0, *(len(those or ()) for those in priorities)])
    of_dag = waiting.job if dag is None else np.array(dag)
    none = np.array([those is None for those in priorities])
    order = TaskOrder(
        priority=np.array([value for those in priorities for value in those or ()], dtype=float),
        next=np.where(none, -1, ends[:-1]),
        dag=np.where(none, -1, of_dag),
    )
    return replace(waiting, order=order)


@given(scenes())
def test_jobs_without_a_dag_and_plans_at_rank_0_are_as_without_any_order(scene):
    capacities, classes, policy = scene
    snapshot, waiting = cluster(*capacities), tasks(*classes)
    plain = once(snapshot, waiting, policy)
    nobody = once(snapshot, ordered(waiting, *[None] * len(classes)), policy)
    some = [np.linspace(1.0, 0.1, count).tolist() for count in waiting.count.tolist()]
    at_rank_0 = once(snapshot, ordered(waiting, *some), replace(policy, rank=0.0))
    for plan in (nobody, at_rank_0):
        assert pairs(plan) == pairs(plain)
        assert list(plan.terms) == list(plain.terms)
    assert {(terms.order, terms.rank) for terms in plain.terms} <= {(1.0, None)}


def test_the_rank_of_a_class_moves_as_its_tasks_are_taken():
    # One node of 8: both classes take 1, class 1 a little more, so packing alone would start all of it first.
    # By its DAG class 0 begins with 1.0, then has 0.5; class 1 has 0.7 twice.
    snapshot = cluster((8,))
    waiting = tasks((0, 2, (1.0,)), (0, 2, (1.01,)))
    assert [row for row, _ in pairs(once(snapshot, waiting))] == [1, 1, 0, 0]
    plan = once(snapshot, ordered(waiting, (1.0, 0.5), (0.7, 0.7)))
    assert [row for row, _ in pairs(plan)] == [0, 1, 1, 0]
    # Each time the job's first waiting task goes; the terms have the ranks as they were then.
    assert [terms.rank for terms in plan.terms] == [1.0, 0.7, 0.7, 0.5]
    assert [terms.order for terms in plan.terms] == [1.0] * 4


def test_a_task_that_packs_much_better_passes_the_order_and_its_terms_say_so():
    # Alignments 1/8 and 4/8 on an empty node; 0.4 behind the first makes 0.5 x 0.6 = 0.3, which is more than 0.125.
    waiting = ordered(tasks((0, 1, (1,)), (0, 1, (4,))), (1.0,), (0.6,))
    plan = once(cluster((8,)), waiting)
    assert [row for row, _ in pairs(plan)] == [1, 0]
    assert [terms.order for terms in plan.terms] == pytest.approx([0.6, 1.0])
    assert plan.terms[0].alignment == pytest.approx(0.3)
    (rating,) = ratings(Policy(), cluster((8,)), waiting, Carried(), 1)
    assert (rating.order, rating.alignment) == pytest.approx((0.6, 0.3))
    assert dag_rank(Policy(), waiting, 1) == 0.6
    assert dag_rank(Policy(rank=0.0), waiting, 1) is None


def test_jobs_do_not_pass_each_other_by_where_they_are_in_their_orders():
    # Job 0 is at its end (0.1), job 1 begins (1.0): each one's only class is its first, and ties go by row.
    waiting = ordered(tasks((0, 1, (1,)), (1, 1, (1,))), (0.1,), (1.0,))
    assert [terms.order for terms in once(cluster((8,)), waiting).terms] == [1.0, 1.0]


def test_what_was_counted_can_be_taken_back():
    waiting = ordered(tasks((0, 2, (1,)), (0, 2, (1,)), (1, 1, (1,))), (1.0, 0.2), (0.6, 0.4), None)
    progress = DagProgress(waiting, rank=1.0)
    before = progress.factor.tolist()
    assert before == pytest.approx([1.0, 0.6, 1.0])
    undo = progress.checkpoint()
    progress.start(0)
    assert progress.factor.tolist() == pytest.approx([0.6, 1.0, 1.0])
    progress.start(2)
    assert [progress.rank(row) for row in range(3)] == [0.2, 0.6, None]
    undo()
    assert [progress.rank(row) for row in range(3)] == [1.0, 0.6, None]
    assert progress.factor.tolist() == before
    progress.start(0)
    assert progress.factor.tolist() == pytest.approx([0.6, 1.0, 1.0])


def test_a_class_of_which_nobody_waits_is_nobodys_first():
    waiting = tasks((0, 0, (1,)), (0, 1, (1,)))
    order = TaskOrder(np.array([1.0, 0.5]), np.array([0, 1]), np.array([0, 0]))
    assert DagProgress(replace(waiting, order=order), rank=1.0).factor.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("rank", [-0.1, 1.1])
def test_a_rank_beyond_0_to_1_is_refused(rank):
    with pytest.raises(SettingsError, match=r"rank: .* accepted: each 0 to 1"):
        Policy(rank=rank)


def test_the_last_tasks_of_a_stage_do_not_go_first_where_an_order_says_who_does():
    waiting = tasks((0, 1, (1,), None, None, 0.95), (0, 1, (1,)))
    assert [row for row, _ in pairs(once(cluster((1,)), waiting))] == [0]
    plan = once(cluster((1,)), ordered(waiting, (0.5,), (1.0,)))
    assert [row for row, _ in pairs(plan)] == [1]
    assert not plan.terms[0].barrier
