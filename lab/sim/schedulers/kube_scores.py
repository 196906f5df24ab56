"""kube-scheduler's filter and its two scores by CPU and memory, with the same integers.

From Kubernetes 1.36, pkg/scheduler/framework/plugins/noderesources: fit.go, least_allocated.go,
most_allocated.go, balanced_allocation.go.
All amounts are whole numbers, as there: millicores and bytes. A pod without a request for a resource requests zero of
it here; Kubernetes scores a missing request as 100 millicores or 200 MiB.
"""

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Mask

Integers = NDArray[np.int64]

MAX_NODE_SCORE = 100

_ALL = slice(None)
_WITHOUT_AND_WITH = np.array([0, 1], dtype=np.int64)[np.newaxis, :, np.newaxis]


class Nodes:
    """The nodes [N] as kube-scheduler counts them, in CPU and memory, with the pods placed meanwhile.

    `need` [2] is what a pod requests; `places` selects the nodes to score.
    """

    def __init__(self, capacity: Integers, allocated: Integers) -> None:
        """Take the capacity and the requests [N, 2]; a capacity of zero means that the node has none of it."""
        self._capacity, self._allocated = capacity.T.copy(), allocated.T.copy()
        self._divisor = np.maximum(self._capacity, 1)
        has_any = self._capacity > 0
        self._dimensions = np.maximum(has_any.sum(axis=0), 1)
        self._both = np.asarray(has_any[0] & has_any[1], dtype=np.float64)

    def take(self, need: Integers, place: int) -> None:
        """Place one pod."""
        self._allocated[:, place] += need

    def fits(self, need: Integers, places: slice = _ALL) -> Mask:
        """Return where a pod fits [K] (NodeResourcesFit): a resource that it does not request never refuses it."""
        free = self._capacity[:, places] - self._allocated[:, places]
        enough = (free >= need[:, np.newaxis]) | (need == 0)[:, np.newaxis]
        return np.asarray(enough[0] & enough[1])

    def least_allocated(self, need: Integers, places: slice = _ALL) -> Integers:
        """Return 0..100 for each node [K]: the free part of CPU and of memory with the pod there, and their mean."""
        free = np.maximum(self._capacity[:, places] - self._allocated[:, places] - need[:, np.newaxis], 0)
        parts = free * MAX_NODE_SCORE // self._divisor[:, places]
        return np.asarray((parts[0] + parts[1]) // self._dimensions[places])

    def most_allocated(self, need: Integers, places: slice = _ALL) -> Integers:
        """Return 0..100 for each node [K]: the taken part of CPU and of memory with the pod there, and their mean."""
        taken = np.minimum(self._allocated[:, places] + need[:, np.newaxis], self._capacity[:, places])
        parts = taken * MAX_NODE_SCORE // self._divisor[:, places]
        return np.asarray((parts[0] + parts[1]) // self._dimensions[places])

    def balanced_allocation(self, need: Integers, places: slice = _ALL) -> Integers:
        """Return 50..100 for each node [K]: over 75 where the pod brings CPU and memory closer together, else less.

        A pod that requests nothing is not scored: 0. A node's evenness is 100 less the standard deviation of the
        requested fractions in percent, rounded down.
        """
        if not need.any():
            return np.zeros_like(self._dimensions[places])
        half = MAX_NODE_SCORE // 2
        requested = self._allocated[:, np.newaxis, places] + need[:, np.newaxis, np.newaxis] * _WITHOUT_AND_WITH
        cpu, memory = (requested / self._divisor[:, np.newaxis, places]).clip(max=1.0)
        deviation = np.abs((cpu - memory) / 2) * self._both[places]
        evenness = ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)
        return np.asarray(half + (half + evenness[1] - evenness[0]) // 2)
