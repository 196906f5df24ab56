"""The tables of the Tetris paper that say how full machines were: a cell is a probability, in [0, 1]."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import (
    CPU_INDEX,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    MEMORY_INDEX,
    NETWORK_IN_INDEX,
    NETWORK_OUT_INDEX,
)
from lab.sim.engine.measures import HIGH_LOADS, Fullness

CAPACITY, DRF, FAIR = "capacity", "drf-yarn", "slot-fair"
"""The policies whose rows these are: table 6's CS and DRF, and the slots of Facebook's cluster (2.2.1)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """How probable it is that a machine's load is above `load` under a policy; the higher one of the `columns` counts.

    The paper has one figure for disk and one for network, the simulator one for each way. `reading` names the load that
    counts, a field of measures.Fullness.
    """

    policy: str
    resource: str
    load: float
    columns: tuple[int, ...]
    paper: float
    reading: str

    @property
    def name(self) -> str:
        """As in `capacity cpu 0.75`."""
        return f"{self.policy} {self.resource} {self.load:g}"

    def ours(self, runs: Sequence[Fullness]) -> float:
        """Return ours, the mean over these runs."""
        return float(high_loads(runs, self.reading)[HIGH_LOADS.index(self.load), list(self.columns)].max())


def high_loads(runs: Sequence[Fullness], reading: str) -> Floats:
    """Return how probable each of HIGH_LOADS is, the mean over these runs [4, R]."""
    return np.asarray(np.mean([getattr(run, reading) for run in runs], axis=0))


_CPU, _MEMORY = ("cpu", (CPU_INDEX,)), ("memory", (MEMORY_INDEX,))
_DISK, _NETWORK = ("disk", (DISK_READ_INDEX, DISK_WRITE_INDEX)), ("network", (NETWORK_IN_INDEX, NETWORK_OUT_INDEX))
_Table = Mapping[str, Mapping[tuple[str, tuple[int, ...]], tuple[float, float, float]]]


def _cells(table: _Table, loads: Sequence[float], reading: str) -> tuple[Cell, ...]:
    return tuple(
        Cell(policy, resource, load, columns, paper, reading)
        for policy, rows in table.items()
        for (resource, columns), row in rows.items()
        for load, paper in zip(loads, row, strict=True)
    )


TABLE_6 = _cells(
    {
        CAPACITY: {
            _CPU: (0.87, 0.33, 0.18),
            _MEMORY: (0.38, 0, 0),
            _DISK: (0.29, 0.19, 0.13),
            _NETWORK: (0.42, 0.34, 0.28),
        },
        DRF: {_CPU: (0.53, 0.13, 0), _MEMORY: (0.56, 0, 0), _DISK: (0.12, 0.07, 0.05), _NETWORK: (0.40, 0.27, 0.20)},
    },
    (0.75, 0.9, 1.0),
    "promised",
)
"""The deployment, 250 machines (5.2). The paper's dash is a 0.

It is about the "(estimated) usage" of figure 5, which goes above 100 %, where no use can be. So what counts is what
tasks are estimated to take, at their peaks.
"""

TABLE_3 = _cells(
    {
        FAIR: {
            _CPU: (0.58, 0.35, 0.28),
            _MEMORY: (0.68, 0.41, 0.22),
            ("disk-read", (DISK_READ_INDEX,)): (0.11, 0.02, 0.003),
            ("disk-write", (DISK_WRITE_INDEX,)): (0.26, 0.04, 0.006),
            ("network-in", (NETWORK_IN_INDEX,)): (0.22, 0.01, 0.008),
            ("network-out", (NETWORK_OUT_INDEX,)): (0.44, 0.28, 0.05),
        }
    },
    (0.75, 0.9, 0.95),
    "carried",
)
"""Facebook's cluster (2.2.2). Its disk in is taken for reading, its disk out for writing.

It is about what is "used", which goes no higher than what a disk or a link carries.
"""

SUITE_SECONDS = 5 * 3600.0
"""5.1: an experiment run of the deployment takes about five hours."""
