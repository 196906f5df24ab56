"""Dominant resource fairness on CPU and memory (Ghodsi et al., NSDI 2011; Tetris, 5.1), exact and as in YARN.

The job with the lowest dominant share by its weight goes next; with more than one queue, a job of the queue with the
lowest share. A task goes where both its CPU and its memory fit. Disk and network are ignored.

`Drf` gives a task its exact request, so nothing is wasted. `YarnDrf` is what the paper compares with, the DRF "that is
available with YARN" (5.1), in its Fair Scheduler: that rounds a request up to whole virtual cores and whole steps of 1
GB (yarn.scheduler.increment-allocation-vcores and -mb, by default 1 and 1,024; "Hadoop: Fair Scheduler", properties
that can be placed in yarn-site.xml).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.cluster.waiting import Waiting
from extender.planner import Plan
from lab.sim.schedulers.baselines import Accounts, drawing, offer
from lab.sim.schedulers.slots import in_pieces

COLUMNS = [CPU_INDEX, MEMORY_INDEX]
VCORE_MILLIS = 1000.0
STEP_BYTES = 2.0**30


@dataclass(frozen=True, slots=True)
class Drf:
    """Dominant resource fairness; `seed` for the order in which machines report."""

    seed: int = 0

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        accounts = cpu_and_memory(snapshot, waiting)
        return Plan(offer(snapshot, waiting, accounts, drawing(self.seed, now)))


@dataclass(frozen=True, slots=True)
class YarnDrf:
    """Dominant resource fairness in whole virtual cores and whole steps of `STEP_BYTES`, which is also the least.

    `seed` for the order in which machines report.
    """

    seed: int = 0

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        accounts = in_pieces(snapshot, waiting, {CPU_INDEX: VCORE_MILLIS, MEMORY_INDEX: STEP_BYTES})
        return Plan(offer(snapshot, waiting, accounts, drawing(self.seed, now)))


def cpu_and_memory(snapshot: Snapshot, waiting: Waiting) -> Accounts:
    """Return the accounts of a scheduler that counts CPU and memory, as requested."""
    return requested(snapshot, waiting, COLUMNS)


def requested(snapshot: Snapshot, waiting: Waiting, columns: Sequence[int]) -> Accounts:
    """Return the accounts of a scheduler that counts these columns, as requested."""
    capacity = snapshot.layout.capacity[:, columns]
    return Accounts(
        need=waiting.demand[:, columns],
        free=capacity - snapshot.allocated[:, columns],
        used=waiting.jobs.allocated[:, columns],
        total=capacity.sum(axis=0),
    )
