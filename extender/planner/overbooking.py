"""Starting tasks where they take more of disks and links than there is, if that gains more than it costs (Graphene, 5).

It is a second matching, once nothing fits any more. Whose turn it is counts as ever. A task that fits but for disk and
network, within the cap of each node, starts if a what-if says so (policy.overbooking). CPU, memory and all else are
never overbooked.

Where the paper is silent: the next room is the first one on any node, by the expected ends of what runs; who is late is
taken to need as long again as it is late; a task is slowed by the slowest disk or link that it demands; of those that
gain, the score decides as ever. What a task reads from other nodes must fit there: nobody knows who else reads from
them. For the same reason a disk or link from which others read is not overbooked.
"""

from collections.abc import Iterator

import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.resources import (
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    NETWORK_IN_INDEX,
    NETWORK_OUT_INDEX,
)
from extender.cluster.waiting import Running
from extender.planner.board import Board
from extender.planner.fairness.soonest_room import free_at, on_empty_nodes
from extender.planner.filling import match
from extender.policy import shares
from extender.policy.degradation import slowdown
from extender.policy.overbooking import benefit, cost

_IO = [DISK_READ_INDEX, DISK_WRITE_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX]
_DISKS = np.array([True, True, False, False])
_ROUNDING = 1e-6
_CAREFUL = 3.0
"""The benefit must be so many times the cost: who is slowed also keeps its room for longer, and the stages behind it
wait. The paper says 1. Chosen by seeds 100 to 103 (docs/results/graphene.md)."""


def overbook(board: Board, level: Mask, now: float) -> None:
    """Start more of these classes [C], by the policy's `overbook`, on nodes where nothing is reserved.

    Nothing happens where that is 0 or nobody knows what runs.
    """
    running = board.waiting.running
    if not board.policy.overbook or running is None:
        return
    capacity = board.classes.capacity
    beyond = np.zeros_like(capacity)
    beyond[_IO] = np.floor(board.policy.overbook * np.where(np.isfinite(capacity[_IO]), capacity[_IO], 0.0))
    beyond[:, board.reserved.any(axis=0)] = 0.0
    board.admit(level)
    board.room.beyond = beyond
    match(board, _Overbooking(board, running, now))
    board.room.beyond = None


class _Overbooking:
    """The board as a `matching.Table` that offers only who gains more by starting than others lose."""

    def __init__(self, board: Board, running: Running, now: float) -> None:
        self._board = board
        # 1. What runs, and for how many seconds more at its peaks [T]: who is late needs as long again.
        self._node, self._demand = running.node, running.demand
        self._left = np.abs(running.ends_at - now)
        # 2. What this plan has started so far runs too.
        self._counted = 0
        self._waits: dict[int, float] = {}

    def nodes(self) -> Iterator[int]:
        """Yield those of the board."""
        return self._board.nodes()

    def best(self, node: int) -> tuple[int, float]:
        """Return the class that scores highest of those that gain more than they cost."""
        while (best := self._board.best(node))[0] >= 0 and not self._gains(best[0], node):
            self._board.refuse(node)
        return best

    def take(self, task_class: int, node: int) -> bool:
        """Start one task on the board."""
        return self._board.take(task_class, node)

    def _gains(self, task_class: int, node: int) -> bool:
        """Whether the benefit of a start is well above its cost."""
        self._count_started()
        board = self._board
        capacity, seconds = board.classes.capacity[_IO, node], board.waiting.duration.item(task_class)
        # 1. How slow each disk and link makes those who use it [4], before and after.
        demand, limited = board.picked(node)[_IO], np.isfinite(capacity)
        promised = np.subtract(capacity, board.free[_IO, node], out=np.zeros(len(_IO)), where=limited)
        before, after = _slower(promised, capacity), _slower(promised + demand, capacity)
        # 2. Who is affected: those there. Who reads from elsewhere what becomes slower is not known.
        on_node = self._node == node
        others = self._demand[on_node][:, _IO]
        unknown = limited & (promised > others.sum(axis=0) + _ROUNDING * np.where(limited, capacity, 0.0))
        if (unknown & (after > before)).any() or not seconds < np.inf:
            return False
        # 3. What it gains, and what they lose while it is there.
        slower = _of_tasks(demand[np.newaxis], after).item()
        lost = cost(self._left[on_node], _of_tasks(others, before), _of_tasks(others, after), slower * seconds)
        return benefit(self._wait(task_class), seconds, slower) > _CAREFUL * lost

    def _wait(self, task_class: int) -> float:
        """Return in how many seconds there will be room for a task of the class, on whichever node is first."""
        if task_class not in self._waits:
            board, classes = self._board, self._board.classes
            near, able = on_empty_nodes(board, task_class)
            demand = np.where(near[:, np.newaxis], classes.here[task_class], classes.away[task_class])
            ready = free_at(board.free.T, demand, Running(self._node, self._left, self._demand))
            self._waits[task_class] = float(np.where(able, ready, np.inf).min(initial=np.inf))
        return self._waits[task_class]

    def _count_started(self) -> None:
        """Let what the plan has started since the last time be among what runs."""
        board = self._board
        if len(board.taken) == self._counted:
            return
        started = board.taken.assignments()
        rows, node = started.task_class[self._counted :], started.node[self._counted :]
        self._counted = len(started)
        near = (started.source[-len(rows) :] == node) | board.classes.own[rows]
        demand = np.where(near[:, np.newaxis], board.classes.here[rows], board.classes.away[rows])
        self._node = np.concatenate((self._node, node))
        self._left = np.concatenate((self._left, board.waiting.duration[rows]))
        self._demand = np.concatenate((self._demand, demand))
        self._waits.clear()


def _slower(promised: Floats, capacity: Floats) -> Floats:
    """Return how many times as long tasks take for each disk and link [4] of which so much is promised."""
    return slowdown(np.maximum(shares.parts(promised, capacity), 0.0), disks=_DISKS, links=~_DISKS)


def _of_tasks(demand: Floats, slower: Floats) -> Floats:
    """Return how many times as long tasks [T] take that demand so much [T, 4]: by the slowest of what they demand."""
    return np.asarray(np.where(demand > 0, slower, 1.0).max(axis=1, initial=1.0))
