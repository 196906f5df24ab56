"""Which nodes are overloaded: above their threshold for so many new samples in a row (UBIS, IV.C and V.A).

Of CPU the reason may be instead that regular pods wait for it: a full CPU harms nobody while they do not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats
from extender.cluster.resources import CPU, IO_DIMENSIONS, MEMORY
from extender.control.idle_room.measured_use import MeasuredUse
from extender.policy.slack import over, to_free


@dataclass(frozen=True, slots=True)
class Pressure:
    """Evictions begin once a regular pod waits for CPU more than `at_most` of the time.

    They free no CPU below a use of `floor` times allocatable (T_alloc).
    """

    at_most: float = 0.1
    floor: float = 0.8


@dataclass(frozen=True, slots=True)
class Limits:
    """T_preempt by resource, a part of what is allocatable, and after how many new samples above it somebody goes.

    Memory cannot wait: one sample is enough. A resource that is not here is never a reason to evict. With `pressure`
    that is the limit for CPU, and the threshold is not.
    """

    threshold: Mapping[str, float]
    samples: Mapping[str, int]
    pressure: Pressure | None = None

    @classmethod
    def of(
        cls,
        *,
        cpu: float = 0.99,
        io: float = 0.95,
        memory: float = 0.95,
        samples: int = 3,
        pressure: Pressure | None = None,
    ) -> "Limits":
        """Return the usual limits: CPU and rates may be full for a moment, memory may not."""
        rates = dict.fromkeys(IO_DIMENSIONS, io)
        counts = {CPU: samples, MEMORY: 1, **dict.fromkeys(rates, samples)}
        return cls({CPU: cpu, MEMORY: memory, **rates}, counts, pressure)

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
        self._settles: dict[str, float] = {}
        self._seen = _Seen((), {}, np.zeros((0, 0), dtype=np.int64), np.zeros(0))

    def forget(self) -> None:
        """Start anew with all nodes: nobody looks, as another leads."""
        self._seen.streak[:] = 0

    def settle(self, node: str, until: float) -> None:
        """Note that somebody leaves the node at `until`: samples that began before count for nothing from now on."""
        self._settles[node] = max(until, self._settles.get(node, until))
        row = self._seen.rows.get(node)
        if row is not None:
            self._seen.streak[row] = 0

    def look(self, measured: MeasuredUse) -> Floats:
        """Return by how much each node is over its limits [N, R], 0 where it has not been for long enough."""
        excess = self._excess(measured)
        # 1. Follow the nodes: those that have gone are forgotten, new ones and those not measured start anew.
        seen = self._seen = self._seen.on(measured)
        unknown = np.isnan(measured.used).all(axis=1)
        seen.streak[unknown] = 0
        # 2. Count each new sample once, but none that reaches back before somebody's end.
        self._settles = {name: until for name, until in self._settles.items() if name in seen.rows}
        settled = np.full(len(seen.names), -np.inf)
        for name, until in self._settles.items():
            settled[seen.rows[name]] = until
        new = ~unknown & (measured.at > seen.at) & (measured.since >= settled)
        seen.streak[new] = np.where(excess[new] > 0, seen.streak[new] + 1, 0)
        seen.at[new] = measured.at[new]
        # 3. Those are over their limits that were so often enough in a row.
        return np.where(seen.streak >= self._limits.counts(measured.axis), excess, 0.0)

    def _excess(self, measured: MeasuredUse) -> Floats:
        excess = over(measured.used, measured.allocatable, self._limits.thresholds(measured.axis))
        allowed = self._limits.pressure
        if allowed is not None:
            cpu = measured.axis.index(CPU)
            waited = np.full(len(measured.names), np.nan) if measured.pressure is None else measured.pressure
            excess[:, cpu] = to_free(
                waited,
                measured.used[:, cpu],
                measured.allocatable[:, cpu],
                at_most=allowed.at_most,
                floor=allowed.floor,
            )
        return excess


@dataclass(frozen=True, slots=True)
class _Seen:
    """The time of the last sample of each node that counted [N], and how many in a row were above the limits [N, R]."""

    names: Sequence[str]
    rows: Mapping[str, int]
    streak: Counts
    at: Floats

    def on(self, measured: MeasuredUse) -> "_Seen":
        """Return the same on the rows and columns of another measurement; all is counted anew on other columns."""
        if measured.names is self.names and self.streak.shape == measured.used.shape:
            return self
        rows = {name: row for row, name in enumerate(measured.names)}
        streak: Counts = np.zeros(measured.used.shape, dtype=np.int64)
        at = np.full(len(rows), -np.inf)
        stay = [name for name in self.rows if name in rows]
        before, after = [self.rows[name] for name in stay], [rows[name] for name in stay]
        at[after] = self.at[before]
        if self.streak.shape[1:] == streak.shape[1:]:
            streak[after] = self.streak[before]
        return _Seen(measured.names, rows, streak, at)
