"""What a plan has taken so far, in the order in which it was taken, and why."""

from collections.abc import Callable

import numpy as np

from extender.planner.plan import Assignments, Terms

TermsOfOne = tuple[float, float, float, float, float, bool, bool, int, float]
"""Score, alignment, remote, work, owed, barrier, starved, level, passed over."""


class Taken:
    """The assignments of a plan on its way."""

    def __init__(self) -> None:
        self._pairs: list[tuple[int, int, int, int]] = []
        self._terms: list[TermsOfOne] = []

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._pairs)

    def add(self, pair: tuple[int, int, int, int], terms: TermsOfOne) -> None:
        """Add (task class, node, task, source) and what made it so (`TermsOfOne`)."""
        self._pairs.append(pair)
        self._terms.append(terms)

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is added from now on."""
        so_far = len(self._pairs)

        def undo() -> None:
            del self._pairs[so_far:], self._terms[so_far:]

        return undo

    def assignments(self) -> Assignments:
        """Return what was taken."""
        pairs = np.array(self._pairs, dtype=np.intp).reshape(-1, 4)
        return Assignments(pairs[:, 0], pairs[:, 1], pairs[:, 2], pairs[:, 3])

    def terms(self) -> Terms:
        """Return why."""
        terms = np.array(self._terms, dtype=np.float64).reshape(-1, 9)
        score, alignment, remote, work, owed, last, starved, level, passed = terms.T
        return Terms(score, alignment, remote, work, owed, last > 0, starved > 0, level.astype(np.intp), passed)
