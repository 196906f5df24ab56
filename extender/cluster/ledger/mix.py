"""What the pods on nodes ask for, of those that ask for devices: the mix that a ranking goes by.

M task classes, R resources. Devices are what nodes offer as extended resources: GPUs, say, or thousandths of them.
"""

from collections import Counter
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.model import Pod
from extender.cluster.resources import is_extended, is_packed

MOST_CLASSES = 64
"""So many classes are told apart, those with most pods: in a production GPU cluster these are 98 % of its GPU pods."""

_RENEWED = 0.1
"""The mix is counted anew once so many pods have come or gone, as a part of those that it holds."""

_Asked = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """The `demand` [M, R] of each class, how many pods it has, `count` [M], and which columns are `devices` [D]."""

    demand: Floats
    count: Counts
    devices: Rows


NO_MIX = Mix(np.zeros((0, 0)), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.intp))


class DeviceAskers:
    """Counts the pods that hold a node and ask for devices, by what they ask for."""

    def __init__(self) -> None:
        self._counts: Counter[_Asked] = Counter()
        self._pods = self._changes = 0
        self._last: tuple[tuple[str, ...], Mix] = ((), NO_MIX)

    def add(self, pod: Pod, sign: int) -> None:
        """Note that a pod holds a node from now on (1), or no more (-1)."""
        if not pod.opportunistic and any(map(is_extended, pod.demand)):
            asked = tuple(sorted((name, amount) for name, amount in pod.demand.items() if is_packed(name)))
            self._counts[asked] += sign
            if not self._counts[asked]:
                del self._counts[asked]
            self._pods += sign
            self._changes += 1

    def mix(self, axis: tuple[str, ...]) -> Mix:
        """Return what they ask for by this axis: the same object until much of it has changed."""
        if axis != self._last[0] or self._changes > _RENEWED * self._pods:
            self._last, self._changes = (axis, self._counted(axis)), 0
        return self._last[1]

    def _counted(self, axis: tuple[str, ...]) -> Mix:
        if not self._counts:
            return NO_MIX
        columns = {name: column for column, name in enumerate(axis)}
        most = sorted(sorted(self._counts.items()), key=itemgetter(1), reverse=True)[:MOST_CLASSES]
        demand = np.zeros((len(most), len(axis)))
        for row, (asked, _) in enumerate(most):
            for name, amount in asked:
                if name in columns:
                    demand[row, columns[name]] = amount
        devices = [column for column, name in enumerate(axis) if is_extended(name) and demand[:, column].any()]
        return Mix(demand, np.array([count for _, count in most]), np.array(devices, dtype=np.intp))
