"""Single devices whose parts tasks ask for: a part must fit on one device, and who asks for more gets whole ones."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from lab.packing.model import Problem

PARTS: Mapping[str, float] = MappingProxyType({"alibabacloud.com/gpu-milli": 1000.0, "koordinator.sh/gpu-core": 100.0})
"""The resources that count parts of devices, and how many parts a device has."""


class Devices:
    """What is free of each device of machines [M', D]. What a machine has beyond whole devices is a part of one more.

    A part goes to the fullest device that has room, as schedulers that share GPUs do it.
    """

    def __init__(self, problem: Problem, machines: Rows, column: int, parts: float) -> None:
        demand, offers = problem.classes.demand[:, column], problem.capacity[machines, column]
        self._part = np.where(demand < parts, demand, 0.0)
        self._whole = np.where(demand < parts, 0.0, np.ceil(demand / parts))
        self._parts = parts
        number = int(np.ceil(offers.max(initial=0.0) / parts))
        self._empty = np.clip(offers[:, np.newaxis] - parts * np.arange(number), 0.0, parts)
        self._free = self._empty.copy()

    def fit(self, task_class: int) -> Mask:
        """Return which machines have room for a task [M']."""
        return np.asarray(self._times(task_class, self._free) > 0)

    def fit_on_empty(self, task_class: int) -> Mask:
        """Return which machines would have room for a task if they were empty [M']."""
        return np.asarray(self._times(task_class, self._empty) > 0)

    def times(self, task_class: int, rows: Rows) -> Counts:
        """Return for how many tasks each machine has room [K]."""
        return self._times(task_class, self._free[rows])

    def take(self, rows: Rows, taken: Counts, task_class: int) -> None:
        """Take so many tasks' devices of each of these machines [K]."""
        part, whole = self._part[task_class], self._whole[task_class]
        if not part and not whole:
            return
        free = np.sort(self._free[rows], axis=1)
        each = np.floor(free / part) if part else (free == self._parts).astype(np.float64)
        wanted = (taken if part else taken * whole)[:, np.newaxis]
        amounts = np.clip(wanted - (np.cumsum(each, axis=1) - each), 0.0, each)
        self._free[rows] = free - amounts * (part or self._parts)

    def _times(self, task_class: int, free: Floats) -> Counts:
        part, whole = self._part[task_class], self._whole[task_class]
        if part:
            return np.asarray(np.floor(free / part).sum(axis=1), dtype=np.int64)
        if whole:
            return np.asarray((free == self._parts).sum(axis=1) // whole, dtype=np.int64)
        return np.full(len(free), np.iinfo(np.int64).max)


def devices_of(problem: Problem, machines: Rows) -> Sequence[Devices]:
    """Return the devices whose parts any class asks for; where all ask for whole ones, amounts say enough."""
    devices = []
    for name, parts in PARTS.items():
        column = problem.layout.columns.get(name)
        if column is not None and (problem.classes.demand[:, column] % parts).any():
            devices.append(Devices(problem, machines, column, parts))
    return devices
