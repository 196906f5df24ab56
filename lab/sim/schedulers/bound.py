"""The simple upper bound of the gains from packing (Tetris, 2.2.3), and Tetris with CPU and memory only (5.3.1)."""

from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Inputs, Shuffle, Waiting
from extender.planner import Plan, Scheduler
from lab.sim.schedulers.drf import COLUMNS
from lab.sim.workloads.workload import Machines

_VISIBLE = np.isin(np.arange(len(DIMENSIONS)), COLUMNS)


def aggregate(machines: Machines) -> Machines:
    """Return one large machine with the capacity of all: no room is stranded on one of many."""
    return Machines(
        name=f"{machines.name}, as one",
        capacity=machines.capacity.sum(axis=0, keepdims=True),
        copies=1,
        aggregate=True,
    )


@dataclass(frozen=True, slots=True)
class CpuAndMemory:
    """A scheduler that sees only CPU and memory, so that it over-allocates disks and networks.

    It still knows where blocks are, as every scheduler does, and the remaining work of each job.
    """

    inner: Scheduler

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        return self.inner.plan(replace(snapshot, allocated=_visible(snapshot.allocated)), without_rates(waiting), now)


def without_rates(waiting: Waiting) -> Waiting:
    """Return what waits as if tasks took only CPU and memory and read nothing."""
    running = waiting.running
    return replace(
        waiting,
        demand=_visible(waiting.demand),
        reading=np.zeros_like(waiting.reading),
        inputs=[_without_shuffle(inputs) for inputs in waiting.inputs],
        jobs=replace(waiting.jobs, allocated=_visible(waiting.jobs.allocated)),
        running=None if running is None else replace(running, demand=_visible(running.demand)),
    )


def _visible(amounts: Floats) -> Floats:
    """Return amounts [., R] of CPU and memory; 0 of everything else."""
    return amounts * _VISIBLE


def _without_shuffle(inputs: Inputs) -> Inputs:
    return None if isinstance(inputs, Shuffle) else inputs
