"""Tasks that have waited too long: one starts at once where it fits, else the node that it will fit on is reserved.

Tetris (3.5) leaves this to future work.
"""

import numpy as np

from extender.cluster.waiting import Running
from extender.planner.board import Board
from extender.planner.plan import Carried

_NODES_TRIED = 16


def serve_starved(board: Board, now: float, carried: Carried) -> dict[str, str]:
    """Give one task of each starved class a node at once, or reserve one; returns class name -> node name."""
    waiting, layout = board.waiting, board.snapshot.layout
    waited = now - waiting.since
    starved = ((waited >= board.policy.starved_after) & board.alive).nonzero()[0]
    most = max(1, int(board.policy.reservable * len(layout.names)))
    reserved: dict[str, str] = {}
    for index in starved[np.argsort(-waited[starved], kind="stable")].tolist():
        name = waiting.names[index]
        node = layout.rows.get(carried.reserved.get(name, ""), -1)
        if _start(board, index, node):
            continue
        if len(reserved) < most:
            node = node if node >= 0 and not board.closed[node] else _soonest(board, index, waiting.running)
            if node >= 0:
                board.closed[node] = True
                reserved[name] = layout.names[node]
    return reserved


def _start(board: Board, index: int, preferred: int) -> bool:
    """Place one task where it fits: on its reserved node, else on an open one with its block or the most room."""
    open_nodes = (~board.closed).nonzero()[0]
    near, far = board.fits(np.array([index]), open_nodes)
    places = open_nodes[(near | far)[0]]
    room = board.room(places) + board.sources.local[index, places]
    order = places[np.argsort(-room, kind="stable")].tolist()
    order = [node for node in (preferred,) if node in order] + [node for node in order if node != preferred]
    took = False
    for node in order[:_NODES_TRIED]:
        took = board.start(index, node)
        board.sources.dead.discard(index)
        board.alive[index] = board.left[index] > 0
        if took:
            break
    return took


def _soonest(board: Board, index: int, running: Running | None) -> int:
    """Return the open node that will have room for the class soonest, by the ends of what runs; -1 if none will."""
    demand = (board.classes.here if board.classes.own[index] else board.classes.away)[index]
    capacity, present = board.snapshot.layout.capacity, board.free.T
    able = ((capacity >= demand) | (demand <= 0)).all(axis=1) & ~board.closed
    if running is None or not able.any():
        return int(able.argmax()) if able.any() else -1
    order = np.lexsort((running.ends_at, running.node))
    node, ends = running.node[order], running.ends_at[order]
    freed = np.cumsum(running.demand[order], axis=0)
    first = np.searchsorted(node, node, side="left")
    before = np.vstack((np.zeros(freed.shape[1]), freed))[first]
    enough = (present[node] + freed - before >= demand) | (demand <= 0)
    free_at = np.full(len(able), np.inf)
    then = enough.all(axis=1).nonzero()[0]
    np.minimum.at(free_at, node[then], ends[then])
    free_at[~able] = np.inf
    return int(free_at.argmin()) if np.isfinite(free_at).any() else int(able.argmax())
