"""Machines over time: what is free when, and where many equal tasks can go (Graphene, 4.2).

Time is cut into segments at which something begins or ends; each has what is free of each machine, [M, R]. Before the
first and after the last all is free. Placing cares for waves of tasks, not for tasks.
"""

from bisect import bisect_left, bisect_right

import numpy as np

from extender.arrays import Floats
from extender.graph.dag import Machines

_ROUNDING = 1e-9
FAR = 1e18
"""Before and after all times."""


class SpentError(Exception):
    """More segments were looked at than may be."""


class Space:
    """A share of machines over time. `times[i]` is when segment i begins; a clone shares what nobody has changed.

    `looked` counts the segments that were looked at, in this space and all its clones: what placing cost;
    `most` of them may be.
    """

    def __init__(self, machines: Machines, most: float = np.inf) -> None:
        empty = np.tile(machines.capacity.astype(float), (machines.count, 1))
        self.times: list[float] = [-FAR]
        self._free: list[Floats] = [empty]
        self.looked, self.most = [0], most

    def clone(self) -> "Space":
        """Return a copy that can be filled on its own."""
        other: Space = object.__new__(Space)
        other.times, other._free, other.looked = self.times.copy(), self._free.copy(), self.looked
        other.most = self.most
        return other

    def mirrored(self) -> "Space":
        """Return it with time running backwards: placing there early is placing here late."""
        other: Space = object.__new__(Space)
        other.times = [-FAR, *(-time for time in reversed(self.times[1:]))]
        other._free, other.looked = self._free[::-1], self.looked
        other.most = self.most
        return other

    def place(self, count: int, seconds: float, demand: Floats, earliest: float) -> Floats:
        """Place so many tasks, each as early as it can; return their begins [count], ascending. Raises SpentError."""
        begins: list[float] = []
        demanded = np.flatnonzero(demand > 0)
        amounts = demand[demanded]
        start = earliest
        while len(begins) < count:
            if self.looked[0] > self.most:
                raise SpentError
            room = self._room(start, start + seconds, demanded)
            each = self._fitting(room, amounts, count - len(begins))
            placed = int(each.sum())
            if placed:
                self._take(start, start + seconds, each[:, np.newaxis] * demand)
                begins += [start] * placed
            if len(begins) < count:
                start = self._next_with_room(start, demanded, amounts)
        return np.array(begins)

    def _room(self, start: float, end: float, demanded: np.ndarray) -> Floats:
        """Return what is free all the time from start to end [M, R demanded]."""
        first = bisect_right(self.times, start) - 1
        last = max(bisect_left(self.times, end - _ROUNDING * max(1.0, abs(end))), first + 1)
        room = self._free[first][:, demanded]
        self.looked[0] += last - first
        for segment in range(first + 1, last):
            room = np.minimum(room, self._free[segment][:, demanded])
        return room

    @staticmethod
    def _fitting(room: Floats, amounts: Floats, most: int) -> np.ndarray:
        """Return how many tasks each machine takes [M], the first machines before others, so many at most."""
        if not len(amounts):
            each = np.zeros(len(room), dtype=np.int64)
            each[0] = most
            return each
        each = np.minimum(np.maximum((room / amounts).min(axis=1) + _ROUNDING, 0), most).astype(np.int64)
        before = np.cumsum(each) - each
        return np.asarray(np.maximum(np.minimum(most - before, each), 0))

    def _next_with_room(self, start: float, demanded: np.ndarray, amounts: Floats) -> float:
        """Return when the next segment begins in which some machine has room for a task."""
        segment = bisect_right(self.times, start)
        while (self._free[segment][:, demanded] < amounts * (1 - _ROUNDING)).any(axis=1).all():
            segment += 1
            self.looked[0] += 1
        return self.times[segment]

    def _take(self, start: float, end: float, amounts: Floats) -> None:
        first, last = self._cut(start), self._cut(end)
        for segment in range(first, last):
            self._free[segment] = self._free[segment] - amounts

    def _cut(self, time: float) -> int:
        """Have a segment begin at this time, and return it."""
        segment = bisect_left(self.times, time)
        near = _ROUNDING * max(1.0, abs(time))
        for known in (segment, segment - 1):
            if 0 < known < len(self.times) and abs(self.times[known] - time) <= near:
                return known
        self.times.insert(segment, time)
        self._free.insert(segment, self._free[segment - 1])
        return segment
