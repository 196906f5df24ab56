"""Hadoop's schedulers that count memory only: the Fair Scheduler with its slots, and YARN's Capacity Scheduler.

Both see a machine as a number of pieces of 2 GB ("a slot size of 2GB similar to the Facebook cluster", Tetris, 5.1). A
task takes as many whole pieces as its memory needs. Hadoop 1 would give it one slot however large it is, and so promise
more memory than there is; the simulator's machines never do that. CPU, disk and network are not looked at.
"""

from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import MEMORY_INDEX
from extender.cluster.waiting import Waiting
from extender.planner import Plan
from lab.sim.schedulers.baselines import Accounts, ArrivalOrder, drawing, offer

SLOT_BYTES = 2.0 * 2**30

_MEMORY = MEMORY_INDEX


@dataclass(frozen=True, slots=True)
class SlotFair:
    """Hadoop's Fair Scheduler as at Facebook: the job with the fewest slots by its weight goes next.

    `seed` for the order in which machines report.
    """

    seed: int = 0
    slot_bytes: float = SLOT_BYTES

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        accounts = slots(snapshot, waiting, self.slot_bytes)
        return Plan(offer(snapshot, waiting, accounts, drawing(self.seed, now)))


@dataclass(slots=True)
class CapacityScheduler:
    """YARN's Capacity Scheduler (Hadoop 2.4) with its default resource calculator, which counts memory.

    The queue that uses least of its capacity goes next, and in it the job that arrived first. Containers are whole
    multiples of `slot_bytes` (yarn.scheduler.minimum-allocation-mb).
    """

    seed: int = 0
    slot_bytes: float = SLOT_BYTES
    _arrivals: ArrivalOrder = field(default_factory=ArrivalOrder, init=False)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        accounts = slots(snapshot, waiting, self.slot_bytes)
        ranks = self._arrivals.ranks(waiting.jobs.names)
        return Plan(offer(snapshot, waiting, accounts, drawing(self.seed, now), fifo=ranks))


def slots(snapshot: Snapshot, waiting: Waiting, slot_bytes: float) -> Accounts:
    """Return the accounts of a scheduler that counts slots [., 1]."""
    slot_count = np.floor(snapshot.layout.capacity[:, _MEMORY] / slot_bytes)
    need = _pieces(waiting.demand[:, _MEMORY], slot_bytes)
    return Accounts(
        need=need[:, np.newaxis],
        free=(slot_count - _taken_slots(snapshot, waiting, slot_bytes))[:, np.newaxis],
        used=_job_slots(waiting, need, slot_bytes)[:, np.newaxis],
        total=slot_count.sum(keepdims=True),
    )


def _pieces(memory: Floats, slot_bytes: float) -> Floats:
    """Return the slots that tasks of this much memory take: whole ones, at least one."""
    return np.asarray(np.maximum(1.0, np.ceil(memory / slot_bytes)))


def _taken_slots(snapshot: Snapshot, waiting: Waiting, slot_bytes: float) -> Floats:
    """Return the slots taken on each node [N] by its running tasks; by its memory alone where these are not known."""
    running = waiting.running
    if running is None:
        return np.asarray(np.ceil(snapshot.allocated[:, _MEMORY] / slot_bytes))
    slots_taken = np.bincount(
        running.node, weights=_pieces(running.demand[:, _MEMORY], slot_bytes), minlength=len(snapshot.layout.names)
    )
    return slots_taken.astype(np.float64)


def _job_slots(waiting: Waiting, need: Floats, slot_bytes: float) -> Floats:
    """Return the slots that each job has [J].

    Only the job's memory is known. Its running tasks count as tasks of its first waiting class; with a barrier between
    stages they are.
    """
    memory = waiting.jobs.allocated[:, _MEMORY]
    job_slots = memory / slot_bytes
    sized = np.flatnonzero((waiting.demand[:, _MEMORY] > 0) & (waiting.count > 0))[::-1]  # the first class wins
    job = waiting.job[sized]
    job_slots[job] = np.rint(memory[job] * need[sized] / waiting.demand[sized, _MEMORY])
    return job_slots
