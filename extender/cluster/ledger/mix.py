"""What the pods on nodes ask for, of those that ask for devices, and where they may go: a ranking goes by that.

M task classes, G groups of pods that may go to the same nodes, R resources, D devices, N nodes. Devices are what nodes
offer as extended resources: GPUs, say, or thousandths of them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TypeVar

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.eligibility import Constraints
from extender.cluster.labels import NodeLabels
from extender.cluster.model import Node, Pod
from extender.cluster.resources import is_extended, is_packed

MOST_CLASSES = 64
"""So many classes are told apart, those with most pods: in a production GPU cluster these are 98 % of its GPU pods.

So many sets of constraints are, too.
"""

_RENEWED = 0.1
"""The mix is counted anew once so many pods have come or gone, as a part of those that it holds."""

_Asked = tuple[tuple[str, float], ...]
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """The `demand` [M, R] of each class, how many pods it has, `count` [M], and which columns are `devices` [D].

    Pods of each group have `asked` [G, D] for devices, and `may` go to some nodes [G, N]. Without groups nobody knows.
    """

    demand: Floats
    count: Counts
    devices: Rows
    asked: Floats
    may: Mask

    def with_nodes(self, count: int) -> "Mix":
        """Return the same with so many more nodes, to which nobody is known to go."""
        more = np.zeros((len(self.may), count), dtype=np.bool_)
        return replace(self, may=np.hstack((self.may, more)))


NO_MIX = Mix(
    np.zeros((0, 0)),
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.intp),
    np.zeros((0, 0)),
    np.zeros((0, 0), dtype=np.bool_),
)


class DeviceAskers:
    """Counts the pods that hold a node and ask for devices, by what they ask for and by where they may go."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[_Asked, Constraints]] = Counter()
        self._pods = self._changes = 0
        self._last: tuple[tuple[str, ...], tuple[str, ...], Mix] = ((), (), NO_MIX)
        self._labels: tuple[tuple[str, ...], NodeLabels] = ((), NodeLabels([]))

    def add(self, pod: Pod, sign: int) -> None:
        """Note that a pod holds a node from now on (1), or no more (-1)."""
        if not pod.opportunistic and any(map(is_extended, pod.demand)):
            asked = tuple(sorted((name, amount) for name, amount in pod.demand.items() if is_packed(name)))
            self._counts[asked, pod.constraints] += sign
            if not self._counts[asked, pod.constraints]:
                del self._counts[asked, pod.constraints]
            self._pods += sign
            self._changes += 1

    def forget_nodes(self) -> None:
        """Take note that a node has other labels or taints: where pods may go is to be looked up anew."""
        self._last, self._labels = ((), (), NO_MIX), ((), NodeLabels([]))

    def mix(self, axis: tuple[str, ...], names: tuple[str, ...], nodes: Mapping[str, Node]) -> Mix:
        """Return it by this axis and the nodes of these names: the same object until much of it has changed.

        Other nodes come with another object of `names`.
        """
        if axis != self._last[0] or names is not self._last[1] or self._changes > _RENEWED * self._pods:
            self._last, self._changes = (axis, names, self._counted(axis, names, nodes)), 0
        return self._last[2]

    def _counted(self, axis: tuple[str, ...], names: tuple[str, ...], nodes: Mapping[str, Node]) -> Mix:
        if not self._counts:
            return NO_MIX
        # 1. Those with most pods: of the classes, and of the sets of constraints.
        classes, groups = Counter[_Asked](), Counter[Constraints]()
        for (asked, constraints), count in sorted(self._counts.items(), key=_asked):
            classes[asked] += count
            groups[constraints] += count
        most, where = _most(classes), _most(groups)
        # 2. What the classes ask for.
        columns = {name: column for column, name in enumerate(axis)}
        demand = np.array([_vector(asked, columns) for asked in most])
        devices = [column for column, name in enumerate(axis) if is_extended(name) and demand[:, column].any()]
        # 3. What the groups have asked for, and where they may go. One group alone may go wherever anybody may.
        devices_asked = {constraints: np.zeros(len(devices)) for constraints in where}
        for (asked, constraints), count in self._counts.items():
            if constraints in where:
                devices_asked[constraints] += count * _vector(asked, columns)[devices]
        may = np.ones((1, len(names)), dtype=np.bool_)
        if len(where) > 1:
            if names is not self._labels[0]:
                self._labels = (names, NodeLabels([nodes.get(name) for name in names]))
            may = np.array([self._labels[1].allow(constraints) for constraints in where])
        return Mix(
            demand,
            np.array(list(most.values())),
            np.array(devices, dtype=np.intp),
            np.array(list(devices_asked.values())),
            may,
        )


def _asked(counted: tuple[tuple[_Asked, Constraints], int]) -> _Asked:
    return counted[0][0]


def _most(counts: Counter[_Kind]) -> Mapping[_Kind, int]:
    """Return the `MOST_CLASSES` with the highest counts, the highest first; of equals those that were met first."""
    return dict(sorted(counts.items(), key=itemgetter(1), reverse=True)[:MOST_CLASSES])


def _vector(asked: _Asked, columns: Mapping[str, int]) -> Floats:
    vector = np.zeros(len(columns))
    for name, amount in asked:
        if name in columns:
            vector[columns[name]] = amount
    return vector
