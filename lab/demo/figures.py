"""What a run came to: how full the machines were over time, and the figures that sum it up. Pure.

Between two starts or ends nothing changes, so every mean is exact. Symbols: E stretches of time, N nodes, P pods, D
dimensions.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import (
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    MEMORY_INDEX,
    NETWORK_IN_INDEX,
    NETWORK_OUT_INDEX,
)
from lab.demo.machines import parts, rates
from lab.demo.room import Times
from lab.demo.shares import shares
from lab.demo.workload import QUEUES, DemoWorkload

GROUPS = {"disk": (DISK_READ_INDEX, DISK_WRITE_INDEX), "network": (NETWORK_IN_INDEX, NETWORK_OUT_INDEX)}


@dataclass(frozen=True)
class Course:
    """How a run went, from its first start to its last end.

    `at` [E + 1] are the moments between stretches. `running` and `working` [E]: pods that run, and their speeds added
    up (a pod at half speed is half a pod). `allocated` and `used` [E, D]: parts of the cluster's capacity. `loads`
    [E, N, D]: allocated by capacity of each node, above 1 where it is over-allocated.
    """

    at: Floats
    running: Floats
    working: Floats
    allocated: Floats
    used: Floats
    loads: Floats

    def over(self, group: str) -> Floats:
        """Return the part of the nodes that are over-allocated in a dimension of the group, over time [E]."""
        above: Floats = (self._loads_of(group) > 1).any(axis=2).mean(axis=1)
        return above

    def worst(self, group: str) -> float:
        """Return the largest load of any node at any time in a dimension of the group."""
        return float(self._loads_of(group).max())

    def mean(self, values: Floats, until: float) -> Floats:
        """Return the mean of values [E, ...] over the time up to `until`; not a number where that is none."""
        seconds = np.diff(np.minimum(self.at, until))
        whole = seconds.sum()
        mean: Floats = np.tensordot(seconds, values, axes=1) / (whole if whole > 0 else np.nan)
        return mean

    def _loads_of(self, group: str) -> Floats:
        return self.loads[:, :, list(GROUPS[group])]


@dataclass(frozen=True)
class Figures:
    """A run in numbers: seconds, and parts of 1. All means over time are taken until the last pod started."""

    pods: int
    makespan: float
    job_mean: float
    job_median: float
    pod_mean: float
    running_mean: float
    running_peak: int
    working_mean: float
    slowdown_mean: float
    slowdown_worst: float
    used: dict[str, float]
    over_part: dict[str, float]
    over_worst: dict[str, float]
    shares: dict[str, float]


def course(workload: DemoWorkload, times: Times) -> Course:
    """Return how a run went, from what started and ended when."""
    at = np.unique(np.concatenate((times.started, times.ended)))
    present = (times.started <= at[:-1, None]) & (times.ended > at[:-1, None])
    allocated = _allocated(workload, times, at)
    speed = np.where(present, _speeds(workload, times, allocated), 0.0)
    total = workload.capacity.sum(axis=0)
    used = speed @ workload.demand
    held = present.astype(np.float64) @ workload.demand
    memory = MEMORY_INDEX
    used[:, memory] = held[:, memory]
    return Course(
        at=at,
        running=present.sum(axis=1).astype(np.float64),
        working=speed.sum(axis=1),
        allocated=held / total,
        used=used / total,
        loads=allocated / workload.capacity,
    )


def figures(workload: DemoWorkload, times: Times, went: Course) -> Figures:
    """Return a run in numbers."""
    last_start = float(times.started.max())
    slowdown = (times.ended - times.started) / workload.work
    used = went.mean(went.used, last_start)
    return Figures(
        pods=len(times.ended),
        makespan=float(times.ended.max()),
        job_mean=float(job_ends(workload, times).mean()),
        job_median=float(np.median(job_ends(workload, times))),
        pod_mean=float(times.ended.mean()),
        running_mean=float(went.mean(went.running, last_start)),
        running_peak=int(went.running.max()),
        working_mean=float(went.mean(went.working, last_start)),
        slowdown_mean=float(slowdown.mean()),
        slowdown_worst=float(slowdown.max()),
        used=dict(zip(DIMENSIONS, used.tolist(), strict=True)),
        over_part={group: float(went.mean(went.over(group), last_start)) for group in GROUPS},
        over_worst={group: went.worst(group) for group in GROUPS},
        shares=dict(zip([queue.name for queue in QUEUES], shares(workload, times).mean().tolist(), strict=True)),
    )


def job_ends(workload: DemoWorkload, times: Times) -> Floats:
    """Return when each job's last pod ended, in order of time."""
    jobs = workload.jobs
    return np.sort([times.ended[jobs == job].max() for job in range(jobs.max() + 1)])


def _allocated(workload: DemoWorkload, times: Times, at: Floats) -> Floats:
    """Return what is allocated on each node [E, N, D]: amounts are whole numbers, so the sums are exact."""
    steps = np.zeros((len(at), *workload.capacity.shape))
    np.add.at(steps, (np.searchsorted(at, times.started), times.node), workload.demand)
    np.subtract.at(steps, (np.searchsorted(at, times.ended), times.node), workload.demand)
    allocated: Floats = np.cumsum(steps, axis=0)[:-1]
    return allocated


def _speeds(workload: DemoWorkload, times: Times, allocated: Floats) -> Floats:
    """Return how fast each pod runs, where it runs [E, P]."""
    part = parts(allocated, workload.capacity)
    return np.array([rates(workload.demand, there[times.node]) for there in part])
