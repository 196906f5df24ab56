"""The clusters and workloads of the Delay Scheduling paper's evaluation: jobs of maps that scan a block each.

Nodes, slots, racks, job sizes, gaps between jobs and waits are the paper's. Values that the paper does not publish were
chosen before anything was compared; docs/results/delay.md lists them.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from extender.arrays import Rows
from extender.cluster.resources import (
    CPU_INDEX,
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    MEMORY_INDEX,
    NETWORK_IN_INDEX,
    NETWORK_OUT_INDEX,
)
from lab.sim.engine.inputs import place_blocks
from lab.sim.workloads.parameters import GIB
from lab.sim.workloads.workload import BLOCKS, Job, Machines, Stage, Workload

BLOCK_BYTES = 128 * 2**20
"""5: 'configured with a block size of 128 MB'."""

TASK_SECONDS = 12.0
"""5.2.1: the maps of short scan jobs 'took 12s on average'."""

CPU_HEAVY = 4.0
"""5.1.2: the function that they run made jobs '2-7 times slower'."""

NETWORK = 2 / 3
"""What a machine's link carries of what its slots read at their peaks.

3.5: 'local tasks ran up to 2x faster than non-local tasks'. In a full cluster where nobody waits for locality (single
maps, four fifths of them remote) remote maps take 2.7 times as long at 1/2, 1.8 times at 3/4: so two thirds.
"""

_SLOT_CORES, _SLOT_BYTES = 1000.0, 2.0 * GIB
_SPREAD = 0.1
_READ, _WRITE, _IN, _OUT = DISK_READ_INDEX, DISK_WRITE_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX


@dataclass(frozen=True, slots=True)
class SlotCluster:
    """Equal machines with `slots` map slots each (table 1). `racks` 0: the racks are not known."""

    nodes: int
    slots: int
    racks: int = 0
    network: float = NETWORK

    @property
    def name(self) -> str:
        """The name that is shown."""
        return f"{self.nodes} machines of {self.slots} slots"

    def machines(self) -> Machines:
        """Return the machines: a slot is a core, 2 GiB, and disk for one scan; racks are filled one after the other."""
        reads = float(self.slots * round(_rate()))
        row = np.zeros(len(DIMENSIONS))
        row[CPU_INDEX], row[MEMORY_INDEX] = self.slots * _SLOT_CORES, self.slots * _SLOT_BYTES
        row[[_READ, _WRITE]] = reads
        row[[_IN, _OUT]] = np.ceil(reads * self.network)
        racks = np.arange(self.nodes) * self.racks // self.nodes if self.racks else None
        return Machines(name=self.name, capacity=np.tile(row, (self.nodes, 1)), racks=racks)


@dataclass(frozen=True, slots=True)
class Scans:
    """Jobs; `maps` has the number of maps of each.

    They arrive `gap` seconds apart in the mean (exponentially); with a gap of 0 they all arrive at the start. At most
    `at_once` are there at a time. With `shared` they all read the same blocks. A task takes `slower` times as long as
    reading its block.
    """

    maps: tuple[int, ...]
    gap: float = 0.0
    at_once: int | None = None
    shared: bool = False
    slower: float = 1.0

    @property
    def label(self) -> str:
        """The name that is shown."""
        sizes = " + ".join(f"{count} x {maps}" for maps, count in Counter(self.maps).items())
        at_once = f", {self.at_once} at once" if self.at_once else ""
        return f"{sizes} maps{at_once}" + (f", {self.slower:g} times slower" if self.slower != 1.0 else "")

    def workload(self, seed: int, machines: Machines) -> Workload:
        """Return the jobs. The seed decides the order of the sizes and the times of arrival."""
        random = np.random.default_rng(seed)
        sizes = random.permutation(np.array(self.maps))
        arrives = np.cumsum(random.exponential(self.gap, len(sizes))) if self.gap else np.zeros(len(sizes))
        copies = place_blocks(random, int(sizes.max()), machines) if self.shared else None
        jobs = [
            Job(
                name=f"job{number:04}",
                arrives_at=float(arrives[number] - arrives[0]),
                stages=(self._stage(random, int(maps), copies),),
            )
            for number, maps in enumerate(sizes.tolist())
        ]
        return Workload(name="scans", jobs=jobs, at_once=self.at_once)

    def _stage(self, random: np.random.Generator, maps: int, copies: Rows | None) -> Stage:
        demand = np.zeros(len(DIMENSIONS))
        demand[CPU_INDEX], demand[MEMORY_INDEX] = _SLOT_CORES, _SLOT_BYTES
        seconds = TASK_SECONDS * self.slower
        return Stage(
            name="map",
            demand=demand,
            reading=float(round(_rate() / self.slower)),
            duration=seconds,
            durations=seconds * random.uniform(1 - _SPREAD, 1 + _SPREAD, maps),
            source=BLOCKS,
            copies=None if copies is None else copies[:maps],
        )


def _rate() -> float:
    """Return the bytes per second at which a scan reads."""
    return BLOCK_BYTES / TASK_SECONDS
