"""The clusters and workloads of the Delay Scheduling paper's evaluation: jobs of maps that scan a block each.

What the paper says is used: nodes, slots, racks, job sizes, gaps between jobs, waits. What it does not say is chosen
here, before anything was compared: docs/results/delay.md lists it.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from extender.cluster.resources import CPU, DIMENSIONS, MEMORY
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
_READ, _WRITE, _IN, _OUT = (DIMENSIONS.index(name) for name in ("disk-read", "disk-write", "network-in", "network-out"))


@dataclass(frozen=True, slots=True)
class Cluster:
    """Equal machines with so many map slots each (table 1); 0 racks: nobody knows them."""

    nodes: int
    slots: int
    racks: int = 0
    network: float = NETWORK

    @property
    def name(self) -> str:
        """What it is called where it is shown."""
        return f"{self.nodes} machines of {self.slots} slots"

    def machines(self) -> Machines:
        """Return the machines: a slot is a core, 2 GiB, and disk for one scan; racks are filled one after the other."""
        reads = float(self.slots * round(_rate()))
        row = np.zeros(len(DIMENSIONS))
        row[DIMENSIONS.index(CPU)], row[DIMENSIONS.index(MEMORY)] = self.slots * _SLOT_CORES, self.slots * _SLOT_BYTES
        row[[_READ, _WRITE]] = reads
        row[[_IN, _OUT]] = np.ceil(reads * self.network)
        racks = np.arange(self.nodes) * self.racks // self.nodes if self.racks else None
        return Machines(name=self.name, capacity=np.tile(row, (self.nodes, 1)), racks=racks)


@dataclass(frozen=True, slots=True)
class Scans:
    """Jobs of so many `maps` each, in this order.

    They arrive `gap` seconds apart in the mean (exponentially), or all at the start where that is 0, `at_once` at a
    time. With `shared` they all read the same blocks. `slower`: how many times as long tasks take as reading does.
    """

    maps: tuple[int, ...]
    gap: float = 0.0
    at_once: int | None = None
    shared: bool = False
    slower: float = 1.0

    @property
    def label(self) -> str:
        """What they are called where they are shown."""
        sizes = " + ".join(f"{count} x {maps}" for maps, count in Counter(self.maps).items())
        at_once = f", {self.at_once} at once" if self.at_once else ""
        return f"{sizes} maps{at_once}" + (f", {self.slower:g} times slower" if self.slower != 1.0 else "")

    def workload(self, seed: int, machines: Machines) -> Workload:
        """Return the jobs; sizes come in an order by the seed, and times as well."""
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

    def _stage(
        self, random: np.random.Generator, maps: int, copies: "np.ndarray[tuple[int, int], np.dtype[np.intp]] | None"
    ) -> Stage:
        demand = np.zeros(len(DIMENSIONS))
        demand[DIMENSIONS.index(CPU)], demand[DIMENSIONS.index(MEMORY)] = _SLOT_CORES, _SLOT_BYTES
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
