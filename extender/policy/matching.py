"""The loop that takes the best (task class, node) pair until nothing fits.

Two orders: one machine at a time until it is full (Tetris, 3.2), and the best pair of the whole cluster each time. Both
ask a `Table` for one machine's best class and let it take what was chosen: a step touches one node, no matrix.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np


class Table(Protocol):
    """Task classes against nodes, with what is free and what still waits; changes with every `take`."""

    def nodes(self) -> Iterator[int]:
        """Yield the nodes on which some class may fit, in the order in which machines are filled."""

    def best(self, node: int) -> tuple[int, float]:
        """Return the class that scores highest there and its score; -1 and minus infinity where none may go now."""

    def take(self, task_class: int, node: int) -> bool:
        """Place one task; False if it could not be after all, and then that class is out from now on."""


def machine_at_a_time(table: Table) -> None:
    """Fill each node in turn with the class that scores highest there, until nothing fits."""
    for node in table.nodes():
        while (best := table.best(node)[0]) >= 0:
            table.take(best, node)


def best_pair(table: Table) -> None:
    """Take the highest score of all classes and nodes, again and again, until nothing fits.

    A node's best score is looked up anew only when the node comes up: what another placement changed there (whose turn
    it is, a source's rates) is seen then. Ties go to the first node.
    """
    nodes = list(table.nodes())
    scores = np.array([table.best(node)[1] for node in nodes])
    while len(scores):
        place = int(scores.argmax())
        if not scores[place] > -np.inf:
            return
        best, score = table.best(nodes[place])
        if best >= 0 and score >= scores[place]:
            table.take(best, nodes[place])
            score = table.best(nodes[place])[1]
        scores[place] = score
