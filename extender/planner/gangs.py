"""Gangs: a plan starts at least so many tasks of one, or none.

A gang that has waited too long is tried first, by itself. Then all are matched together, and again without those that
got too little: what they had goes to others within the same plan. What nobody could use is offered to those left out.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from extender.cluster.waiting import Counts, Waiting
from extender.planner.board import Board
from extender.planner.checkpoint import checkpoint
from extender.planner.fifo import at_the_head
from extender.planner.filling import AtMost, fill, match
from extender.planner.plan import Floats, Mask

Rows = NDArray[np.intp]

_ROUNDING = 1e-6
_NOBODY: Rows = np.empty(0, dtype=np.intp)
_NOBODY.setflags(write=False)


class Gangs:
    """The gangs [G] of what waits: `of` [C] is each class's, -1 for none, `least` [G] what a plan must start of it.

    A gang of which one task suffices is none.
    """

    def __init__(self, waiting: Waiting) -> None:
        none = np.full(len(waiting.count), -1, dtype=np.intp)
        of = none if waiting.gang is None else waiting.gang
        self.least: Counts = np.zeros(0, dtype=np.int64) if waiting.gang_least is None else waiting.gang_least
        many = np.append(self.least, 0) > 1  # the last place is for those without a gang
        self.of: Rows = np.where(many[of], of, -1)
        self._count, self._behind = waiting.count, waiting.behind

    def rows(self, classes: Mask) -> Rows:
        """Return the gangs that have tasks waiting among these classes [C]."""
        return np.unique(self.of[classes & (self.of >= 0) & (self._count > 0)]) if len(self.least) else _NOBODY

    def members(self, gangs: Rows) -> Mask:
        """Return the classes [C] of these gangs."""
        return np.isin(self.of, gangs)

    def missing(self, board: Board, gangs: Rows) -> Counts:
        """Return how many tasks of these gangs the plan has too few, 0 or less where it has enough."""
        started = self._count - np.array(board.left, dtype=np.int64)
        return np.asarray(self.least[gangs] - self._total(started)[gangs])

    def waits(self, gang: int) -> int:
        """Return how many tasks of the gang wait."""
        return int(self._total(self._count)[gang])

    def in_line(self, gangs: list[int]) -> list[int]:
        """Return the gangs, those further to the front of their FIFO queue first, otherwise as they are."""
        behind = self._behind
        return gangs if behind is None else sorted(gangs, key=lambda gang: behind[self.of == gang].min())

    def _total(self, tasks: Counts) -> Counts:
        mine = self.of >= 0
        return np.bincount(self.of[mine], weights=tasks[mine], minlength=len(self.least)).astype(np.int64)


def fill_by_gangs(board: Board, gangs: Gangs, level: Mask, waited: Floats) -> None:
    """Plan the classes of `level` [C], no gang of them in part; they have `waited` [C] seconds."""
    rows = gangs.rows(level)
    out = rows[[not _could_fit(board, gangs, gang) for gang in rows.tolist()]]
    out = np.append(out, _serve_starved_gangs(board, gangs, level & ~gangs.members(out), waited))
    left_out = _match_together(board, gangs, level & ~gangs.members(out), waited)
    went = [
        gang for gang in gangs.in_line(left_out) if _could_fit(board, gangs, gang) and _goes_whole(board, gangs, gang)
    ]
    if went:  # with their least: the rest of them may have what there still is
        board.admit(gangs.members(np.array(went)))
        match(board, board)


def _match_together(board: Board, gangs: Gangs, classes: Mask, waited: Floats) -> list[int]:
    """Match these classes [C], and again without gangs until none is in part; returns those left out, the best first.

    The second time with those that came out whole and the better half of those in part, then with the whole ones only.
    """
    rows, single = gangs.rows(classes), gangs.of < 0
    undo = checkpoint(board)
    out: list[int] = []
    for tried in itertools.count():
        board.admit(classes & ~gangs.members(np.array(out)))
        fill(board, waited, single)
        missing, least = gangs.missing(board, rows), gangs.least[rows]
        partial = np.count_nonzero((missing > 0) & (missing < least))
        if not partial:
            return out
        undo()
        best = rows[np.argsort(np.where(missing < least, missing, np.inf), kind="stable")]
        stay = np.count_nonzero(missing <= 0) + (0 if tried else partial // 2)
        rows, out = best[:stay], best[stay:].tolist() + out
    return out


def _could_fit(board: Board, gangs: Gangs, gang: int) -> bool:
    """Whether so many tasks of the gang wait and would fit if each of its classes had the open nodes to itself."""
    classes = gangs.members(np.array([gang])).nonzero()[0]
    fits = 0.0
    for index in classes.tolist():
        asks = board.waiting.demand[index] > 0
        nodes = board.with_room(np.array([index]))
        nodes = nodes[board.allowed(np.array([index]), nodes)[0]]
        times = board.free[asks][:, nodes] / board.waiting.demand[index, asks][:, np.newaxis]
        fits += min(board.left[index], np.floor(times.min(axis=0, initial=np.inf) + _ROUNDING).sum())
    return fits >= float(gangs.least[gang])


def _serve_starved_gangs(board: Board, gangs: Gangs, classes: Mask, waited: Floats) -> Rows:
    """Start the least of each starved gang of these classes [C], who waited longest first; returns who did not fit."""
    waiting = board.waiting
    starved = classes & (waiting.count > 0) & (waited >= board.policy.starved_after)
    if waiting.behind is not None:
        starved &= at_the_head(waiting.job, waiting.behind, classes & (waiting.count > 0))
    rows = gangs.rows(starved)
    since = [-waited[starved & (gangs.of == gang)].max() for gang in rows.tolist()]
    order = rows[np.argsort(since, kind="stable")]
    return order[[not _goes_whole(board, gangs, gang) for gang in order.tolist()]]


def _goes_whole(board: Board, gangs: Gangs, gang: int) -> bool:
    """Start the least of one gang, by itself; False, and nothing is taken, if it does not fit."""
    undo = checkpoint(board)
    only = np.array([gang])
    board.admit(gangs.members(only))
    match(board, AtMost(board, int(gangs.least[gang])))
    if gangs.missing(board, only)[0] <= 0:
        return True
    undo()
    return False
