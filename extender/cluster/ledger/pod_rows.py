"""Pods as arrays, sorted by UID, of which a few at a time leave or come."""

from collections.abc import Collection
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Rows


@dataclass(frozen=True, slots=True, eq=False)
class PodRows:
    """Pods [P] by `uids`: the row of the `node` of each, its `demand` [P, R], when it `started`, its `priority`."""

    uids: NDArray[np.object_]
    pods: NDArray[np.object_]
    node: Rows
    demand: Floats
    started: Floats
    priority: NDArray[np.int64]

    def changed(self, left: Collection[str], come: "PodRows") -> "PodRows":
        """Return the rows without those of pods that `left`, by UID, and with those of pods that `come`.

        No pod comes that is there and has not left. The cost is that of copying the arrays, and of a search for each
        change.
        """
        stay = np.ones(len(self.uids), dtype=np.bool_)
        stay[self.rows_of(left)] = False
        at = np.searchsorted(self.uids[stay], come.uids)
        merged = {
            field.name: np.insert(getattr(self, field.name)[stay], at, getattr(come, field.name), axis=0)
            for field in fields(self)
        }
        for array in merged.values():
            array.setflags(write=False)
        return PodRows(**merged)

    def rows_of(self, uids: Collection[str]) -> Rows:
        """Return the rows of those of these pods that are there, in the order of the rows."""
        if not len(self.uids) or not uids:
            return np.empty(0, dtype=np.intp)
        wanted = np.array(sorted(uids), dtype=np.object_)
        places = np.minimum(np.searchsorted(self.uids, wanted), len(self.uids) - 1)
        return np.asarray(places[self.uids[places] == wanted])


def no_pods(dimensions: int) -> PodRows:
    """Return no rows, of so many dimensions."""
    nobody, nothing = np.empty(0, dtype=np.object_), np.empty((0, dimensions))
    return PodRows(nobody, nobody, np.empty(0, dtype=np.intp), nothing, np.empty(0), np.empty(0, dtype=np.int64))
