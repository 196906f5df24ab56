"""Which claimants their queues are entitled to start, and what queues are owed that save for a large one."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Mask
from extender.planner.board import Board
from extender.planner.fairness.claimants import Claimants
from extender.planner.fairness.soonest_room import Claimant

_LONGEST_STEP_SECONDS = 300.0
_LEAST_SAVED = 0.25
"""Of the queue's part. So over time a queue takes at most a quarter of its part beyond it by this."""


class Entitlement:
    """What queues may start; `owed` to those that save, by their claimants: parts of the cluster times seconds."""

    def __init__(self, board: Board, claimants: Claimants, levels: Sequence[Mask], now: float) -> None:
        """Add to what they are owed since the last plan; `levels` are the classes [C] by priority."""
        self._board, self._claimants, self._now = board, claimants, now
        self._outranks_alone: Mask = np.zeros_like(levels[-1])
        for level in levels[:-1]:
            if len(np.unique(board.fairness.queue[level & board.alive])) <= 1:
                self._outranks_alone |= level
        self._of_large_gangs = claimants.only_large_gangs()
        self.owed: dict[str, float] = {}
        self._saved_for: set[str] = set()
        self._saves_for: dict[int, str] = {}
        self._note_owed()

    def holds(self, claimant: Claimant) -> bool:
        """Whether the claimant's queue is entitled to it."""
        fairness = self._board.fairness
        queue, takes = int(fairness.queue[claimant.row]), self._claimants.takes(claimant)
        if self._outranks_alone[claimant.row]:
            return True
        if not self.may_save(claimant.row):
            return fairness.queues.within_part(queue, takes)
        if fairness.queues.may_pass(queue, takes):
            return True
        part, alone = fairness.queues.part.item(queue), float(takes.max())
        excess = (alone if alone > part else fairness.queues.share(queue)) - part
        seconds = float(self._board.waiting.duration[list(claimant.rows)].max())
        return self.owed.get(self._claimants.name(claimant), 0.0) >= excess * seconds > 0

    def may_save(self, row: int) -> bool:
        """Whether the queue of this class may save for it."""
        fairness = self._board.fairness
        return fairness.is_due(row) or bool(self._of_large_gangs[fairness.queue[row]])

    def saves_at_once(self, claimant: Claimant) -> bool:
        """Whether its queue saves for a claimant that is not due: it can start nothing else, and saves for no other.

        Another that cannot start, as its nodes or its pods are gone, does not count.
        """
        fairness, name = self._board.fairness, self._claimants.name(claimant)
        queue = int(fairness.queue[claimant.row])
        if not self._of_large_gangs[queue] or fairness.is_due(claimant.row):
            return False
        return self._saves_for.get(queue, name) == name

    def spare(self, claimant: Claimant) -> float:
        """Return which part of the cluster the claimant's queue may take and still be entitled to the claimant."""
        fairness = self._board.fairness
        if self._outranks_alone[claimant.row]:
            return 1.0
        queue = int(fairness.queue[claimant.row])
        saved = 0.0 if fairness.is_due(claimant.row) else float(self._claimants.takes(claimant).max())
        return max(fairness.queues.part.item(queue) - fairness.queues.share(queue) - saved, 0.0)

    def note_start(self, claimant: Claimant) -> None:
        """Have its queue count what it has by now, no more what it saved."""
        name, queues = self._claimants.name(claimant), self._board.fairness.queues
        if name in self._saved_for:
            self._saved_for.remove(name)
            queues.save(int(self._board.fairness.queue[claimant.row]), -self._claimants.takes(claimant))
        self.owed.pop(name, None)

    def _note_owed(self) -> None:
        """Add to what queues are owed that save for a large claimant, and have what they save count as theirs."""
        fairness, before = self._board.fairness, self._board.carried
        seconds = min(max(self._now - before.planned_at, 0.0), _LONGEST_STEP_SECONDS)
        for name, owed in before.owed.items():
            row = self._claimants.row.get(name, -1)
            if row < 0 or not self.may_save(row):
                continue
            queue = int(fairness.queue[row])
            part = fairness.queues.part.item(queue)
            if self._of_large_gangs[queue] and self._claimants.could_start(self._claimants.of(row)):
                self._saves_for.setdefault(queue, name)
            saves = fairness.is_due(row) or self._saves_for.get(queue) == name
            more = max(part - fairness.queues.share(queue), _LEAST_SAVED * part) * seconds if saves else 0.0
            self.owed[name] = owed + more
        for name in dict.fromkeys((*self.owed, *before.reserved)):  # in a fixed order: sums hang on it
            row = self._claimants.row.get(name, -1)
            if row < 0 or not fairness.is_due(row):
                continue
            claimant = self._claimants.of(row)
            if name in before.reserved or not self.holds(claimant):
                fairness.queues.save(int(fairness.queue[row]), self._claimants.takes(claimant))
                self._saved_for.add(name)
