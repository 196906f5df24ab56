import numpy as np
from hypothesis import given, settings

from extender.planner import Carried
from extender.planner.board import Board
from extender.planner.prepared import prepared
from tests.service.planner.scenes import filled, real_scenes


@settings(max_examples=200, deadline=None)
@given(real_scenes())
def test_what_was_tried_can_be_taken_back_again_and_again(scene):
    snapshot, waiting, policy = scene
    classes = prepared(waiting, snapshot.layout)
    board = Board(policy, snapshot, waiting, Carried(), classes)
    undo = board.checkpoint()
    first = filled(board, waiting)
    for _ in range(2):
        undo()
        assert not len(board.taken.assignments())
        assert not board.reserved.any()
        assert not board.sources.dead
        again = filled(board, waiting)
        assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
