"""What nodes have free while a plan is made, and which classes fit there with what they read."""

import numpy as np

from extender.arrays import Floats, Mask, Rows, needs_fit
from extender.cluster.resources import DIMENSIONS, DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
from extender.planner.locality.sources import Sources
from extender.planner.prepared import Prepared

_LITTLE = 0.01
"""So little counts how empty nodes are, where as large a part of their devices is free."""


class Room:
    """What is `free` [R, N], as it changes, against what classes [C] need; `barred` [C, N] is where they may not go.

    While something is `beyond` [R, N], so much more than there is may be taken of nodes (planner.overbooking).
    """

    def __init__(self, classes: Prepared, sources: Sources, free: Floats, barred: Mask | None) -> None:
        self._classes, self._sources, self._free, self._barred = classes, sources, free, barred
        self.beyond: Floats | None = None

    def order(self, nodes: Rows) -> Floats:
        """Return how early these nodes are filled [n], the largest first.

        The emptiest comes first, by the mean part that is free. Of nodes with devices it is the one with the smallest
        part of its devices free, so that others keep all of theirs for who needs as many; and nodes with more devices
        than others come late (`special`), as who needs devices can go nowhere else. Nodes that fewer classes may use
        come early: who may go anywhere leaves the others to those.
        """
        per_unit = self._classes.per_unit[:, nodes]
        free = np.where(per_unit > 0, self._free[:, nodes], 0.0) * per_unit
        early = _mean_part(free, per_unit)
        if len(free) > len(DIMENSIONS):
            devices = per_unit[len(DIMENSIONS) :]
            with_devices = (devices > 0).any(axis=0)
            taken_first = _LITTLE * early - _mean_part(free[len(DIMENSIONS) :], devices)
            early = np.where(with_devices, taken_first, early)
        if self._barred is not None:
            early = early + self._barred[:, nodes].mean(axis=0)
        return np.asarray(early - self._classes.special[nodes])

    def fits(self, rows: Rows, nodes: Rows) -> tuple[Mask, Mask]:
        """Return where these classes fit reading there, and where reading from elsewhere, [rows, nodes] each."""
        free, sources, classes = self._free.take(nodes, axis=1), self._sources, self._classes
        if self.beyond is not None:
            free += self.beyond[:, nodes]
        # 1. Where they may go and their demand fits: `arrays.fits`, one resource after the other as both are large.
        #    Who sends by itself leaves its part of the link to the shuffles that wait.
        if sources.keeping:
            free[NETWORK_OUT_INDEX] -= sources.kept[1, nodes]
        demand = classes.demand_needs.take(rows, axis=1)[:, :, np.newaxis]
        fits = self.allowed(rows, nodes)
        for resource in classes.asked:
            fits &= free[resource] >= demand[resource]
        # 2. Reading there: a task's block is there, and the disk can serve it besides the shuffles that wait.
        disk = free[DISK_READ_INDEX] - sources.kept[0, nodes] if sources.keeping else free[DISK_READ_INDEX]
        near = fits & (disk >= classes.here_needs[:, DISK_READ_INDEX][rows, np.newaxis])
        # 3. Reading from elsewhere: its sources can serve it, and its own link can take it.
        far = np.zeros_like(near)
        readers = (~classes.own[rows]).nonzero()[0]
        if len(readers):
            reading = rows[readers]
            near[readers] &= sources.local(reading[:, np.newaxis], nodes) > 0
            link_needs = classes.away_needs[:, NETWORK_IN_INDEX][reading, np.newaxis]
            far[readers] = sources.able(reading, nodes) & (free[NETWORK_IN_INDEX] >= link_needs) & fits[readers]
        return near, far

    def allowed(self, rows: Rows, nodes: Rows) -> Mask:
        """Return on which of these nodes these classes may go at all [rows, nodes]."""
        if self._barred is None:
            return np.ones((len(rows), len(nodes)), dtype=np.bool_)
        return ~self._barred[np.ix_(rows, nodes)]

    def with_room(self, rows: Rows) -> Rows:
        """Return the nodes that have at least what the least of these classes demands of each resource."""
        if not len(rows):
            return rows
        has_room = np.ones(self._free.shape[1], dtype=np.bool_)
        least = self._classes.demand_needs.take(rows, axis=1).min(axis=1).tolist()
        for resource in self._classes.asked:
            free = self._free[resource] if self.beyond is None else self._free[resource] + self.beyond[resource]
            has_room &= free >= least[resource]
        return np.asarray(has_room.nonzero()[0])

    def limit(self, node: int) -> Floats:
        """Return what a task may take of the node [R]: what is free, but for what is kept for shuffles.

        That is of disk read and network out. To be read at once: it may be what is free itself.
        """
        limit = self._free[:, node] if self.beyond is None else self._free[:, node] + self.beyond[:, node]
        if self._sources.keeping:
            limit = limit.copy()
            limit[DISK_READ_INDEX] -= self._sources.kept[0, node]
            limit[NETWORK_OUT_INDEX] -= self._sources.kept[1, node]
        return limit

    def disk_limit(self, node: int) -> float:
        """Return what a task may take of the node's disk read, as `limit` says."""
        free = self._free.item(DISK_READ_INDEX, node)
        if self.beyond is not None:
            free += self.beyond.item(DISK_READ_INDEX, node)
        return free - self._sources.kept.item(0, node) if self._sources.keeping else free

    def reads_there(self, task_class: int, node: int) -> bool:
        """Whether a task of the class would read on the node that it runs on."""
        if self._classes.own[task_class]:
            return True
        return self._sources.has_local(task_class, node) and bool(
            needs_fit(self.limit(node), self._classes.here_needs[task_class])
        )


def _mean_part(free: Floats, per_unit: Floats) -> Floats:
    """Return the mean of the free parts [R, n] over the resources that each node has [n]."""
    return np.asarray(free.sum(axis=0) / np.maximum(np.count_nonzero(per_unit, axis=0), 1))
