"""First fit in the order of arrival: the simplest scheduler that never promises CPU or memory twice."""

from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner import Plan
from lab.sim.schedulers.baselines import ArrivalOrder, AssignmentList, ClassLine, candidates
from lab.sim.schedulers.drf import cpu_and_memory
from lab.sim.schedulers.promises import Promises


@dataclass(slots=True)
class FirstFit:
    """Each task, in the order of arrival, to the first machine by name where its CPU and memory fit.

    Tasks arrive when their stage may begin. One that fits nowhere steps aside for those after it.
    """

    _arrivals: ArrivalOrder = field(default_factory=ArrivalOrder, init=False)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:  # noqa: ARG002 - no matter when
        """Return what to start now."""
        chosen, promises = AssignmentList(), Promises(snapshot, waiting)
        accounts = cpu_and_memory(snapshot, waiting)
        classes, rows = candidates(accounts, waiting.count)
        free = accounts.free[rows]
        line = ClassLine(classes, self._arrivals.ranks(waiting.names), accounts.need)
        for task_class in line:
            need = accounts.need[task_class]
            placed = _tasks_per_node(free, need, int(waiting.count[task_class]))
            free -= placed[:, np.newaxis] * need
            for node in np.repeat(rows, placed).tolist():
                chosen.add(task_class, node, *promises.take(task_class, node))
            if placed.sum() < waiting.count[task_class]:
                line.give_up(task_class)
        return Plan(chosen.assignments())


def _tasks_per_node(free: Floats, need: Floats, count: int) -> Rows:
    """Return how many of `count` tasks go to each node [N], filling one after the other."""
    fit = np.full(len(free), float(count))
    for dimension in np.flatnonzero(need).tolist():
        np.minimum(fit, np.maximum(free[:, dimension], 0.0) // need[dimension], out=fit)
    cumulative = np.minimum(np.cumsum(fit), count)
    return np.asarray(np.diff(cumulative, prepend=0.0), dtype=np.intp)
