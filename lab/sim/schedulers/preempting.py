"""A planner as it is on a cluster, where kube-scheduler preempts for pods that outrank running ones.

There `control` releases such a pod to no node (`extender/control/release/without_node.py`), one at a time. Here its
node is found, and its victims end, at once; all for whom others ended are started before anybody else is planned.
"""

from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner import Assignments, Plan, Scheduler
from lab.sim.preemption import PlanWithVictims, Preemption, counted_by_kube, nominations
from lab.sim.schedulers.baselines import AssignmentList
from lab.sim.schedulers.kube import demanded
from lab.sim.schedulers.promises import Promises


@dataclass(slots=True)
class Preempting:
    """Lets `inner` plan, and has pods end that keep those out that outrank them. Without priorities nobody does."""

    inner: Scheduler
    _nominated: list[tuple[str, int]] = field(default_factory=list, init=False)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now and, where priorities are known, which pods end for more important ones."""
        if self._nominated:
            nominated = self._start(snapshot, waiting)
            if len(nominated):
                return Plan(nominated, again_at=now)
        plan = self.inner.plan(snapshot, waiting, now)
        running = waiting.running
        if running is None or running.priority is None or waiting.priority is None:
            return plan
        free = snapshot.layout.capacity - _allocated_after(snapshot, waiting, plan.assignments)
        preemption = Preemption(running, free, counted_by_kube(free.shape[1]), all_resources=True)
        left = waiting.count - np.bincount(plan.assignments.task_class, minlength=len(waiting.count))
        rows = _in_line(waiting.priority, left, waiting.gang)
        self._nominated = nominations(preemption, waiting, demanded(waiting), rows, left[rows])
        if not self._nominated:
            return plan
        return PlanWithVictims(
            plan.assignments, kept_idle=plan.kept_idle, victims=np.array(preemption.victims, dtype=np.intp)
        )

    def _start(self, snapshot: Snapshot, waiting: Waiting) -> Assignments:
        """Return the starts of the pods for which others ended a moment ago."""
        rows = {name: row for row, name in enumerate(waiting.names)}
        left, promises, chosen = waiting.count.tolist(), Promises(snapshot, waiting), AssignmentList()
        for name, node in self._nominated:
            row = rows.get(name, -1)
            if row >= 0 and left[row]:
                left[row] -= 1
                chosen.add(row, node, *promises.take(row, node))
        self._nominated.clear()
        return chosen.assignments()


def _in_line(priority: Counts, left: Counts, gang: Rows | None) -> Rows:
    """Return the classes with tasks left, the most important first.

    None of a gang: a pod of it would wait for the others.
    """
    alone = np.ones(len(left), dtype=np.bool_) if gang is None else gang < 0
    rows = np.flatnonzero((left > 0) & alone)
    return rows[np.argsort(-priority[rows], kind="stable")]


def _allocated_after(snapshot: Snapshot, waiting: Waiting, assignments: Assignments) -> Floats:
    """Return what is promised of each node [N, R] once these have started."""
    promises = Promises(snapshot, waiting)
    for task_class, node, source in zip(
        assignments.task_class.tolist(), assignments.node.tolist(), assignments.source.tolist(), strict=True
    ):
        promises.add(task_class, node, source if source >= 0 else node)
    return promises.allocated
