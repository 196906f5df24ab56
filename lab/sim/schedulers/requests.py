"""Job managers that ask for tasks in an order of their own, as Tez's do: schedulers see what is asked for first."""

from dataclasses import replace

import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner import Assignments, Plan, Scheduler
from lab.sim.schedulers.baselines import carried_out, next_priorities


class RequestsInOrder:
    """Lets `inner` see of each job with an order only the classes whose next tasks come first, but not the order.

    Once no more of these fits, it sees the classes that come next, in the same plan. What a task reads counts on its
    own machine, so this is for stages that read there.
    """

    def __init__(self, inner: Scheduler) -> None:
        self._inner = inner

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now. Raises ValueError where no job has an order."""
        priority = _of_next_tasks(waiting)
        open_, plans = waiting.count > 0, list[Plan]()
        while open_.any():
            first = _first_of_each_job(open_, priority, waiting)
            left = replace(waiting, count=np.where(first, waiting.count, 0), order=None)
            plans.append(self._inner.plan(snapshot, left, now))
            snapshot, waiting = carried_out(plans[-1].assignments, snapshot, waiting)
            open_ &= ~first
        if not plans:
            return self._inner.plan(snapshot, replace(waiting, order=None), now)
        return replace(plans[-1], assignments=_joined(plans), terms=())


def _of_next_tasks(waiting: Waiting) -> Floats:
    """Return the priority of each class's next task [C]; 0 where its job has no order, or no task waits."""
    if waiting.order is None:
        raise ValueError("no job has an order")
    priority, rows = np.zeros(len(waiting.count)), np.flatnonzero(waiting.count > 0)
    priority[rows] = next_priorities(waiting.order, rows)
    return priority


def _first_of_each_job(open_: Mask, priority: Floats, waiting: Waiting) -> Mask:
    """Return which of the open classes come first in their job [C]; several where they are alike."""
    best = np.full(len(waiting.jobs.names), -np.inf)
    np.maximum.at(best, waiting.job[open_], priority[open_])
    return np.asarray(open_ & (priority >= best[waiting.job]))


def _joined(plans: list[Plan]) -> Assignments:
    columns = ("task_class", "node", "task", "source")
    return Assignments(*(np.concatenate([getattr(plan.assignments, name) for plan in plans]) for name in columns))
