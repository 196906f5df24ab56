"""Hadoop's schedulers that count memory only: the Fair Scheduler with its slots, and YARN's Capacity Scheduler.

Both see a machine as a number of pieces of 2 GB ("a slot size of 2GB similar to the Facebook cluster", Tetris, 5.1). In
YARN a task takes as many whole pieces as its memory needs. In Hadoop 1, which Facebook ran, it takes one slot, however
large it is; only, no more memory is promised than there is. CPU, disk and network are not looked at.
"""

from collections.abc import Mapping
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

    A machine has one slot for each `SLOT_BYTES` of its memory, and a task takes one, where its memory is free too.
    `seed` for the order in which machines report.
    """

    seed: int = 0

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        accounts = slot_each(snapshot, waiting)
        return Plan(offer(snapshot, waiting, accounts, drawing(self.seed, now)))


@dataclass(slots=True)
class CapacityScheduler:
    """YARN's Capacity Scheduler (Hadoop 2.4) with its default resource calculator, which counts memory.

    The queue that uses least of its capacity goes next, and in it the job that arrived first. Containers are whole
    multiples of `SLOT_BYTES` (yarn.scheduler.minimum-allocation-mb).
    """

    seed: int = 0
    _arrivals: ArrivalOrder = field(default_factory=ArrivalOrder, init=False)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        accounts = in_pieces(snapshot, waiting, {_MEMORY: SLOT_BYTES})
        ranks = self._arrivals.ranks(waiting.jobs.names)
        return Plan(offer(snapshot, waiting, accounts, drawing(self.seed, now), fifo=ranks))


def slot_each(snapshot: Snapshot, waiting: Waiting) -> Accounts:
    """Return the accounts of a scheduler that gives each task one slot, where its memory is free as well [., 2].

    Jobs are compared by their slots only.
    """
    memory, allocated = snapshot.layout.capacity[:, _MEMORY], snapshot.allocated[:, _MEMORY]
    slots, need = np.floor(memory / SLOT_BYTES), np.ones(len(waiting.count))
    running = waiting.running
    taken = np.ceil(allocated / SLOT_BYTES) if running is None else np.bincount(running.node, minlength=len(memory))
    used = _job_pieces(waiting, need, _MEMORY, SLOT_BYTES)
    return Accounts(
        need=np.column_stack((need, waiting.demand[:, _MEMORY])),
        free=np.column_stack((slots - taken, memory - allocated)),
        used=np.column_stack((used, np.zeros(len(used)))),
        total=np.array([slots.sum(), 0.0]),
    )


def in_pieces(snapshot: Snapshot, waiting: Waiting, units: Mapping[int, float]) -> Accounts:
    """Return the accounts of a scheduler that counts these dimensions in whole pieces of so much each [., K]."""
    piece_count = [np.floor(snapshot.layout.capacity[:, column] / unit) for column, unit in units.items()]
    taken = [_taken(snapshot, waiting, column, unit) for column, unit in units.items()]
    need = [_pieces(waiting.demand[:, column], unit) for column, unit in units.items()]
    used = [_job_pieces(waiting, *counted) for counted in zip(need, units.keys(), units.values(), strict=True)]
    return Accounts(
        need=np.column_stack(need),
        free=np.column_stack(piece_count) - np.column_stack(taken),
        used=np.column_stack(used),
        total=np.column_stack(piece_count).sum(axis=0),
    )


def _pieces(amount: Floats, unit: float) -> Floats:
    """Return the pieces that tasks of this amount take: whole ones, at least one."""
    return np.asarray(np.maximum(1.0, np.ceil(amount / unit)))


def _taken(snapshot: Snapshot, waiting: Waiting, column: int, unit: float) -> Floats:
    """Return the pieces taken on each node [N] by its running tasks; by the sum alone where these are not known."""
    running = waiting.running
    if running is None:
        return np.asarray(np.ceil(snapshot.allocated[:, column] / unit))
    pieces = _pieces(running.demand[:, column], unit)
    return np.bincount(running.node, weights=pieces, minlength=len(snapshot.layout.names)).astype(np.float64)


def _job_pieces(waiting: Waiting, need: Floats, column: int, unit: float) -> Floats:
    """Return the pieces that each job has [J].

    Only the sum over its tasks is known. Its running tasks count as tasks of its first waiting class; with a barrier
    between stages they are.
    """
    amount = waiting.jobs.allocated[:, column]
    pieces = amount / unit
    sized = np.flatnonzero((waiting.demand[:, column] > 0) & (waiting.count > 0))[::-1]  # the first class wins
    job = waiting.job[sized]
    pieces[job] = np.rint(amount[job] * need[sized] / waiting.demand[sized, column])
    return pieces
