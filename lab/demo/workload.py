"""The demo's cluster and its batch jobs: drawn from plain ranges by a seed, the same for both runs.

Machines are the three that the Tetris paper describes in 5.1. Its simulation has 12 cores, 32 GB, 4 disks of 50 MB/s
and a NIC of 1 Gbps: six in ten here. Its small cluster has 6 cores, 12 GB, 3 disks and 1 Gbps: three in ten. Its large
one has 32 cores, 96 GB, 8 disks and 10 Gbps: one in ten.

Jobs are of four kinds, each equally likely, because the paper finds the demands of tasks diverse and hardly correlated
(2.2.2). It publishes no rates per task, so these are ours: computing takes 2 to 4 cores; aggregating in memory takes
4 to 8 GB; a shuffle fills a quarter to a half of a 1 Gbps NIC; a scan keeps about one disk busy. Everything else that a
pod of these kinds needs is small. The pods of a job are alike in demand and differ in work by up to a fifth. All
are submitted in one burst, job by job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.queues import Queue
from extender.cluster.resources import (
    CPU,
    DIMENSIONS,
    DISK_READ,
    DISK_WRITE,
    IO_DIMENSIONS,
    MEMORY,
    NETWORK_IN,
    NETWORK_OUT,
    Amounts,
)
from lab.controlplane import builders
from lab.controlplane.builders import Manifest

WORK_ANNOTATION = "demo.dovetail.dev/work-seconds"
JOB_LABEL = "dovetail.dev/job"
QUEUE_LABEL = "dovetail.dev/queue"

QUEUES = (Queue("research", 3), Queue("analytics", 2), Queue("reports", 1))
"""Jobs are of each in turn; the stock scheduler knows nothing of them."""

_MB = 1_000_000
_DISK = 50 * _MB
_GBPS = 125 * _MB


@dataclass(frozen=True, slots=True)
class MachineShape:
    """A kind of machine."""

    name: str
    cores: int
    memory_gb: int
    disks: int
    gbps: int

    @property
    def amounts(self) -> Amounts:
        """Return what it offers, by dimension, in its unit."""
        disk, network = float(self.disks * _DISK), float(self.gbps * _GBPS)
        rates = {DISK_READ: disk, DISK_WRITE: disk, NETWORK_IN: network, NETWORK_OUT: network}
        return {CPU: self.cores * 1000.0, MEMORY: self.memory_gb * 1000.0 * _MB, **rates}


STANDARD = MachineShape("standard", 12, 32, 4, 1)
SMALL = MachineShape("small", 6, 12, 3, 1)
LARGE = MachineShape("large", 32, 96, 8, 10)
SHAPES = (STANDARD, SMALL, LARGE)

_TEN_MACHINES = (STANDARD, SMALL, STANDARD, STANDARD, SMALL, STANDARD, LARGE, STANDARD, SMALL, STANDARD)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job: the range of each demand, in millicores, MB, and MB/s."""

    name: str
    ranges: Sequence[tuple[int, int]]


KINDS = (
    #                        cpu           memory        disk-read disk-write network-in network-out
    Kind("cpu-heavy", ((2000, 4000), (1000, 3000), (2, 10), (1, 5), (1, 5), (1, 5))),
    Kind("memory-heavy", ((500, 1500), (4000, 8000), (5, 15), (2, 10), (2, 10), (2, 10))),
    Kind("network-heavy", ((500, 1000), (1000, 2000), (2, 10), (10, 30), (30, 60), (5, 20))),
    Kind("disk-heavy", ((500, 1000), (1000, 2000), (40, 60), (10, 40), (2, 10), (5, 20))),
)
_JOB_PODS = (4, 16)
_WORK_SPREAD = (0.8, 1.2)


@dataclass(frozen=True, slots=True)
class DemoSize:
    """How much there is to do: nodes, pods, and the range of a job's seconds of work per pod."""

    nodes: int
    pods: int
    work_seconds: tuple[float, float]


FULL = DemoSize(nodes=20, pods=900, work_seconds=(5.0, 12.0))
"""Four to six times what fits at once, so for most of a run pods wait for room.

With twice the nodes, the last pods, behind which nobody waits, take a third of it; and pods start and end about as fast
as two cores can serve a control plane, whoever schedules.
"""
QUICK = DemoSize(nodes=10, pods=120, work_seconds=(1.0, 3.0))


@dataclass(frozen=True, slots=True)
class DemoNode:
    """A node of the demo."""

    name: str
    shape: MachineShape


@dataclass(frozen=True, slots=True)
class DemoPod:
    """A pod of the demo: its job, kind, demand by dimension, how long it runs at full speed, and when it is created."""

    name: str
    job: str
    kind: str
    demand: Amounts
    work_seconds: float
    queue: int = 0
    arrives_at: float = 0.0


@dataclass(frozen=True)
class DemoWorkload:
    """Machines and tasks, as objects, as arrays (N nodes, P pods, D = six dimensions) and as manifests."""

    machines: tuple[DemoNode, ...]
    tasks: tuple[DemoPod, ...]

    @cached_property
    def capacity(self) -> Floats:
        """What each node offers [N, D]."""
        return np.array([_row(machine.shape.amounts) for machine in self.machines])

    @cached_property
    def demand(self) -> Floats:
        """What each pod needs [P, D]."""
        return np.array([_row(task.demand) for task in self.tasks])

    @cached_property
    def work(self) -> Floats:
        """Seconds that each pod runs at full speed [P]."""
        return np.array([task.work_seconds for task in self.tasks])

    @cached_property
    def jobs(self) -> Rows:
        """The number of each pod's job [P]."""
        return np.unique([task.job for task in self.tasks], return_inverse=True)[1]

    def node_manifests(self) -> list[Manifest]:
        """Return the nodes, with their disk and network capacity as annotations."""
        return [_node(machine) for machine in self.machines]

    @cached_property
    def arrivals(self) -> Floats:
        """When each pod is created, in seconds since the first [P]."""
        return np.array([task.arrives_at for task in self.tasks])

    @cached_property
    def queues(self) -> Rows:
        """The number of each pod's queue [P]."""
        return np.array([task.queue for task in self.tasks], dtype=np.intp)

    def pod_manifests(self, spec: Mapping[str, Any] = MappingProxyType({})) -> list[Manifest]:
        """Return the pods, in the order of submission; `spec` goes into the spec of each."""
        return [_pod(task, spec) for task in self.tasks]


def generate(size: DemoSize, *, seed: int) -> DemoWorkload:
    """Return the workload of a seed."""
    random = np.random.default_rng(seed)
    machines = tuple(
        DemoNode(f"node-{number:03d}", _TEN_MACHINES[number % len(_TEN_MACHINES)]) for number in range(size.nodes)
    )
    tasks: list[DemoPod] = []
    number = 0
    while len(tasks) < size.pods:
        tasks += _job(random, number, size.pods - len(tasks), size.work_seconds)
        number += 1
    return DemoWorkload(machines, tuple(tasks))


def _job(random: np.random.Generator, number: int, most: int, work_seconds: tuple[float, float]) -> list[DemoPod]:
    kind = KINDS[random.integers(len(KINDS))]
    low, high = _JOB_PODS
    pods = min(int(random.integers(low, high + 1)), most)
    units = (1, _MB, _MB, _MB, _MB, _MB)
    amounts = [
        float(random.integers(least, highest + 1) * unit)
        for (least, highest), unit in zip(kind.ranges, units, strict=True)
    ]
    demand = dict(zip((CPU, MEMORY, DISK_READ, DISK_WRITE, NETWORK_IN, NETWORK_OUT), amounts, strict=True))
    usual = random.uniform(*work_seconds)
    job = f"job-{number:03d}"
    return [
        DemoPod(
            name=f"{job}-{kind.name}-{pod:02d}",
            job=job,
            kind=kind.name,
            demand=demand,
            work_seconds=round(usual * random.uniform(*_WORK_SPREAD), 3),
            queue=number % len(QUEUES),
        )
        for pod in range(pods)
    ]


def _row(amounts: Amounts) -> list[float]:
    return [amounts.get(name, 0.0) for name in DIMENSIONS]


def _node(machine: DemoNode) -> Manifest:
    amounts = machine.shape.amounts
    return builders.node(
        machine.name,
        cpu=machine.shape.cores,
        memory=f"{machine.shape.memory_gb}G",
        capacity=_rates(amounts),
        labels={"demo.dovetail.dev/shape": machine.shape.name},
    )


def _pod(task: DemoPod, spec: Mapping[str, Any]) -> Manifest:
    return builders.pod(
        task.name,
        cpu=f"{task.demand[CPU]:.0f}m",
        memory=f"{task.demand[MEMORY] / _MB:.0f}M",
        demand=_rates(task.demand),
        labels={JOB_LABEL: task.job, QUEUE_LABEL: QUEUES[task.queue].name},
        spec=spec,
        annotations={WORK_ANNOTATION: f"{task.work_seconds:g}"},
    )


def _rates(amounts: Amounts) -> dict[str, str]:
    return {name: f"{amounts[name] / _MB:.0f}M" for name in IO_DIMENSIONS if name in amounts}
