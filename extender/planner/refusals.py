"""Shuffles that one full link keeps from every node but one: a matching need not try them again on each of the others.

Within a matching room only shrinks. So who was refused everywhere but on one node still is; trying it again would start
nothing and change nothing, unless by now nobody can serve it at all. That is to be found by trying, as for all others.
"""

import numpy as np

from extender.arrays import Rows
from extender.planner.locality.sources import Sources
from extender.planner.plan import Taken


class RefusedShuffles:
    """The shuffles among classes [C] that were refused in the matching that goes on."""

    def __init__(self, sources: Sources, taken: Taken, classes: int) -> None:
        """Take what says who can be served, and what has started, which is when that may change."""
        self._sources, self._taken = sources, taken
        self._only_at: Rows = np.full(classes, -1, dtype=np.intp)
        self._rows: list[int] = []
        self._as_of = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._rows)

    def forget(self) -> None:
        """Forget all: another matching begins."""
        self._rows.clear()
        self._only_at[:] = -1

    def note(self, task_class: int) -> None:
        """Remember that a shuffle was refused, if that is so on every node but one."""
        if not self._rows:
            self._as_of = len(self._taken)
        only_at = self._sources.only_at(np.array([task_class])).item()
        if only_at >= 0 and self._only_at.item(task_class) < 0:
            self._rows.append(task_class)
            self._only_at[task_class] = only_at

    def has(self, task_class: int, node: int) -> bool:
        """Whether it is known that the class would be refused on the node, and stay in."""
        if self._only_at.item(task_class) < 0:
            return False
        self._follow()
        return self._only_at.item(task_class) not in (-1, node)

    def has_all(self, rows: Rows, node: int) -> bool:
        """Whether that is known of all these classes."""
        if len(rows) > len(self._rows):
            return False
        self._follow()
        only_at = self._only_at.take(rows)
        return not np.count_nonzero((only_at < 0) | (only_at == node))

    def _follow(self) -> None:
        """Once something has started, forget those that nobody can serve by now."""
        if self._as_of != len(self._taken):
            self._as_of = len(self._taken)
            rows = np.array(self._rows, dtype=np.intp)
            self._only_at[rows] = self._sources.only_at(rows)
            self._rows = rows[self._only_at[rows] >= 0].tolist()
