"""What machines hold while they fill up, and for how many tasks of a class each has room."""

from typing import NamedTuple

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from lab.packing.devices import devices_of
from lab.packing.keeping import Allowance
from lab.packing.model import NO_GROUP, Problem


class Group(NamedTuple):
    """A group whose tasks keep apart, and which clone of it."""

    row: int
    clone: int


class MachinesInOrder:
    """Machines of a problem [M'] in an order, empty at first."""

    def __init__(self, problem: Problem, machines: Rows) -> None:
        self._classes = problem.classes
        self._masks = problem.classes.masks[:, machines]
        self._bound: Mask = np.asarray(~self._masks.all(axis=1))
        self._capacity = problem.capacity[machines]
        self._free = self._capacity.T.copy()  # [R, M']: a dimension is one piece of memory
        self._allocated = np.zeros_like(self._capacity)
        self._in_group: dict[Group, Counts] = {}
        self._single_devices = devices_of(problem, machines)

    @property
    def allocated(self) -> Floats:
        """What the machines hold [M', R]."""
        return self._allocated

    def able(self, task_class: int, group: Group) -> Mask:
        """Return which machines have room for a task [M'], whatever it has to do with others."""
        times = self._times(task_class, np.arange(len(self._allocated)), 1, group, None)
        return np.asarray(self._masks[self._classes.mask[task_class]] & (times > 0))

    def take(self, rows: Rows, taken: Counts, task_class: int, group: Group) -> None:
        """Put so many tasks of the class on each of these machines [K]."""
        allocated = self._allocated.take(rows, axis=0) + taken[:, np.newaxis] * self._classes.demand[task_class]
        self._allocated[rows] = allocated
        self._free[:, rows] = (self._capacity.take(rows, axis=0) - allocated).T
        if group.row != NO_GROUP:
            self._in_group.setdefault(group, np.zeros(len(self._allocated), dtype=np.int64))[rows] += taken
        for devices in self._single_devices:
            devices.take(rows, taken, task_class)

    def _allowed(self, task_class: int, rows: Rows, allowance: Allowance | None) -> Rows:
        """Return those of the machines that may take the class in this allowance."""
        mask = self._classes.mask[task_class]
        if allowance is not None:
            rows = rows[allowance.allowed[rows]]
        return rows[self._masks[mask, rows]] if self._bound[mask] else rows

    def _times(self, task_class: int, rows: Rows, wanted: int, group: Group, allowance: Allowance | None) -> Counts:
        """Return how many tasks each machine can take with this allowance [K], at most as many as are wanted."""
        demand = self._classes.demand[task_class]
        asked = np.flatnonzero(demand > 0)
        times = np.floor(self._free.take(rows, axis=1)[asked] / demand[asked, np.newaxis]).min(axis=0, initial=wanted)
        counts = np.maximum(times, 0.0).astype(np.int64)
        if group.row != NO_GROUP:
            used = self._in_group.get(group)
            held = used[rows] if used is not None else 0
            counts = np.minimum(counts, np.maximum(self._classes.at_most[task_class] - held, 0))
        if allowance is not None:
            counts = np.minimum(counts, allowance.most[rows])
        for devices in self._single_devices:
            counts = np.minimum(counts, devices.times(task_class, rows))
        return np.asarray(counts)
