"""Tasks that have waited too long: one starts at once where it fits, else the node that it will fit on is reserved.

Tetris (3.5) leaves this to future work. Until then room may be kept for their queue (`keeping`).
"""

import numpy as np

from extender.cluster.waiting import Running
from extender.planner.board import Board
from extender.planner.plan import Floats, Mask
from extender.planner.sources import Sources

_NODES_TRIED = 16
_ROUNDING_SECONDS = 1e-3


def serve_starved(board: Board, waited: Floats, may: Mask) -> None:
    """Give one task of each starved class a node at once, or reserve one (`board.reserved`: class name -> node name).

    Starved are those of `may` [C] that have `waited` [C] for long. None of them leaves disks to shuffles: else each
    could wait for the other for ever. One that has room, but farther from its input than it may start yet, is passed
    over like any other, but from then on its waits pass by the clock: nothing is reserved for what could start.
    """
    board.sources.keeping = False
    empty: Sources | None = None
    waiting, layout, before = board.waiting, board.snapshot.layout, board.carried.reserved
    starved = ((waited >= board.policy.starved_after) & board.alive & may).nonzero()[0]
    most = max(1, int(board.policy.reservable * len(layout.names)))
    for index in starved[np.argsort(-waited[starved], kind="stable")].tolist():
        name = waiting.names[index]
        node = layout.rows.get(before.get(name, ""), -1)
        if _start(board, index, node):
            continue
        if len(board.reserved) < most:
            empty = empty or _all_empty(board)
            near, able = _on_empty_nodes(board, index, empty)
            if node < 0 or not able[node]:
                node = _soonest(board, index, near, able, waiting.running)
            if node >= 0:
                board.closed[node] = True
                board.reserved[name] = layout.names[node]
    board.sources.keeping = True


def keep_room(board: Board, waited: Floats, classes: Mask) -> None:
    """Have room kept for the queues of these classes [C], for those that have not `waited` [C] seconds too long."""
    worth = classes & (waited < board.policy.starved_after - _ROUNDING_SECONDS)
    board.turns.keep_for(worth, lambda index: _could_start(board, index))


def kept_seconds(board: Board, waited: Floats) -> float:
    """Return for how many seconds room is kept yet, if nothing happens; infinite if none is, for others who wait."""
    rows = board.turns.kept_for()
    return float((board.policy.starved_after - waited[rows]).min(initial=np.inf))


def _could_start(board: Board, index: int) -> bool:
    """Whether some node that a task may use would have room for it if it were empty."""
    takes = board.classes.whole[index][:, np.newaxis]
    fits = ((takes <= board.classes.capacity) | (takes <= 0)).all(axis=0)
    return bool((fits & board.allowed(np.array([index]), np.arange(len(fits)))[0]).any())


def _start(board: Board, index: int, preferred: int) -> bool:
    """Place one task where it fits: on its reserved node, else on an open one with its block or the most room.

    Returns whether that was done, or the class waits for a nearer node.
    """
    open_nodes = (~board.closed).nonzero()[0]
    near, far = board.fits(np.array([index]), open_nodes)
    if board.locality is not None:
        fits = bool((near | far).any())
        near, far = board.locality.keep_near(index, open_nodes, near, far)
        if fits and not (near | far).any():
            return True
    places = open_nodes[(near | far)[0]]
    room = board.room(places)
    if not board.classes.own[index]:
        room = room + board.sources.local[index, places]
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


def _all_empty(board: Board) -> Sources:
    """Return the sources as they were if all nodes were empty."""
    waiting, classes = board.waiting, board.classes
    return Sources(classes, waiting.inputs, waiting.count, classes.capacity.copy(), headroom=0.0)


def _on_empty_nodes(board: Board, index: int, empty: Sources) -> tuple[Mask, Mask]:
    """Return on which nodes a task would read if all were empty, and on which open ones it could start at all [N]."""
    classes = board.classes
    near = (empty.local[index] > 0) & (classes.here_needs[index][:, np.newaxis] <= classes.capacity).all(axis=0)
    far = (classes.away_needs[index][:, np.newaxis] <= classes.capacity).all(axis=0)
    if classes.own[index]:
        far[:] = False
    else:
        far &= empty.able(np.array([index]), np.arange(len(far)))[0]
    able = (near | far) & ~board.closed
    if board.waiting.barred is not None:
        able &= ~board.waiting.barred[index]
    return near, able


def _soonest(board: Board, index: int, near: Mask, able: Mask, running: Running | None) -> int:
    """Return the able node that will have room for the class soonest, by the ends of what runs; -1 if none will.

    Where nobody knows what runs, the first.
    """
    if not able.any() or running is None:
        return int(able.argmax()) if able.any() else -1
    demand = np.where(near[:, np.newaxis], board.classes.here[index], board.classes.away[index])
    present = board.free.T
    order = np.lexsort((running.ends_at, running.node))
    node, ends = running.node[order], running.ends_at[order]
    freed = np.cumsum(running.demand[order], axis=0)
    first = np.searchsorted(node, node, side="left")
    before = np.vstack((np.zeros(demand.shape[1]), freed))[first]
    enough = (present[node] + freed - before >= demand[node]) | (demand[node] <= 0)
    free_at = np.full(len(able), np.inf)
    then = enough.all(axis=1).nonzero()[0]
    np.minimum.at(free_at, node[then], ends[then])
    free_at[~able] = np.inf
    return int(free_at.argmin()) if np.isfinite(free_at).any() else -1
