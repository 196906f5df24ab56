"""Why tasks still wait, in words that a user understands."""

from collections.abc import Sequence

import numpy as np

from extender.planner.board import Board


def held(board: Board) -> dict[int, str]:
    """Return why tasks of a class still wait, by its row in `waiting`."""
    axis = board.snapshot.layout.axis
    return {row: _reason(board, row, axis) for row, left in enumerate(board.left) if left}


def _reason(board: Board, index: int, axis: Sequence[str]) -> str:
    sources, free, capacity = board.sources, board.free.T, board.snapshot.layout.capacity
    own = bool(board.classes.own[index])
    demand = board.classes.here[index] if own else board.waiting.demand[index]
    if not len(free):
        return "there are no nodes"
    asks = demand > 0
    short = (capacity < demand) & asks
    if short.any(axis=1).all():
        return f"no node is large enough: too little {axis[int(short.sum(axis=0).argmax())]} on every node"
    no_source = not own and not sources.able(np.array([index]), np.arange(len(free))).any()
    short = (free < demand) & asks
    if short.any(axis=1).all():
        return f"no node has enough free: mostly {axis[int(short.sum(axis=0).argmax())]} is short"
    if index in sources.dead or no_source:
        return "the nodes that hold its input have no disk read or network out to spare"
    if (short.any(axis=1) | board.closed).all():
        return "nodes with room are reserved for tasks that have waited too long"
    return "reading its input needs more disk read or network in than nodes with room have free"
