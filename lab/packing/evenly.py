"""Shares a class out over domains that may take a bounded number, or that are to be filled evenly."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from extender.arrays import Counts, Mask, Rows

_NO_LIMIT = np.iinfo(np.int64).max

Key = tuple[float, float]
"""When a place is taken, the lowest first."""


@dataclass(frozen=True, slots=True)
class Cap:
    """A domain may hold `most` tasks more than the one that holds the least of those `present` [D].

    `domain` [M'] is each machine's, -1 for one without a bound; `held` [D] how many each holds. One that is not `even`
    has the bound `most` itself.
    """

    domain: Rows
    held: Counts
    present: Mask
    most: int
    even: bool = True

    @property
    def has_room(self) -> Mask:
        """Which domains have room for a task now [D]."""
        least = int(self.held[self.present].min(initial=_NO_LIMIT)) if self.even and self.present.any() else 0
        return np.asarray(self.held - least < self.most)

    def bounds(self, wanted: int) -> Counts:
        """Return how many tasks each domain could get of so many [D], at most."""
        if not self.even:
            return self.most - self.held
        least = (self.held[self.present].sum() + wanted) // max(int(self.present.sum()), 1)
        return np.asarray(least + self.most - self.held)


class _Filled:
    """How many each domain of a cap holds, as it fills."""

    def __init__(self, cap: Cap) -> None:
        self._held, self._most, self._even = [int(held) for held in cap.held], cap.most, cap.even
        self._present = [bool(present) for present in cap.present]
        self._find_lowest()

    def _find_lowest(self) -> None:
        counted = [held for held, there in zip(self._held, self._present, strict=True) if there] if self._even else []
        self._lowest = min(counted, default=0)
        self._lowly = counted.count(self._lowest)

    def has_room(self, domain: int) -> bool:
        return domain < 0 or self._held[domain] - self._lowest < self._most

    def add(self, domain: int) -> bool:
        """Add a task; say whether domains that had no room may have some now."""
        if domain < 0:
            return False
        self._held[domain] += 1
        if not self._even or not self._present[domain] or self._held[domain] != self._lowest + 1:
            return False
        self._lowly -= 1
        if self._lowly:
            return False
        self._find_lowest()
        return True


def shared_out(places: Sequence[Sequence[Key]], cells: Rows, caps: Sequence[Cap], wanted: int) -> list[int]:
    """Return how many places of each cell are taken, one after the other, where the caps allow it.

    A cell is the machines that are in the same domains: `cells` [X, J] are these by cap. `places` are the keys of its
    places, ascending.
    """
    filled, domains = [_Filled(cap) for cap in caps], cells.tolist()
    taken = [0] * len(places)
    heap = [(keys[0], cell) for cell, keys in enumerate(places) if len(keys)]
    heapify(heap)
    aside: list[tuple[Key, int]] = []
    while heap and wanted:
        # Here all cells that may have room are in the heap, each by its next place.
        key, cell = heappop(heap)
        if not all(one.has_room(domain) for one, domain in zip(filled, domains[cell], strict=True)):
            aside.append((key, cell))
            continue
        taken[cell] += 1
        wanted -= 1
        if taken[cell] < len(places[cell]):
            heappush(heap, (places[cell][taken[cell]], cell))
        freed = [one.add(domain) for one, domain in zip(filled, domains[cell], strict=True)]
        if any(freed):
            for one in aside:
                heappush(heap, one)
            aside.clear()
    return taken


def cells_of(caps: Sequence[Cap], allowed: Mask) -> tuple[Rows, Rows]:
    """Return the cells of the machines that are allowed, by their domains [X, J], and each machine's, -1 for none."""
    rows = np.flatnonzero(allowed)
    cells, which = np.unique(np.array([cap.domain[rows] for cap in caps]).T, axis=0, return_inverse=True)
    cell = np.full(len(allowed), -1, dtype=np.intp)
    cell[rows] = which.ravel()
    return cells.astype(np.intp), cell


def at_most(caps: Sequence[Cap], cells: Rows, wanted: int) -> list[int]:
    """Return how many tasks of so many each cell [X] could get."""
    most = np.full(len(cells), wanted, dtype=np.float64)
    for cap, domains in zip(caps, cells.T, strict=True):
        bounded = domains >= 0
        most[bounded] = np.minimum(most[bounded], cap.bounds(wanted)[domains[bounded]])
    return [int(count) for count in np.maximum(most, 0)]
