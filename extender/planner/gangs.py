"""Gangs: a plan starts at least so many tasks of one, or none.

A gang that is due is tried first, by itself. Then all are matched together, and again without those that
got too little: what they had goes to others within the same plan. What nobody could use is offered to those left out.
"""

import itertools
from collections import Counter

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, rows_by, times_fits
from extender.cluster.waiting import Waiting
from extender.planner.board import Board
from extender.planner.filling import AtMost, match

Places = dict[tuple[bytes, bytes], float]
"""How many tasks of a shape fit on empty nodes, by which nodes it may use and what it demands."""

_NOBODY: Rows = np.empty(0, dtype=np.intp)
_NOBODY.setflags(write=False)


class Gangs:
    """The gangs [G] of what waits: `of` [C] is each class's, -1 for none, `least` [G] what a plan must start of it.

    A gang of which one task suffices is none.
    """

    def __init__(self, waiting: Waiting) -> None:
        none = np.full(len(waiting.count), -1, dtype=np.intp)
        gang = none if waiting.gang is None else waiting.gang
        self.least: Counts = np.zeros(0, dtype=np.int64) if waiting.gang_least is None else waiting.gang_least
        many = np.append(self.least, 0) > 1  # the last place is for those without a gang
        self.of: Rows = np.where(many[gang], gang, -1)
        self._waiting, self._count, self._behind = waiting, waiting.count, waiting.behind
        self._most_if_empty: dict[int, int] = {}
        self._places: Places = {}
        self._rows_of = rows_by(self.of, len(self.least))

    def rows(self, classes: Mask) -> Rows:
        """Return the gangs that have tasks waiting among these classes [C]."""
        return np.unique(self.of[classes & (self.of >= 0) & (self._count > 0)]) if len(self.least) else _NOBODY

    def members(self, gangs: Rows | list[int]) -> Mask:
        """Return the classes [C] of these gangs."""
        is_one = np.zeros(len(self.least) + 1, dtype=np.bool_)  # the last place is for those without a gang
        is_one[gangs] = True
        return is_one[self.of]

    def rows_of(self, gang: int) -> Rows:
        """Return the classes of one gang, as rows."""
        return self._rows_of[gang]

    def missing(self, board: Board, gangs: Rows) -> Counts:
        """Return how many tasks of these gangs the plan has too few, 0 or less where it has enough."""
        started = self._count - board.left
        return np.asarray(self.least[gangs] - self.total(started)[gangs])

    def lacks(self, board: Board, gang: int) -> int:
        """Return the same of one gang."""
        rows = self.rows_of(gang)
        return int(self.least[gang] - (self._count[rows] - board.left[rows]).sum())

    def waits(self, gang: int) -> int:
        """Return how many tasks of the gang wait."""
        return int(self._count[self.rows_of(gang)].sum())

    def most_if_empty(self, empty: Floats, gang: int) -> int:
        """Return how many tasks of the gang could start if those of each shape had all `empty` nodes to themselves."""
        if gang not in self._most_if_empty:
            self._most_if_empty[gang] = most_if_empty(self._waiting, self.rows_of(gang), empty, self._places)
        return self._most_if_empty[gang]

    def in_line(self, gangs: list[int]) -> list[int]:
        """Return the gangs, those further to the front of their FIFO queue first, otherwise as they are."""
        behind = self._behind
        return gangs if behind is None else sorted(gangs, key=lambda gang: behind[self.rows_of(gang)].min())

    def total(self, tasks: Counts) -> Counts:
        """Return how many these tasks of each class [C] are of each gang [G]."""
        mine = self.of >= 0
        return np.bincount(self.of[mine], weights=tasks[mine], minlength=len(self.least)).astype(np.int64)


def most_if_empty(waiting: Waiting, classes: Rows, empty: Floats, places: Places) -> int:
    """Return how many tasks of these classes could start if those of each shape had all nodes to themselves.

    `empty` [N, R] is what the nodes have when they are empty. A shape is what a task demands, and where it may go.
    `places` is how many of each shape these hold, as far as that was asked before.
    """
    tasks: Counter[tuple[bytes, bytes]] = Counter()
    for row in classes.tolist():
        demand = waiting.demand[row]
        allowed = np.ones(len(empty), dtype=np.bool_) if waiting.barred is None else ~waiting.barred[row]
        shape = allowed.tobytes(), demand.tobytes()
        tasks[shape] += int(waiting.count[row])
        if shape not in places:
            places[shape] = times_fits(empty[allowed], demand).sum()
    return int(sum(min(count, places[shape]) for shape, count in tasks.items()))


def start_due_gangs(board: Board, gangs: Gangs, level: Mask) -> Rows:
    """Start the least of each due gang of these classes [C], the earliest first; returns those that did not fit.

    Only of queues that have no more than their part of the cluster, and none that alone would be more: such a gang has
    its turn with all others.
    """
    fairness = board.fairness
    due = level & (fairness.due < np.inf) & (board.left > 0)
    rows = gangs.rows(due)
    earliest = np.full(len(gangs.least), np.inf)
    np.minimum.at(earliest, gangs.of[due & (gangs.of >= 0)], fairness.due[due & (gangs.of >= 0)])
    order = rows[np.argsort(earliest[rows], kind="stable")].tolist()
    out = [
        gang
        for gang in order
        if _within_part(board, gangs, gang) and not (_could_fit(board, gangs, gang) and goes_whole(board, gangs, gang))
    ]
    return np.array(out, dtype=np.intp)


def fill_by_gangs(board: Board, gangs: Gangs, level: Mask, out: Rows) -> None:
    """Plan the classes of `level` [C], no gang of them in part; those that are `out` do not fit."""
    rows = np.setdiff1d(gangs.rows(level), out)
    out = np.append(out, rows[[not _could_fit(board, gangs, gang) for gang in rows.tolist()]])
    going = np.setdiff1d(rows, out)
    if board.most is not None:  # a gang counts as one of those that a plan is asked for
        board.most += int(gangs.least[going].sum())
    left_out = _match_together(board, gangs, level & ~gangs.members(out))
    whole = [
        gang for gang in gangs.in_line(left_out) if _could_fit(board, gangs, gang) and goes_whole(board, gangs, gang)
    ]
    if whole:  # with their least: the rest of them may have what there still is
        board.admit(gangs.members(whole))
        match(board, board)


def _match_together(board: Board, gangs: Gangs, classes: Mask) -> list[int]:
    """Match these classes [C]; while a gang is placed in part, undo, and match with fewer gangs.

    The second time go those that came out whole and the better half of those in part, then only the whole ones. Returns
    the gangs that are left out, the best first.
    """
    rows = gangs.rows(classes)
    if not len(rows):
        board.admit(classes)
        match(board, board)
        return []
    undo = board.checkpoint()
    out: list[int] = []
    for tried in itertools.count():
        board.admit(classes & ~gangs.members(out))
        match(board, board)
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
    tasks = 0.0
    for index in gangs.rows_of(gang).tolist():
        nodes = board.room.with_room(np.array([index]))
        nodes = nodes[board.room.allowed(np.array([index]), nodes)[0]]
        tasks += min(board.left[index], times_fits(board.free[:, nodes].T, board.waiting.demand[index]).sum())
    return tasks >= float(gangs.least[gang])


def _within_part(board: Board, gangs: Gangs, gang: int) -> bool:
    """Whether the gang's queue may have it as one that is due."""
    members = gangs.rows_of(gang)
    fairness, missing = board.fairness, gangs.lacks(board, gang)
    takes, queue = np.zeros(fairness.takes.shape[1]), int(fairness.queue[members[0]])
    for row in members.tolist():
        tasks = min(missing, board.left.item(row))
        takes, missing = takes + tasks * fairness.takes[row], missing - tasks
    begun = board.waiting.since.item(int(members[0])) == -np.inf  # its queue had that turn already
    return begun or fairness.queues.may_pass(queue, takes)


def goes_whole(board: Board, gangs: Gangs, gang: int) -> bool:
    """Start the least of one gang, by itself; False, and nothing is taken, if it does not fit."""
    undo, most = board.checkpoint(), board.most
    board.most = None
    board.admit(gangs.members([gang]))
    match(board, AtMost(board, gangs.lacks(board, gang)))
    board.most = most
    if gangs.lacks(board, gang) <= 0:
        return True
    undo()
    return False
