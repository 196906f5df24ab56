"""First fit: a task goes to the first machine that has room."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Counts, Floats, Rows
from lab.packing.evenly import Key
from lab.packing.keeping import Allowance
from lab.packing.model import Problem
from lab.packing.room import Group, MachinesInOrder

_BLOCK = 64
"""Machines are looked at in blocks of so many: one that is too full for a class as a whole is passed over at once."""


class FirstRoom(MachinesInOrder):
    """Machines that are filled one after the other."""

    def __init__(self, problem: Problem, machines: Rows) -> None:
        super().__init__(problem, machines)
        self._most = _highest(self._free)

    def choose(
        self, task_class: int, wanted: int, group: Group, allowance: Allowance | None = None
    ) -> tuple[Rows, Counts]:
        """Return machines [K] and how many tasks of the class each gets [K]; looks at twice as many each turn."""
        demand = self._classes.demand[task_class]
        asked = np.flatnonzero(demand > 0)
        blocks = np.flatnonzero((self._most[asked] >= demand[asked, np.newaxis]).all(axis=0))
        rows, counts, have, begin, size = [], [], 0, 0, 1 + wanted // _BLOCK
        while have < wanted and begin < len(blocks):
            there = (blocks[begin : begin + size, np.newaxis] * _BLOCK + np.arange(_BLOCK)).ravel()
            there = self._allowed(task_class, there[there < len(self.allocated)], allowance)
            times = self._times(task_class, there, wanted, group, allowance)
            rows.append(there)
            counts.append(times)
            have, begin, size = have + int(times.sum()), begin + size, 2 * size
        if not rows:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
        times = np.concatenate(counts)
        return np.concatenate(rows), np.clip(wanted - (np.cumsum(times) - times), 0, times)

    def places(
        self, task_class: int, wanted: int, group: Group, allowance: Allowance | None
    ) -> tuple[Rows, Sequence[Key]]:
        """Return the machine of each place [P] in the order in which they would be taken, with their turns."""
        rows, taken = self.choose(task_class, wanted, group, allowance)
        machine = np.repeat(rows, taken)
        return machine, [(float(row), 0.0) for row in machine.tolist()]

    def take(self, rows: Rows, taken: Counts, task_class: int, group: Group) -> None:
        """Put so many tasks of the class on each of these machines [K]."""
        super().take(rows, taken, task_class, group)
        for block in np.unique(rows // _BLOCK).tolist():
            self._most[:, block] = self._free[:, block * _BLOCK : (block + 1) * _BLOCK].max(axis=1)


def _highest(free: Floats) -> Floats:
    """Return the most that any machine of each block has free [R, B]."""
    return np.maximum.reduceat(free, np.arange(0, free.shape[1], _BLOCK), axis=1) if free.shape[1] else free
