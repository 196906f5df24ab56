import numpy as np
from hypothesis import given, settings

from extender.planner import Carried
from extender.planner.board import Board
from extender.planner.checkpoint import checkpoint
from extender.planner.filling import fill
from extender.planner.prepared import prepared
from tests.planner.scenes import real_scenes


def filled(board, waiting):
    """Fill the board with all classes, and return what has been taken and what was left of everything."""
    everyone = np.ones(len(waiting.count), bool)
    board.admit(everyone)
    fill(board, 1000.0 - waiting.since, everyone)
    taken, terms, turns, sources = board.taken.assignments(), board.taken.terms(), board.turns, board.sources
    return [
        *(np.array(column) for column in (taken.task_class, taken.node, taken.task, taken.source)),
        *(np.array(column) for column in (terms.score, terms.owed, terms.starved)),
        *(np.array(amounts) for amounts in (board.free, board.left, board.closed, sources.local, sources.kept)),
        *(np.array(share) for share in (turns.owed, turns.deficit, turns.classes)),
        np.array(sorted(sources.dead)),
        np.array(sorted(board.reserved.items())),
    ]


@settings(max_examples=200, deadline=None)
@given(real_scenes())
def test_what_was_tried_can_be_taken_back_again_and_again(scene):
    snapshot, waiting, policy = scene
    classes = prepared(waiting, snapshot.layout)
    board = Board(policy, snapshot, waiting, Carried(), classes)
    undo = checkpoint(board)
    first = filled(board, waiting)
    for _ in range(2):
        undo()
        assert not len(board.taken.assignments())
        assert not board.reserved
        assert not board.sources.dead
        again = filled(board, waiting)
        assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
