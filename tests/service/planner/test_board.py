from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.waiting import Blocks, Shuffle
from extender.planner import Carried, Policy
from extender.planner.board import Board
from extender.planner.prepared import prepared
from tests.service.planner.scenes import cluster, filled, once, pairs, real_scenes, tasks


@settings(max_examples=200, deadline=None)
@given(real_scenes(), st.integers(1, 2))
def test_what_was_tried_can_be_taken_back_again_and_again(scene, queues):
    snapshot, waiting, policy = scene
    number, names = len(waiting.jobs.names), ["a", "b"][:queues]
    jobs = replace(waiting.jobs, queue=np.arange(number) % queues, queue_names=names, queue_weight=np.ones(queues))
    waiting = replace(waiting, jobs=jobs)
    classes = prepared(waiting, snapshot.layout)
    board = Board(policy, snapshot, waiting, Carried(), classes)
    undo = board.checkpoint()
    first = filled(board, waiting)
    for _ in range(2):
        undo()
        assert not len(board.taken.assignments())
        assert not board.reserved.any()
        assert not any(board.fairness.is_due(row) for row in range(len(waiting.count)))
        assert not board.fairness.by_due.any()
        again = filled(board, waiting)
        assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))


def test_a_link_that_another_reads_over_is_not_promised_again_though_nothing_has_started_there():
    # The reader fits on n0 alone, and reads 5 of the 8 of n1's link; who sends 5 fits on n1 alone.
    snapshot = cluster((0, 4, 8, 8, 8, 8), (4, 0, 8, 8, 8, 8))
    reader = (0, 1, (0, 1), 5, Blocks(np.array([[1]]), np.ones(1, bool), 2))
    assert pairs(once(snapshot, tasks(reader, (0, 1, (1, 0, 0, 0, 0, 5))))) == [(0, 0)]


@st.composite
def shuffles(draw):
    """Shuffles that read from links of 2 to 8, at up to 2 from each, and others that read little or nothing."""
    nodes = draw(st.integers(2, 5))
    link = st.sampled_from([2.0, 4.0, 8.0])
    capacities = [(draw(st.sampled_from([2.0, 4.0])), 8, draw(link) * 2, 8, 20, draw(link)) for _ in range(nodes)]
    classes = []
    for _ in range(draw(st.integers(2, 5))):
        rates = np.array(draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0]), min_size=nodes, max_size=nodes)))
        demand = (draw(st.sampled_from([0.5, 1.0])), 1, draw(st.sampled_from([0.0, 0.0, 1.0])))
        classes.append(
            (draw(st.integers(0, 2)), draw(st.integers(1, 6)), demand, rates.sum(), Shuffle(np.arange(nodes), rates))
        )
    if draw(st.booleans()):
        classes.append((0, 3, (1, 1), 0.0, None))
    policy = Policy(source_excess=draw(st.sampled_from([0.0, 0.2])), kappa=draw(st.sampled_from([1.0, 0.1])))
    return cluster(*capacities), tasks(*classes), policy


@settings(max_examples=150, deadline=None)
@given(shuffles())
def test_remembering_refused_shuffles_changes_no_start(scene):
    snapshot, waiting, policy = scene
    outcomes = []
    for remembers in (True, False):
        board = Board(policy, snapshot, waiting, Carried(), prepared(waiting, snapshot.layout))
        board._remembers_refusals = remembers
        outcomes.append(filled(board, waiting))
    assert all(np.array_equal(one, other) for one, other in zip(*outcomes, strict=True))
