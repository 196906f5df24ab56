"""Who is admitted gets what there is, until nothing fits."""

from collections.abc import Iterator

import numpy as np

from extender.planner.board import Board
from extender.planner.fifo import at_the_head
from extender.planner.plan import Floats, Mask
from extender.planner.starvation import serve_starved
from extender.planner.tuning import MATCHINGS
from extender.policy.matching import Table


class AtMost:
    """A table on which at most so many tasks are placed."""

    def __init__(self, table: Table, tasks: int) -> None:
        self._table, self._left = table, tasks

    def nodes(self) -> Iterator[int]:
        """Yield those of the table."""
        for node in self._table.nodes():
            if self._left <= 0:
                return
            yield node

    def best(self, node: int) -> tuple[int, float]:
        """Return what the table says, nobody once enough is placed."""
        return self._table.best(node) if self._left > 0 else (-1, -np.inf)

    def take(self, task_class: int, node: int) -> bool:
        """Place one task, and count it."""
        taken = self._table.take(task_class, node)
        self._left -= taken
        return taken


def fill(board: Board, waited: Floats, may_starve: Mask) -> None:
    """Serve who has waited too long, `waited` [C] seconds and of `may_starve` [C], then match until nothing fits.

    In a FIFO queue only who is first in line can starve: the others wait because they are not.
    """
    if board.waiting.behind is not None:
        may_starve = may_starve & at_the_head(board.waiting.job, board.waiting.behind, board.alive)
    serve_starved(board, waited, may_starve)
    match(board, board)


def match(board: Board, table: Table) -> None:
    """Match until nothing fits on the `table`, the board or what stands before it, or enough is taken.

    Once more where room was kept for those who have it all by then.
    """
    if board.most is not None:
        table = AtMost(table, board.most - len(board.taken))
    _match(board, table)
    if board.turns.reopened():
        board.patient = True
        _match(board, table)


def _match(board: Board, table: Table) -> None:
    """Match once, and again for who may go farther."""
    matching = MATCHINGS[board.policy.matching]
    matching(table)
    if (board.spared & board.alive).any():
        board.patient = False
        matching(table)
