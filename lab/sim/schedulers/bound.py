"""What bounds the gains from packing, simply (Tetris, 2.2.3), and what Tetris is worth if it sees less (5.3.1)."""

from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Inputs, Spread, Waiting
from extender.planner import Plan, Scheduler
from lab.sim.schedulers.drf import COLUMNS
from lab.sim.workloads.workload import Machines

_SEEN = np.isin(np.arange(len(DIMENSIONS)), COLUMNS)


def aggregate(machines: Machines) -> Machines:
    """Return one large bin that offers what all the machines do: nothing is ever stranded on one of many."""
    return Machines(
        name=f"{machines.name}, as one",
        capacity=machines.capacity.sum(axis=0, keepdims=True),
        copies=1,
        aggregate=True,
    )


@dataclass(frozen=True, slots=True)
class CpuAndMemory:
    """A scheduler that sees CPU and memory alone, so that it over-allocates disks and networks.

    It still knows where blocks are, as every scheduler does, and how much work a job has left.
    """

    inner: Scheduler

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        return self.inner.plan(replace(snapshot, allocated=_hidden(snapshot.allocated)), without_rates(waiting), now)


def without_rates(waiting: Waiting) -> Waiting:
    """Return what waits as if it took CPU and memory alone: nothing is read, from anywhere."""
    running = waiting.running
    return replace(
        waiting,
        demand=_hidden(waiting.demand),
        reading=np.zeros_like(waiting.reading),
        inputs=[_unread(inputs) for inputs in waiting.inputs],
        jobs=replace(waiting.jobs, allocated=_hidden(waiting.jobs.allocated)),
        running=None if running is None else replace(running, demand=_hidden(running.demand)),
    )


def _hidden(amounts: Floats) -> Floats:
    """Return amounts [., R] with nothing but CPU and memory."""
    return amounts * _SEEN


def _unread(inputs: Inputs) -> Inputs:
    return None if isinstance(inputs, Spread) else inputs
