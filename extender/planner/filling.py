"""Who is admitted gets what there is, until nothing fits."""

from collections.abc import Iterator

import numpy as np

from extender.planner.board import Board
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


def match(board: Board, table: Table) -> None:
    """Match until nothing fits on the `table`, the board or what stands before it, or enough is taken.

    Once more for those who may go farther from their input.
    """
    if board.most is not None:
        table = AtMost(table, board.most - len(board.taken))
    matching = MATCHINGS[board.policy.matching]
    matching(table)
    while board.spreading is not None and board.spreading.held_back:
        matching(table)
    if (board.spared & board.alive).any():
        board.patient = False
        matching(table)
