"""Machines that report one after the other, as Hadoop's do: a scheduler sees free room only where a report is due.

A scheduler that sees all machines at every event finds nodes near the input that Hadoop's, which is offered one machine
at a time, does not find. A comparison with Hadoop must leave that advantage out.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Mask
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.cluster.waiting import Waiting
from extender.planner import Assignments, Plan, Scheduler
from lab.sim.schedulers.baselines import carried_out

_SLOTS = np.array([CPU_INDEX, MEMORY_INDEX])
_PHASES = 100
_SAME = 1e-6


class Heartbeats:
    """Lets `inner` plan when a machine reports, every `seconds` seconds; the order of reports is drawn by `seed`.

    There are as many moments in that time as machines, but at most a hundred. Of the machines that do not report, only
    CPU and memory are hidden: tasks may still read from them. A job that was passed over while room stays empty waits
    until the next report of any machine, with or without room (Delay Scheduling, algorithm 3).
    """

    def __init__(self, inner: Scheduler, *, seconds: float, seed: int) -> None:
        self._inner, self._seconds, self._seed = inner, seconds, seed
        self._phase = np.zeros(0, dtype=np.int64)
        self._last = -1
        self._passed_over = False

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start on the machines that report now, and the time of the next report that matters."""
        # 1. Which report is due: every machine has a phase, and time goes in ticks.
        self._phase = self._phases(len(snapshot.layout.names))
        phases = int(self._phase.max(initial=0)) + 1
        step = self._seconds / phases
        tick = int(np.floor(now / step + _SAME))
        plan, later, remaining = _NOTHING, snapshot, waiting
        # 2. Plan on the machines that report at this tick, once.
        if tick > self._last and now - tick * step <= _SAME * step * phases:
            self._last = tick
            reports = self._phase == tick % phases
            plan = self._inner.plan(replace(snapshot, allocated=_full_but(reports, snapshot)), waiting, now)
            later, remaining = carried_out(plan.assignments, snapshot, waiting)
            self._passed_over = plan.again_at < np.inf
        # 3. Come back at the next tick if a job was passed over, else when a machine with room reports.
        if self._passed_over:
            return replace(plan, again_at=(tick + 1) * step)
        rooms = self._phase[_with_room(later, remaining)]
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
    hidden = np.ix_((~reports).nonzero()[0], _SLOTS)
    allocated[hidden] = snapshot.layout.capacity[hidden]
    return allocated


def _with_room(snapshot: Snapshot, waiting: Waiting) -> Mask:
    """Return which nodes have CPU and memory for the least of what waits [N]."""
    waits = waiting.count > 0
    if not waits.any():
        return np.zeros(len(snapshot.layout.names), dtype=np.bool_)
    free = snapshot.layout.capacity[:, _SLOTS] - snapshot.allocated[:, _SLOTS]
    return np.asarray((free >= waiting.demand[waits][:, _SLOTS].min(axis=0)).all(axis=1))
