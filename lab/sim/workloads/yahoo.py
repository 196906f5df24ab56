"""Yahoo's Hadoop jobs with the hosts of every block (Rumen traces): real places, real arrivals, real durations.

Only maps are replayed: reduces run in slots of their own, and read from everywhere. A map takes as long as its last
attempt did, wherever it runs here: the comparison is about where maps run, not how fast. Maps without a known place
run as well, and fill slots.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from extender.arrays import Rows
from extender.cluster.resources import CPU_INDEX, DIMENSIONS, MEMORY_INDEX
from extender.errors import TraceError
from lab.sim.workloads.columns import number, number_or_none, read, text
from lab.sim.workloads.parameters import GIB
from lab.sim.workloads.workload import BLOCKS, LOCAL, Job, Machines, Stage, Workload

FOLDER = Path("rumen_yahoo_locality")

_MAP = "MAP"
_TASKS = {
    "job": text,
    "type": text,
    "attempt_start_s": number_or_none,
    "attempt_finish_s": number_or_none,
    "attempt_host": text,
    "attempt_rack": text,
    "preferred": text,
}
_CORE, _SLOT_BYTES, _PLENTY = 1000.0, 2.0 * GIB, 1e9


@dataclass(frozen=True, slots=True)
class Map:
    """A map of a trace: how long it took, the hosts that have its block, and at which level it ran (None: unknown).

    Level 0 is on one of these hosts, 1 in one of their racks, 2 elsewhere.
    """

    job: str
    seconds: float
    hosts: tuple[str, ...]
    level: int | None


def yahoo(traces: Path, name: str, *, slots: int) -> tuple[Workload, Machines]:
    """Return the jobs of the trace of this name, and its hosts with `slots` map slots each. Raises TraceError."""
    racks = dict(read(traces / FOLDER / f"{name}_hosts.csv", {"host": text, "rack": text}))
    hosts = {host: row for row, host in enumerate(sorted(racks))}
    by_job: dict[str, list[Map]] = defaultdict(list)
    for task in maps(traces, name):
        by_job[task.job].append(task)
    submitted = dict(read(traces / FOLDER / f"{name}_jobs.csv", {"job": text, "submit_s": number}))
    jobs = [
        Job(name=job, arrives_at=submitted[job], stages=tuple(_stages(by_job[job], hosts)))
        for job in sorted(by_job, key=lambda job: submitted[job])
    ]
    about = f"Yahoo: the maps of {len(jobs)} jobs of {name}"
    return Workload(name=f"yahoo:{name}", jobs=jobs, about=about), _machines(name, racks, slots)


def maps(traces: Path, name: str) -> list[Map]:
    """Return the maps of the trace whose last attempt has its times. Raises TraceError."""
    path = traces / FOLDER / f"{name}_tasks.csv"
    tasks = []
    for job, kind, begin, end, host, rack, preferred in read(path, _TASKS):
        if kind != _MAP or begin is None or end is None:
            continue
        if not end > begin:
            raise TraceError(f"{path}: a map of {job} ends at {end}, and begins at {begin}")
        places = [tuple(place.rsplit("/", 1)) for place in preferred.split(";") if place]
        tasks.append(Map(job, end - begin, tuple(where[-1] for where in places), _level(host, rack, places)))
    return tasks


def _level(host: str, rack: str, places: "list[tuple[str, ...]]") -> int | None:
    if not places or not host:
        return None
    if host in {place[-1] for place in places}:
        return 0
    return 1 if rack in {place[0] for place in places} else 2


def _stages(tasks: list[Map], hosts: dict[str, int]) -> list[Stage]:
    """Return a stage of the maps whose places are known, and one of the others, where there are any."""
    placed, unplaced = [task for task in tasks if task.hosts], [task for task in tasks if not task.hosts]
    stages = []
    if placed:
        copies = np.full((len(placed), max(len(task.hosts) for task in placed)), -1, dtype=np.intp)
        for row, task in enumerate(placed):
            places = sorted({hosts[host] for host in task.hosts})
            copies[row, : len(places)] = places
        stages.append(_stage("map", placed, copies))
    if unplaced:
        stages.append(_stage("map-anywhere", unplaced, None))
    return stages


def _stage(name: str, tasks: list[Map], copies: Rows | None) -> Stage:
    demand = np.zeros(len(DIMENSIONS))
    demand[CPU_INDEX], demand[MEMORY_INDEX] = _CORE, _SLOT_BYTES
    seconds = np.array([task.seconds for task in tasks])
    return Stage(
        name=name,
        demand=demand,
        reading=0.0 if copies is None else 1.0,
        duration=float(seconds.mean()),
        durations=seconds,
        source=LOCAL if copies is None else BLOCKS,
        copies=copies,
    )


def _machines(name: str, racks: dict[str, str], slots: int) -> Machines:
    """Return the hosts in the order of their names; disks and links are never short."""
    row = np.full(len(DIMENSIONS), _PLENTY)
    row[CPU_INDEX], row[MEMORY_INDEX] = slots * _CORE, slots * _SLOT_BYTES
    order = sorted(set(racks.values()))
    rows = np.array([order.index(racks[host]) for host in sorted(racks)], dtype=np.intp)
    return Machines(name=f"{name}: {len(rows)} hosts", capacity=np.tile(row, (len(rows), 1)), racks=rows)
