"""Why tasks still wait, in words that a user understands."""

from collections.abc import Sequence

import numpy as np

from extender.planner.board import Board


def held(board: Board) -> dict[int, str]:
    """Return why tasks of a class still wait, by its row in `waiting`."""
    axis = board.snapshot.layout.axis
    return {int(board.rows[index]): _reason(board, index, axis) for index in np.flatnonzero(board.left > 0).tolist()}


def _reason(board: Board, index: int, axis: Sequence[str]) -> str:
    sources, free, capacity = board.sources, board.free.T, board.snapshot.layout.capacity
    demand = board.here[index] if sources.own[index] else board.waiting.demand[board.rows[index]]
    if not len(free):
        return "there are no nodes"
    asks = demand > 0
    short = (capacity < demand) & asks
    if short.any(axis=1).all():
        return f"no node is large enough: too little {axis[int(short.sum(axis=0).argmax())]} on every node"
    no_source = not sources.own[index] and not sources.able(np.array([index])).any()
    short = (free < demand) & asks
    if short.any(axis=1).all():
        return f"no node has enough free: mostly {axis[int(short.sum(axis=0).argmax())]} is short"
    if sources.dead[index] or no_source:
        return "the nodes that hold its input have no disk read or network out to spare"
    if (short.any(axis=1) | board.closed).all():
        return "nodes with room are reserved for tasks that have waited too long"
    return "reading its input needs more disk read or network in than nodes with room have free"
