"""Job managers that ask for tasks in an order of their own, as Tez's do: schedulers see what is asked for first."""

from dataclasses import replace

import numpy as np

from extender.arrays import Counts, Floats, Mask
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import DISK_READ_INDEX
from extender.cluster.waiting import Waiting
from extender.planner import Assignments, Plan, Scheduler


class RequestsInOrder:
    """Lets `inner` see, of each job with an order, the classes whose next tasks come first; what comes next later.

    Once no more of these fits, it sees the classes that come next, in the same plan. It is not told of any order. What
    a task reads counts on its own machine, so this is for stages that read there.
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
            snapshot, waiting = _after(plans[-1].assignments, snapshot, waiting)
            open_ &= ~first
        if not plans:
            return self._inner.plan(snapshot, replace(waiting, order=None), now)
        return replace(plans[-1], assignments=_joined(plans), terms=())


def _of_next_tasks(waiting: Waiting) -> Floats:
    """Return the priority of each class's next task [C]; alike for all of a job without an order, or without a task."""
    order = waiting.order
    if order is None:
        raise ValueError("no job has an order")
    priority, known = np.zeros(len(waiting.count)), (waiting.count > 0) & (order.next >= 0)
    priority[known] = order.priority[order.next[known]]
    return priority


def _first_of_each_job(open_: Mask, priority: Floats, waiting: Waiting) -> Mask:
    """Return which of the open classes come first in their job [C]; several where they are alike."""
    best = np.full(len(waiting.jobs.names), -np.inf)
    np.maximum.at(best, waiting.job[open_], priority[open_])
    return np.asarray(open_ & (priority >= best[waiting.job]))


def _after(chosen: Assignments, snapshot: Snapshot, waiting: Waiting) -> tuple[Snapshot, Waiting]:
    """Return what there is, and what waits, once these are carried out."""
    if not len(chosen):
        return snapshot, waiting
    taken = waiting.demand[chosen.task_class].copy()
    taken[:, DISK_READ_INDEX] += waiting.reading[chosen.task_class]
    allocated, by_job = snapshot.allocated.copy(), waiting.jobs.allocated.copy()
    np.add.at(allocated, chosen.node, taken)
    np.add.at(by_job, waiting.job[chosen.task_class], taken)
    count: Counts = waiting.count - np.bincount(chosen.task_class, minlength=len(waiting.count))
    jobs = replace(waiting.jobs, allocated=by_job)
    return replace(snapshot, allocated=allocated), replace(waiting, count=count, jobs=jobs)


def _joined(plans: list[Plan]) -> Assignments:
    columns = ("task_class", "node", "task", "source")
    return Assignments(*(np.concatenate([getattr(plan.assignments, name) for plan in plans]) for name in columns))
