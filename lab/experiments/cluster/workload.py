"""The workload of the cluster experiment: jobs of stages of tasks, drawn from plain ranges by a seed.

It was chosen before anything was run. Machines are those on which Delay Scheduling was measured (table 1, Amazon EC2):
100 with 4 cores, 15 GB, 4 disks and 1 Gbps; a disk gives 50 MB/s (Tetris, 5.3), for reading and as much for writing.
Racks are of 20 nodes, and a block has three copies on two racks, as HDFS places them.

48 jobs arrive within a minute, and belong to three queues in turn. A job has 10 to 60 maps, which read a block each;
four in five have reduces as well, a fifth to two fifths as many as maps, which read what the maps wrote; one in five
has a second stage of reduces after that. That is some 2,000 tasks. As in Tetris (2.2.2) demands are diverse and hardly
go together: a map scans, computes, fills memory, or does a bit of all, each equally likely; a task wants about a third
of a machine of what it needs most. A stage's tasks take 10 to 40 s in the mean and differ by a CoV of .25 (4.1), and
are declared to take the mean.

CPU alone is busy for 130 to 180 s by that, and no chain of stages takes more than about 100 s: jobs wait for each other
much more than for their own stages. (With half the demand, tried before in the simulator, the last job's chain of
stages was most of the makespan under every scheduler.)
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.cluster.queues import Queue
from extender.cluster.resources import (
    CPU,
    DIMENSIONS,
    DISK_READ,
    DISK_READ_INDEX,
    DISK_WRITE,
    DISK_WRITE_INDEX,
    MEMORY,
    NETWORK_IN,
    NETWORK_IN_INDEX,
    NETWORK_OUT,
    row_of,
)
from extender.policy.locality import rate_of_room, skips_for, wait_for
from lab.sim.engine.inputs import place_blocks
from lab.sim.workloads.draws import durations, uniform
from lab.sim.workloads.parameters import GB, MB, Range
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, Job, Machines, Stage, Workload

QUEUES = (Queue("research", 3), Queue("analytics", 2), Queue("reports", 1))
COPIES = 3
TARGET = 0.95
"""The locality that jobs wait for (equation 2 of Delay Scheduling)."""

_SPREAD = 0.25
_RACKS_OF_A_BLOCK = 2
_READ, _IN = DISK_READ_INDEX, NETWORK_IN_INDEX


@dataclass(frozen=True, slots=True)
class StageKind:
    """What a task takes at its peak: ranges of millicores, bytes, and bytes per second read and written."""

    name: str
    cpu: Range
    memory: Range
    reading: Range
    writing: Range


MAPS = (
    StageKind("scan", (300, 600), (1 * GB, 2 * GB), (80 * MB, 120 * MB), (5 * MB, 20 * MB)),
    StageKind("compute", (2000, 3500), (1 * GB, 3 * GB), (5 * MB, 20 * MB), (5 * MB, 10 * MB)),
    StageKind("memory", (400, 1000), (5 * GB, 9 * GB), (20 * MB, 40 * MB), (10 * MB, 20 * MB)),
    StageKind("mixed", (800, 1600), (2 * GB, 4 * GB), (40 * MB, 80 * MB), (20 * MB, 60 * MB)),
)
REDUCES = StageKind("reduce", (600, 1200), (2 * GB, 5 * GB), (40 * MB, 70 * MB), (20 * MB, 60 * MB))


@dataclass(frozen=True, slots=True)
class WorkloadSize:
    """The size of the workload: racks, nodes per rack, jobs, maps of a job, seconds of arrivals and of a task.

    `limit_seconds`: for how long a run on a cluster may go on.
    """

    racks: int
    nodes_per_rack: int
    jobs: int
    maps: tuple[int, int]
    arrivals: float
    seconds: Range
    limit_seconds: float


FULL = WorkloadSize(
    racks=5, nodes_per_rack=20, jobs=48, maps=(10, 60), arrivals=60.0, seconds=(10.0, 40.0), limit_seconds=1500.0
)
QUICK = WorkloadSize(
    racks=3, nodes_per_rack=4, jobs=7, maps=(5, 16), arrivals=6.0, seconds=(2.0, 5.0), limit_seconds=120.0
)


def machines(size: WorkloadSize) -> Machines:
    """Return the machines, rack by rack."""
    disks, link = 4 * 50 * MB, 125 * MB
    count = size.racks * size.nodes_per_rack
    rates = {DISK_READ: disks, DISK_WRITE: disks, NETWORK_IN: link, NETWORK_OUT: link}
    row = np.array(row_of({CPU: 4000.0, MEMORY: 15.0 * GB, **rates}, otherwise=np.inf))
    return Machines(
        name=f"{count} nodes in {size.racks} racks",
        capacity=np.tile(row, (count, 1)),
        copies=COPIES,
        racks=np.arange(count) // size.nodes_per_rack,
    )


def workload(size: WorkloadSize, cluster: Machines, seed: int) -> Workload:
    """Return the jobs of a seed; their blocks are on these machines."""
    random = np.random.default_rng(seed)
    arrives = np.sort(random.uniform(0.0, size.arrivals, size.jobs))
    jobs = [_job(random, size, cluster, number, float(at - arrives[0])) for number, at in enumerate(arrives)]
    return Workload(
        name="cluster",
        jobs=jobs,
        about=f"{size.jobs} jobs of maps and reduces, seed {seed}",
        weights={queue.name: queue.weight for queue in QUEUES},
    )


def waits(jobs: Workload, cluster: Machines) -> tuple[float, float]:
    """Return for how long to wait for a node, and beyond that for its rack, by equation 2 for a locality of TARGET.

    Room frees up at S / T (3.2): S tasks run at once where the scarcest resource is all in use, T is the mean duration.
    N is the mean number of a job's maps. For racks, M are the racks and R those that have a copy.
    """
    rate = rate_of_room(*_slots(jobs, cluster))
    maps = float(np.mean([job.stages[0].tasks for job in jobs.jobs]))
    nodes, racks = len(cluster.capacity), len(set([] if cluster.racks is None else cluster.racks.tolist()))
    sizes = ((nodes, COPIES), (racks, min(_RACKS_OF_A_BLOCK, racks)))
    w1, w2 = (
        wait_for(skips_for(TARGET, tasks=round(maps), nodes=places, replicas=replicas), rate)
        for places, replicas in sizes
    )
    return round(w1, 2), round(w2, 2)


def _slots(jobs: Workload, cluster: Machines) -> tuple[float, float]:
    """Return how many tasks run at once at most, and how long one takes, in the mean over tasks."""
    stages = [stage for job in jobs.jobs for stage in job.stages]
    seconds = np.array([stage.durations.sum() for stage in stages])
    demand = np.array([_task_demand(stage) for stage in stages])
    mean = (seconds @ demand) / seconds.sum()
    running = np.divide(cluster.capacity.sum(axis=0), mean, out=np.full(len(mean), np.inf), where=mean > 0)
    return float(running.min()), float(seconds.sum() / jobs.tasks)


def _task_demand(stage: Stage) -> Floats:
    """Return what a task takes of its machine [R]: blocks are read there, a shuffle comes over the network."""
    demand = stage.demand.copy()
    demand[_IN if stage.source == SHUFFLE else _READ] += stage.reading
    return demand


def _job(random: np.random.Generator, size: WorkloadSize, cluster: Machines, number: int, arrives_at: float) -> Job:
    maps = int(random.integers(size.maps[0], size.maps[1] + 1))
    kind = MAPS[random.integers(len(MAPS))]
    stages = [_stage(random, size, kind, "map", maps, cluster)]
    for place in range(int(random.choice(3, p=(0.2, 0.6, 0.2)))):
        reduces = max(1, round(maps * uniform(random, (0.2, 0.4))))
        stages.append(_stage(random, size, REDUCES, f"reduce{place + 1}", reduces))
    return Job(
        name=f"{number:02}-{kind.name}",
        arrives_at=arrives_at,
        stages=stages,
        queue=QUEUES[number % len(QUEUES)].name,
    )


def _stage(
    random: np.random.Generator,
    size: WorkloadSize,
    kind: StageKind,
    name: str,
    tasks: int,
    cluster: Machines | None = None,
) -> Stage:
    """Return a stage: of maps, whose blocks are on a cluster, or of reduces, which come after the stage before."""
    demand = np.zeros(len(DIMENSIONS))
    amounts = (round(uniform(random, bounds)) for bounds in (kind.cpu, kind.memory, kind.writing))
    demand[:2], demand[DISK_WRITE_INDEX] = (next(amounts), next(amounts)), next(amounts)
    seconds = round(uniform(random, size.seconds), 1)
    return Stage(
        name=name,
        demand=demand,
        reading=float(round(uniform(random, kind.reading))),
        duration=seconds,
        durations=durations(random, tasks, seconds, _SPREAD),
        parents=() if cluster is not None else (_before(name),),
        source=BLOCKS if cluster is not None else SHUFFLE,
        copies=place_blocks(random, tasks, cluster) if cluster is not None else None,
    )


def _before(name: str) -> int:
    """Return the place of the stage that `reduce1`, `reduce2`, ... comes after."""
    return int(name.removeprefix("reduce")) - 1
