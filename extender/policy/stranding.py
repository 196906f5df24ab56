"""Devices that are lost to others: stranded by what a pod takes of its node, or taken though others need them more.

Fragmentation Gradient Descent (Weng et al., USENIX ATC 2023, 4) puts a pod where it strands least, by the pods that are
usual in the cluster. Theirs looks into single GPUs; a node's devices count as one sum here, as a scheduler sees them.
Where some pods may go to few nodes only, theirs counts these nodes' devices as lost to all others. Ours does not: it
leaves them to those who have no others, as long as there is room elsewhere (`sought`).

N nodes, M classes of usual pods, R resources, D of them devices.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows

_USUAL = 0.95
"""A unit is one where so large a part of the pods that ask for more ask for a multiple of it."""


_MOST_KEPT = 64
"""What so many different pods would strand is kept, of those that came last."""


@dataclass(frozen=True, slots=True, eq=False)
class UsualPods:
    """Who is usual, prepared for `stranded` by `usual_pods`.

    `demand` [R', M] is what a pod of each class asks for, of the `columns` [R'] that any asks for. Of each device [D]:
    its column, the `part` [D, M] of the pods that ask for it that a class is, the `unit` [D] that is one device, and
    what each class has `asked` [D, M] for: less of it than that is of no use to the class.
    """

    columns: Rows
    demand: Floats
    devices: Rows
    part: Floats
    unit: Floats
    asked: Floats


def usual_pods(demand: Floats, count: Counts, devices: Rows) -> UsualPods:
    """Return what `stranded` needs of classes that ask for `demand` [M, R] and have so many pods [M]."""
    columns = np.flatnonzero(demand.any(axis=0))
    asked = demand[:, devices].T
    askers = np.where(asked > 0, count, 0)
    unit = np.array([unit_of(amounts, weights) for amounts, weights in zip(asked, askers, strict=True)])
    return UsualPods(
        columns=columns,
        demand=np.ascontiguousarray(demand[:, columns].T),
        devices=devices,
        part=askers / np.maximum(askers.sum(axis=1, keepdims=True), 1),
        unit=unit,
        asked=asked,
    )


def unit_of(amounts: Floats, count: Counts) -> float:
    """Return what is one device, by what pods ask for: the least amount of which nearly all larger ones are multiples.

    So it is 1000 where pods ask for 250, 700, 1000, 2000 and 8000 thousandths of a GPU. `amounts` [M] of which `count`
    [M] pods ask each. 1 where nobody asks for anything.
    """
    for amount in np.unique(amounts[(amounts > 0) & (count > 0)]).tolist():
        larger = amounts > amount
        multiples = larger & (amounts % amount == 0)
        if count[multiples].sum() >= _USUAL * count[larger].sum():
            return float(amount)
    return 1.0


def stranded(free: Floats, usual: UsualPods) -> Floats:
    """Return how many devices of each node usual pods could not use [K], in the mean over the pods that ask for them.

    `free` [K, R] is what the node has. A class for which it has too little of anything can use none. Else a rest of a
    device is of no use to those who ask for whole ones, or for more than it.
    """
    lost = np.zeros(len(free))
    if not len(usual.devices) or not len(free):
        return lost
    enough = free.T.take(usual.columns, axis=0)[:, :, np.newaxis] >= usual.demand[:, np.newaxis, :]
    fits = np.logical_and.reduce(enough, axis=0)
    for device, column in enumerate(usual.devices.tolist()):
        unit, part = usual.unit.item(device), usual.part[device]
        devices_free = np.maximum(free[:, column], 0.0)
        lost += devices_free * (1.0 - fits @ part) / unit
        rest = devices_free % unit
        if rest.any():
            lost += rest * ((fits & (rest[:, np.newaxis] < usual.asked[device])) @ part) / unit
    return lost


def sought(asked: Floats, may: Mask, capacity: Floats) -> Floats:
    """Return how much more the devices of each node are sought than those that are sought least [N, D].

    Pods of so many groups have `asked` [G, D] for devices, each group `may` go to some nodes [G, N], which have a
    `capacity` [N, D] of them. Each group asks the same of all devices that it may have. So 1.0 says: if pods asked for
    as many devices as there are, one pod more would ask for each of these. Where nobody may go, as on a node that is
    cordoned, nothing is sought.
    """
    more = np.zeros(capacity.shape)
    for device, offered in enumerate(capacity.T):
        offering, reach = (offered > 0) & may.any(axis=0), may @ offered
        wanted = np.where(reach > 0, asked[:, device], 0.0)
        if wanted.any():
            each = wanted / wanted.sum() * offered.sum() / np.where(reach > 0, reach, 1.0)
            by_node = each @ may
            more[offering, device] = by_node[offering] - by_node[offering].min()
    return more


def weight_of_sought(held: Floats, capacity: Floats) -> Floats:
    """Return how much it counts that devices are sought [D], where pods hold so many of this `capacity` [D] of all.

    It is the square of the part that is free: 1 in an empty cluster. In a full one next to nothing, as there each
    device goes to somebody, and what counts is that none is left over.
    """
    free = 1.0 - held / np.where(capacity > 0, capacity, 1.0)
    return np.asarray(np.clip(free, 0.0, 1.0) ** 2)


def lost_more(demand: Floats, free: Floats, sought: Floats, usual: UsualPods) -> Floats:
    """Return how many devices more are lost to others with a pod of this demand [R] on each node [K].

    `free` [K, R] is what a node has, `sought` [K, D] how much its devices are sought.
    """
    devices = demand[usual.devices] / usual.unit
    both = stranded(np.concatenate((free - demand, free)), usual)
    return np.asarray(both[: len(free)] - both[len(free) :] + sought @ devices)


class StrandedMore:
    """How many devices more would be lost to others with a pod on a node: stranded, or taken though `sought` there.

    What was worked out is kept until the node changes. For one number of nodes and one mix. Any thread may call it:
    what is kept is only what `free` has shown last.
    """

    def __init__(self, usual: UsualPods, sought: Floats) -> None:
        """Take who is usual, and how much the devices of each node are sought [N, D]."""
        nodes = len(sought)
        self.usual, self._sought = usual, sought
        self._lock = threading.Lock()
        self._free: Floats | None = None
        self._changes: Counts = np.zeros(nodes, dtype=np.int64)
        self._kept: OrderedDict[bytes, tuple[Floats, Counts]] = OrderedDict()

    def __call__(self, demand: Floats, free: Floats, rows: Rows | None = None) -> Floats:
        """Return it for a pod's `demand` [R] on the nodes of these rows [K], or on all; each has `free` [K, R]."""
        places = slice(None) if rows is None else rows
        with self._lock:
            # 1. Take note of the nodes that have changed.
            if self._free is None:
                self._free = np.full((len(self._changes), free.shape[1]), np.nan)
            changed = np.flatnonzero(free != self._free[places])
            if len(changed):
                new = np.unique(changed // free.shape[1])
                at = new if rows is None else rows[new]
                self._free[at] = free[new]
                self._changes[at] += 1
            # 2. Work out what is not known of them, for a pod that asks for so much.
            more, known = self._of(demand[self.usual.columns].tobytes())
            old = np.flatnonzero(known[places] != self._changes[places])
            if len(old):
                at = old if rows is None else rows[old]
                more[at] = lost_more(demand, free[old], self._sought[at], self.usual)
                known[at] = self._changes[at]
            return np.array(more[places])

    def _of(self, asked: bytes) -> tuple[Floats, Counts]:
        """Return what is kept for pods that ask for so much [N], and as of which change of each node [N]."""
        kept = self._kept.get(asked)
        if kept is None:
            nodes = len(self._changes)
            kept = self._kept[asked] = (np.zeros(nodes), np.zeros(nodes, dtype=np.int64))
        self._kept.move_to_end(asked)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return kept
