"""Dominant resource fairness on CPU and memory, as YARN has it (Ghodsi et al., NSDI 2011; Tetris, 5.1).

The job with the lowest dominant share by its weight goes next; with more than one queue, a job of the queue with the
lowest share. A task goes where both its CPU and its memory fit. Disk and network are ignored. YARN also rounds a
request up to its smallest container; here a task takes its exact request, so less is wasted.
"""

from dataclasses import dataclass

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.cluster.waiting import Waiting
from extender.planner import Plan
from lab.sim.schedulers.baselines import Accounts, drawing, offer

COLUMNS = [CPU_INDEX, MEMORY_INDEX]


@dataclass(frozen=True, slots=True)
class Drf:
    """Dominant resource fairness; `seed` for the order in which machines report."""

    seed: int = 0

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        accounts = cpu_and_memory(snapshot, waiting)
        return Plan(offer(snapshot, waiting, accounts, drawing(self.seed, now)))


def cpu_and_memory(snapshot: Snapshot, waiting: Waiting) -> Accounts:
    """Return the accounts of a scheduler that counts CPU and memory, as requested."""
    capacity = snapshot.layout.capacity[:, COLUMNS]
    return Accounts(
        need=waiting.demand[:, COLUMNS],
        free=capacity - snapshot.allocated[:, COLUMNS],
        used=waiting.jobs.allocated[:, COLUMNS],
        total=capacity.sum(axis=0),
    )
