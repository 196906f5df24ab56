"""Who may claim room that is reserved: which class or gang of a queue is the next one for it."""

from collections.abc import Iterable

import numpy as np

from extender.arrays import Floats, Mask, Rows, sum_by
from extender.planner.board import Board
from extender.planner.fairness.lapses import Lapses
from extender.planner.fairness.soonest_room import Claimant, room_to_come
from extender.planner.gangs import Gangs
from extender.planner.misfits import fit_somewhere
from extender.policy.shares import dominant
from extender.policy.turn import ROUNDING

CLASSES_TRIED = 16
_CLASSES_LOOKED_AT = 256


class Claimants:
    """The classes and gangs that wait, as claimants; `row` is the place of each class by its name."""

    def __init__(self, board: Board, gangs: Gangs, lapses: Lapses) -> None:
        self._board, self._gangs, self._lapses = board, gangs, lapses
        self.row = {name: row for row, name in enumerate(board.waiting.names)}

    def of(self, row: int) -> Claimant:
        """Return the claimant that a class [C] is, or its gang."""
        gang = int(self._gangs.of[row])
        if gang < 0:
            return Claimant((row,), (1,))
        rows = self._gangs.rows_of(gang).tolist()
        missing, tasks = int(self._gangs.least[gang]), []
        for member in rows:
            tasks.append(min(missing, self._board.left.item(member)))
            missing -= tasks[-1]
        return Claimant(tuple(rows), tuple(tasks), gang)

    def name(self, claimant: Claimant) -> str:
        """Return the name of the class by which it is known."""
        return self._board.waiting.names[claimant.row]

    def takes(self, claimant: Claimant) -> Floats:
        """Return what all of it takes, as parts of the cluster [R]."""
        tasks = np.array(claimant.tasks)[:, np.newaxis]
        return np.asarray((self._board.fairness.takes[list(claimant.rows)] * tasks).sum(axis=0))

    def only_large_gangs(self) -> Mask:
        """Say of which queues only gangs wait that alone, by their mean task, are larger than the queue's part [Q]."""
        board, fairness, gangs = self._board, self._board.fairness, self._gangs
        part, waits, is_gang = fairness.queues.part, board.alive & (board.left > 0), gangs.of >= 0
        large = waits & is_gang
        if not large.any():
            return np.zeros(len(part), dtype=np.bool_)
        rows = large.nonzero()[0]
        gang, tasks = gangs.of[rows], board.left[rows]
        takes = sum_by(gang, fairness.takes[rows] * tasks[:, np.newaxis], len(gangs.least))
        count = np.bincount(gang, weights=tasks, minlength=len(gangs.least))
        alone = dominant(takes * (gangs.least / np.maximum(count, 1.0))[:, np.newaxis])
        large[rows] = alone[gang] > part[fairness.queue[rows]] + ROUNDING
        others = np.bincount(fairness.queue[waits & ~large], minlength=len(part))
        mine = np.bincount(fairness.queue[large], minlength=len(part))
        return np.asarray((mine > 0) & (others == 0))

    def may_claim(self, claimant: Claimant) -> bool:
        """Whether all of it is there, and it is not put off."""
        if claimant.gang >= 0 and sum(claimant.tasks) < self._gangs.least[claimant.gang]:
            return False  # some of it are not there: it could not start
        return self._lapses.may_claim(self.name(claimant))

    def could_start(self, claimant: Claimant) -> bool:
        """Whether a claimant may claim room, and if it is a gang, would have it if all nodes were empty."""
        gang, empty = claimant.gang, self._board.snapshot.empty
        fits = gang < 0 or self._gangs.most_if_empty(empty, gang) >= self._gangs.least[gang]
        return bool(fits) and self.may_claim(claimant)

    def that_may(self, rows: Rows) -> Iterable[Claimant]:
        """Yield the first of these classes, or their gangs, that may claim room, each once; not all of very many."""
        few = len(rows) <= CLASSES_TRIED
        hopeful = rows.tolist() if few else self.with_room(rows, room_to_come(self._board))
        yielded: set[int] = set()
        for claimant in map(self.of, hopeful):
            if claimant.row not in yielded and self.may_claim(claimant):
                yielded.add(claimant.row)
                yield claimant
            if len(yielded) >= CLASSES_TRIED:
                return

    def with_room(self, rows: Rows, room: Floats) -> Iterable[int]:
        """Yield those of these classes of which a task fits where there is so much `room` [N, R], not of very many.

        So those that wait for what never comes do not stand before all others.
        """
        for begin in range(0, min(len(rows), _CLASSES_LOOKED_AT), CLASSES_TRIED):
            some = rows[begin : begin + CLASSES_TRIED]
            yield from some[fit_somewhere(self._board.waiting, room, some)].tolist()

    def left_waiting(self, classes: Mask) -> Mask:
        """Return those of these classes [C] that the plan leaves waiting, for no nearer node: they want no other."""
        board = self._board
        waits = classes & (board.left > 0)
        return waits if board.locality is None else waits & ~board.locality.nearness.chooses

    def longest_waiting(self, classes: Mask, queue: int) -> Rows:
        """Return the rows of those of these classes [C] of a queue that wait, who has waited longest first."""
        since = self._board.waiting.since
        rows = (classes & (self._board.fairness.queue == queue) & (since < np.inf)).nonzero()[0]
        return np.asarray(rows[np.argsort(since[rows], kind="stable")])

    def first_alike(self, claimant: Claimant, classes: Mask) -> Claimant:
        """Return whose turn it is, by the score, of those of these classes [C] of its queue that need the same."""
        board, fairness, row = self._board, self._board.fairness, claimant.row
        waiting, whole = board.waiting, board.classes.whole
        mine = fairness.queue == fairness.queue[row]
        in_lines = waiting.behind is not None and waiting.behind[mine].any()
        if claimant.gang >= 0 or waiting.since[row] == -np.inf or in_lines:
            return claimant  # gangs, what a gang that has begun still lacks, and FIFO queues go by age
        alike = classes & (self._gangs.of < 0) & mine
        rows = (alike & (waiting.since < np.inf) & (whole == whole[row]).all(axis=1)).nonzero()[0]
        if waiting.barred is not None:
            rows = rows[(waiting.barred[rows] == waiting.barred[row]).all(axis=1)]
        in_line, scores = fairness.next_in_line(rows, np.ones(len(rows), dtype=np.bool_)), board.scores
        order = np.lexsort((waiting.since[rows], scores.scene.counted_work[rows], -scores.before[rows], ~in_line))
        first = self.of(int(rows[order[0]]))
        return first if self.may_claim(first) else claimant

    def fits_now(self, claimant: Claimant) -> bool:
        """Whether there is room: then the claimant waits for something else, and nothing need be kept."""
        sources = self._board.sources
        sources.keeping = False
        fits = claimant.gang < 0 and self.any_fits(np.array(claimant.rows))
        sources.keeping = True
        return fits

    def any_fits(self, rows: Rows, nodes: Rows | None = None) -> bool:
        """Whether a task of any of these classes fits on any of the nodes, on all without."""
        near, far = self._board.room.fits(rows, np.arange(self._board.free.shape[1]) if nodes is None else nodes)
        return bool((near | far).any())
