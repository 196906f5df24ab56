"""Which nodes tasks wait for that want to start near their input, and why none of these will do, in words.

A node that a class may not use, or that is too small for it, is none of them.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Mask, fits
from extender.cluster.waiting import Blocks
from extender.planner.board import Board
from extender.planner.locality.delay import Locality

States = NDArray[np.uint8]

FULL, RESERVED, CROWDED, OTHERWISE = 1, 2, 4, 8
"""Why a task does not start on a node: one bit each, so that they add up over nodes."""

_WORDS = {FULL: "full", RESERVED: "reserved", CROWDED: "crowded by long tasks"}
_TASKS_AT_ONCE = 256


def states(board: Board, locality: Locality, index: int, demand: Floats) -> States:
    """Return why a task of a class that demands this does not start on each node [N], 0 where it never could."""
    usable = board.room.allowed(np.array([index]), np.arange(board.free.shape[1]))[0]
    usable = usable & fits(board.snapshot.layout.capacity, demand)
    state = np.where(locality.nearness.crowded(index), CROWDED, OTHERWISE)
    state[~fits(board.free.T, demand)] = RESERVED
    state[~fits((board.free + board.reserved).T, demand)] = FULL
    return np.where(usable, state, 0).astype(np.uint8)


def described(board: Board, locality: Locality, index: int, level: int, of_nodes: States) -> Mapping[int, str]:
    """Return by task how many nodes it has at most at this level and why none will do, empty where it has none.

    Of a class that reads no blocks one for all, by -1. `of_nodes` [N] are the `states` of nodes.
    """
    inputs, nearness = board.waiting.inputs[index], locality.nearness
    if not isinstance(inputs, Blocks):
        return {-1: _worded(nearness.preferred_nodes(index, level)[np.newaxis], of_nodes)[0]}
    left = board.sources.left(index, inputs).nonzero()[0]
    words: dict[int, str] = {}
    for begin in range(0, len(left), _TASKS_AT_ONCE):
        tasks = left[begin : begin + _TASKS_AT_ONCE]
        near = nearness.nodes_near(inputs.copies[tasks], level)
        words.update(zip(tasks.tolist(), _worded(near, of_nodes), strict=True))
    return words


def _worded(near: Mask, of_nodes: States) -> list[str]:
    """Return the words for each task, by which nodes are `near` it [T, N]."""
    among = np.where(near, of_nodes, 0)
    counts, why = (among > 0).sum(axis=1).tolist(), np.bitwise_or.reduce(among, axis=1).tolist()
    words = {pair: _words(*pair) for pair in {*zip(counts, why, strict=True)}}
    return [words[pair] for pair in zip(counts, why, strict=True)]


def _words(nodes: int, why: int) -> str:
    if not nodes:
        return ""
    if why & OTHERWISE:
        return (
            "1 preferred node, without room for it" if nodes == 1 else f"{nodes} preferred nodes, none with room for it"
        )
    words = " or ".join(word for bit, word in _WORDS.items() if why & bit)
    return f"1 preferred node, {words}" if nodes == 1 else f"{nodes} preferred nodes, all {words}"
