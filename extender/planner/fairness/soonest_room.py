"""Where there will be room soonest for a class or gang that fits nowhere now, by the ends of what runs.

What never ends (daemons, pods of others) never gives room.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, fits, needs_fit, short_of, times_fits
from extender.cluster.waiting import Running
from extender.planner.board import Board
from extender.planner.locality.sources import Sources

_WITHOUT_ENDS_SECONDS = 600.0
"""When room is taken to come where nobody knows what runs."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """A class, or a gang's classes, as rows; how many `tasks` of each must start together."""

    rows: tuple[int, ...]
    tasks: tuple[int, ...]
    gang: int = -1

    @property
    def row(self) -> int:
        """The class by which it is known: its first."""
        return self.rows[0]


def soonest_room(board: Board, claimant: Claimant, now: float) -> tuple[list[tuple[int, int, int]], float]:
    """Return where there will be room soonest, as (class, node, tasks), and when; nowhere: nothing, and never."""
    if claimant.gang < 0:
        return _soonest_node(board, claimant.row, now)
    return _soonest_nodes(board, claimant, now)


def _soonest_node(board: Board, row: int, now: float) -> tuple[list[tuple[int, int, int]], float]:
    running = board.waiting.running
    near, able = on_empty_nodes(board, row)
    if not able.any():
        return [], np.inf
    if running is None:  # nobody knows what runs: the first node that is large enough
        return [(row, int(able.argmax()), 1)], now + _WITHOUT_ENDS_SECONDS
    demand = np.where(near[:, np.newaxis], board.classes.here[row], board.classes.away[row])
    ready = np.where(able, free_at(board.free.T, demand, running), np.inf)
    node = int(ready.argmin())
    return ([(row, node, 1)], float(ready[node])) if ready[node] < np.inf else ([], np.inf)


def _soonest_nodes(board: Board, claimant: Claimant, now: float) -> tuple[list[tuple[int, int, int]], float]:
    """Return the same for a gang: the nodes where what runs ends first, until all of it has room."""
    # 1. What each node has once all that ends has ended, and when the last of that ends.
    running, last_end = board.waiting.running, np.full(board.free.shape[1], now)
    room = room_to_come(board)
    if running is not None:
        ends = running.ends_at < np.inf
        np.maximum.at(last_end, running.node[ends], running.ends_at[ends])
    # 2. Class by class, as many tasks on each node as fit, the node that is free first before others.
    places: list[tuple[int, int, int]] = []
    for row, tasks in zip(claimant.rows, claimant.tasks, strict=True):
        demand, left = board.classes.whole[row], tasks
        _, able = on_empty_nodes(board, row)
        times = np.where(able, times_fits(room, demand), 0.0)
        for node in np.argsort(np.where(times > 0, last_end, np.inf), kind="stable").tolist():
            count = int(min(left, times[node]))
            if count <= 0:
                break
            places.append((row, node, count))
            room[node] -= count * demand
            left -= count
        # 3. A gang that does not fit whole has no room at all.
        if left > 0:
            return [], np.inf
    return places, float(max((last_end[node] for _, node, _ in places), default=np.inf))


def room_to_come(board: Board) -> Floats:
    """Return what each node [N, R] has, but for what is reserved, once all that ends has ended."""
    running = board.waiting.running
    if running is None:
        return np.asarray(board.classes.capacity.T - board.reserved.T)
    room, ends = board.free.T.copy(), running.ends_at < np.inf
    np.add.at(room, running.node[ends], running.demand[ends])
    return room


def on_empty_nodes(board: Board, row: int) -> tuple[Mask, Mask]:
    """Return on which nodes a task would read if all were empty, and on which it could start at all [N]."""
    waiting, classes = board.waiting, board.classes
    near = (board.sources.local_on_all(np.array([row]))[0] > 0) & needs_fit(classes.capacity.T, classes.here_needs[row])
    able = near.copy()
    if not classes.own[row]:
        free = classes.capacity.copy()
        empty = Sources(classes, waiting.inputs, waiting.count, free, headroom=0.0, excess=0.0)
        far = needs_fit(classes.capacity.T, classes.away_needs[row])
        able |= far & empty.able(np.array([row]), np.arange(len(far)))[0]
    if waiting.barred is not None:
        able &= ~waiting.barred[row]
    return near, able


def free_at(present: Floats, demand: Floats, running: Running) -> Floats:
    """Return when each node [N] will have room for its `demand` [N, R] by the ends of what runs; infinite: never.

    `present` [N, R] is what it has free, which is not enough yet.
    """
    # Where something is short, only ends that free some of that bring the moment nearer.
    short = short_of(present, demand)
    short[~short.any(axis=1)] = True
    matters = np.flatnonzero((short[running.node] & (running.demand > 0)).any(axis=1))
    order = matters[np.lexsort((running.ends_at[matters], running.node[matters]))]
    node, ends = running.node[order], running.ends_at[order]
    freed = np.cumsum(running.demand[order], axis=0)
    first = np.searchsorted(node, node, side="left")
    before = np.vstack((np.zeros(demand.shape[1]), freed))[first]
    enough = fits(present[node] + freed - before, demand[node])
    ready = np.full(len(present), np.inf)
    then = np.flatnonzero(enough)
    np.minimum.at(ready, node[then], ends[then])
    return ready
