"""Machines that report one after the other, as Hadoop's do: a scheduler sees the free room of those that report now.

A scheduler that is told of every machine whenever something happens finds places near the input that one which is
offered a machine at a time does not: that is what a comparison with Hadoop has to leave out.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Mask
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.cluster.waiting import Waiting
from extender.planner import Assignments, Plan, Scheduler

_SLOTS = np.array([CPU_INDEX, MEMORY_INDEX])
_PHASES = 100
_SAME = 1e-6


class Heartbeats:
    """Lets `inner` plan when a machine reports, every `seconds` seconds; who reports when is drawn by `seed`.

    There are as many moments in that time as machines, but at most a hundred. Only CPU and memory of the others are
    hidden: what reads from them still may. Who is passed over at room that stays empty waits until the next report of
    any machine, with room or without (Delay Scheduling, algorithm 3), and not until this machine reports again.
    """

    def __init__(self, inner: Scheduler, *, seconds: float, seed: int) -> None:
        self._inner, self._seconds, self._seed = inner, seconds, seed
        self._phase = np.zeros(0, dtype=np.int64)
        self._last = -1
        self._passed_over = False

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now on the machines that report now, and when the next does whose report counts."""
        self._phase = self._phases(len(snapshot.layout.names))
        phases = int(self._phase.max(initial=0)) + 1
        step = self._seconds / phases
        tick = int(np.floor(now / step + _SAME))
        plan, left, allocated = _NOTHING, waiting, snapshot.allocated
        if tick > self._last and now - tick * step <= _SAME * step * phases:
            self._last = tick
            reports = self._phase == tick % phases
            plan = self._inner.plan(replace(snapshot, allocated=_full_but(reports, snapshot)), waiting, now)
            left, allocated = _after(plan, waiting, allocated)
            self._passed_over = plan.again_at < np.inf
        if self._passed_over:
            return replace(plan, again_at=(tick + 1) * step)
        rooms = self._phase[_with_room(replace(snapshot, allocated=allocated), left)]
        again = tick + 1 + ((rooms - tick - 1) % phases).min(initial=phases) if len(rooms) else np.inf
        return replace(plan, again_at=float(again * step))

    def _phases(self, nodes: int) -> NDArray[np.int64]:
        if len(self._phase) == nodes:
            return self._phase
        order = np.random.default_rng(self._seed).permutation(nodes)
        return np.asarray(order % min(nodes, _PHASES), dtype=np.int64)


_NONE = np.empty(0, dtype=np.intp)
_NOTHING = Plan(Assignments(_NONE, _NONE, _NONE, _NONE))


def _full_but(reports: Mask, snapshot: Snapshot) -> NDArray[np.float64]:
    """Return what is allocated as if all but these nodes had no CPU and memory left [N, R]."""
    allocated = snapshot.allocated.copy()
    others = np.ix_((~reports).nonzero()[0], _SLOTS)
    allocated[others] = snapshot.layout.capacity[others]
    return allocated


def _after(plan: Plan, waiting: Waiting, allocated: NDArray[np.float64]) -> tuple[Waiting, NDArray[np.float64]]:
    """Return what still waits, and what is allocated, once a plan is carried out."""
    chosen = plan.assignments
    if not len(chosen):
        return waiting, allocated
    allocated = allocated.copy()
    np.add.at(allocated, chosen.node, waiting.demand[chosen.task_class])
    taken = np.bincount(chosen.task_class, minlength=len(waiting.count))
    return replace(waiting, count=waiting.count - taken), allocated


def _with_room(snapshot: Snapshot, waiting: Waiting) -> Mask:
    """Return which nodes have CPU and memory for the least of what waits [N]."""
    waits = waiting.count > 0
    if not waits.any():
        return np.zeros(len(snapshot.layout.names), dtype=np.bool_)
    free = snapshot.layout.capacity[:, _SLOTS] - snapshot.allocated[:, _SLOTS]
    return np.asarray((free >= waiting.demand[waits][:, _SLOTS].min(axis=0)).all(axis=1))
