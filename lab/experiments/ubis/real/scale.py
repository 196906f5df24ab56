"""How large the scenario is, and the numbers that it and its figures share."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from extender.cluster.resources import CPU, DISK_READ, MEMORY

T_ALLOC, T_PREEMPT = 0.8, 0.95
"""T_preempt is the default of memory and disks. CPU's, 0.99, is too near the most that a node can use for an overload
by more than one pod."""

DIMENSIONS = (CPU, MEMORY, DISK_READ)
MIB = 2.0**20
OFFERED = MappingProxyType({CPU: 8_000.0, MEMORY: 16 * 1024 * MIB, DISK_READ: 400e6})
"""What a node offers: millicores, bytes, bytes per second."""

TASK = MappingProxyType({CPU: 120.0, MEMORY: 192 * MIB, DISK_READ: 0.0})
"""What a pod of a Job demands, and uses. 20 of them fit below T_alloc beside regular pods at half use."""

SCAN = MappingProxyType({**TASK, DISK_READ: 10e6})
"""The same with a disk."""

REGULAR_PODS = 4
"""So many regular pods reserve all of a node's CPU and memory."""

BASE_USE = MappingProxyType({CPU: 0.5, MEMORY: 0.5, DISK_READ: 0.2})
"""Which part of a node its regular pods use, unless a phase says otherwise."""

SCRAPE_SECONDS, WINDOW_SECONDS, STALE_SECONDS = 1.0, 5, 10


@dataclass(frozen=True, slots=True)
class RealScale:
    """How many nodes, how many overloads, which failures of Prometheus, and how often something is killed."""

    nodes: int = 4
    rounds: int = 2
    outages: tuple[str, ...] = ("stopped", "failing", "frozen")
    outage_seconds: float = 20.0
    kill_seconds: float = 20.0

    @property
    def backlog(self) -> int:
        """How many pods the large Job has: more than will ever fit at once."""
        return 40 * self.nodes


FULL = RealScale()
QUICK = RealScale(nodes=2, rounds=1, outages=("failing",), outage_seconds=16.0, kill_seconds=25.0)


def settings(url: str) -> dict[str, Any]:
    """Return Dovetail's settings, with Prometheus at this address."""
    node = "node_cpu_usage_seconds_total{$matchers}"
    before = "last_over_time(node_cpu_usage_seconds_total{$matchers}[$window] offset $window)"
    queries = {
        CPU: f"rate({node}[$window])",
        MEMORY: "node_memory_working_set_bytes{$matchers}",
        "time": f"timestamp({node}) and {before}",
    }
    return {
        "order": "gates",  # as it was measured
        "control": {
            "schedulers": ["default-scheduler"],
            "planSeconds": 0.5,
            "lease": {"namespace": "default", "seconds": 4, "renewSeconds": 2, "retrySeconds": 0.5},
        },
        "usage": {
            "url": url,
            "intervalSeconds": 1,
            "windowSeconds": WINDOW_SECONDS,
            "staleSeconds": STALE_SECONDS,
            "nodeQueries": queries,
        },
        "opportunistic": {"enabled": True, "threshold": T_ALLOC, "evictAtCpu": T_PREEMPT},
    }
