"""Which nodes are overloaded: above their threshold for so many new samples in a row (UBIS, IV.C and V.A)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask
from extender.cluster.resources import CPU, IO_DIMENSIONS, MEMORY
from extender.control.opportunistic.measured_use import MeasuredUse
from extender.policy.slack import over


@dataclass(frozen=True, slots=True)
class Limits:
    """T_preempt by resource, a part of what is allocatable, and after how many new samples above it somebody goes.

    Memory cannot wait: one sample is enough. A resource that is not here is never a reason to evict.
    """

    threshold: Mapping[str, float]
    samples: Mapping[str, int]

    @classmethod
    def of(cls, *, cpu: float = 0.99, io: float = 0.95, memory: float = 0.95, samples: int = 3) -> "Limits":
        """Return the usual limits: CPU and rates may be full for a moment, memory may not."""
        rates = dict.fromkeys(IO_DIMENSIONS, io)
        return cls({CPU: cpu, MEMORY: memory, **rates}, {CPU: samples, MEMORY: 1, **dict.fromkeys(rates, samples)})

    def thresholds(self, axis: Sequence[str]) -> Floats:
        """Return the thresholds on this axis [R], infinite for what has none."""
        return np.array([self.threshold.get(name, np.inf) for name in axis])

    def counts(self, axis: Sequence[str]) -> Counts:
        """Return how many samples are needed on this axis [R]."""
        return np.array([self.samples.get(name, 1) for name in axis], dtype=np.int64)


class Overload:
    """Counts new samples above the limits, node by node, and says which nodes have had enough of them.

    A sample counts once, however often it is read. One whose window reaches back before somebody's end on the node
    says nothing of the node without them: it counts for nothing. A node that is not measured starts anew.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._streak: dict[str, Counts] = {}
        self._seen: dict[str, float] = {}
        self._settles: dict[str, float] = {}

    def settle(self, node: str, until: float) -> None:
        """Note that somebody leaves the node at `until`: samples that began before count for nothing from now on."""
        self._settles[node] = max(until, self._settles.get(node, until))
        self._streak.pop(node, None)

    def look(self, measured: MeasuredUse) -> Floats:
        """Return by how much each node is over its limits [N, R], 0 where it has not been for long enough."""
        excess = over(measured.used, measured.allocatable, self._limits.thresholds(measured.axis))
        needed = self._limits.counts(measured.axis)
        known = ~np.isnan(measured.used)
        confirmed = np.zeros_like(excess)
        for row, name in enumerate(measured.names):
            if not known[row].any():
                continue
            confirmed[row] = np.where(self._count(name, measured, row, excess[row] > 0) >= needed, excess[row], 0.0)
        gone = self._streak.keys() - {name for row, name in enumerate(measured.names) if known[row].any()}
        for name in gone:
            del self._streak[name]
        self._forget(measured.names)
        return confirmed

    def _count(self, name: str, measured: MeasuredUse, row: int, above: Mask) -> Counts:
        streak = self._streak.get(name)
        if streak is None:
            streak = np.zeros(len(above), dtype=np.int64)
        at = measured.at.item(row)
        if at > self._seen.get(name, -np.inf) and measured.since.item(row) >= self._settles.get(name, -np.inf):
            streak = np.where(above, streak + 1, 0)
            self._seen[name] = at
        self._streak[name] = streak
        return streak

    def _forget(self, names: Sequence[str]) -> None:
        there = set(names)
        for kept in (self._seen, self._settles):
            for name in [name for name in kept if name not in there]:
                del kept[name]
