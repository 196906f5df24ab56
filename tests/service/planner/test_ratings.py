"""What a plan would weigh for one class on each node."""

import numpy as np
import pytest

from extender.planner import Carried, Policy, alignments, owed_to_jobs, ratings
from tests.service.planner.scenes import cluster, once, tasks


def test_nodes_are_rated_best_first_by_alignment_less_the_work_term():
    # Demand 1 of 4: n0 has 2 free (0.25 x 0.5), n1 4 (0.25 x 1). One class alone: its work is all there is, so that
    # eps x work is the alignment itself, and the scores are 0: ties go by the node's row.
    snapshot = cluster((4,), (4,), allocated=[[2, *[0] * 5], [0] * 6])
    found = ratings(Policy(), snapshot, tasks((0, 1, (1,))), Carried(), 0)
    assert [it.node for it in found] == [0, 1]
    assert [it.alignment for it in found] == pytest.approx([0.125, 0.25])
    assert [it.score for it in found] == pytest.approx([it.alignment - it.work for it in found])
    free = Policy(srtf=0.0)
    assert [it.node for it in ratings(free, snapshot, tasks((0, 1, (1,))), Carried(), 0)] == [1, 0]


def test_a_node_without_room_is_not_rated():
    snapshot = cluster((4,), (4,), allocated=[[4, *[0] * 5], [0] * 6])
    assert [it.node for it in ratings(Policy(), snapshot, tasks((0, 1, (1,))), Carried(), 0)] == [1]


def test_the_best_rating_is_the_score_that_the_plan_takes_first():
    snapshot, waiting = cluster((4,)), tasks((0, 1, (1,)), (0, 1, (3,)))
    plan = once(snapshot, waiting)
    row = int(plan.assignments.task_class[0])
    (best,) = ratings(Policy(), snapshot, waiting, Carried(), row)
    assert best.score == pytest.approx(plan.terms[0].score)
    assert best.alignment == pytest.approx(plan.terms[0].alignment)


def test_alignment_is_known_where_nothing_fits_as_well():
    snapshot = cluster((4,), (4,), allocated=[[4, *[0] * 5], [0] * 6])
    free = snapshot.layout.capacity - snapshot.allocated
    found = alignments(Policy(), snapshot, np.array([2.0, 0, 0, 0, 0, 0]), free)
    assert found.tolist() == pytest.approx([0.0, 0.5])


def test_a_job_without_anything_is_owed_all_its_share():
    assert owed_to_jobs(Policy(), cluster((4,)), tasks((0, 1, (1,))), Carried()).tolist() == [1.0]
