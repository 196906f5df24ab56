"""Tasks and gangs that could not start if all nodes were empty: they wait, and count for nobody else.

Else one pod that is too large for every node would take a part of the cluster from other queues, and a place from
others in its queue: their due times would be late by its work, the fairness knob would leave them out for it, and in a
FIFO queue nobody behind it would ever be due.
"""

from dataclasses import replace

import numpy as np

from extender.arrays import Counts, Floats, Mask, needs, needs_fit, sum_by
from extender.cluster.waiting import Waiting
from extender.planner.gangs import Gangs
from extender.policy.shares import parts


def without_misfits(waiting: Waiting, gangs: Gangs, empty: Floats, total: Floats) -> Waiting:
    """Return what waits without those that nodes with nothing but what they have when `empty` [N, R] do not hold.

    Of a job's remaining work as large a part is left as of its waiting tasks, by parts of the `total` [R].
    """
    count = np.where(_fit_somewhere(waiting, empty, total), waiting.count, 0)
    for gang in gangs.rows(waiting.count > 0).tolist():
        if gangs.most_if_empty(empty, gang) < gangs.least[gang]:
            count[gangs.rows_of(gang)] = 0
    if np.array_equal(count, waiting.count):
        return waiting
    jobs, all_work, work = waiting.jobs, _work(waiting, waiting.count, total), _work(waiting, count, total)
    part = np.divide(work, all_work, out=np.ones(len(work)), where=all_work > 0)
    return replace(waiting, count=count, jobs=replace(jobs, work=jobs.work * part))


def _fit_somewhere(waiting: Waiting, empty: Floats, total: Floats) -> Mask:
    """Return which classes fit on a node that they may use [C]; others than the largest are looked at for few."""
    fit, demand, rows = np.zeros(len(waiting.count), dtype=np.bool_), needs(waiting.demand), waiting.count.nonzero()[0]
    if not len(empty):
        return fit
    size = parts(np.where(np.isfinite(empty), empty, 0.0), total).sum(axis=1)
    order = np.argsort(-size, kind="stable")
    barred = np.zeros((len(rows), 1), dtype=np.bool_) if waiting.barred is None else waiting.barred[np.ix_(rows, order)]
    largest = barred.argmin(axis=1)
    fit[rows] = needs_fit(empty[order[largest]], demand[rows]) & ~barred[np.arange(len(rows)), largest]
    for row in rows[~fit[rows]].tolist():
        allowed = empty if waiting.barred is None else empty[~waiting.barred[row]]
        fit[row] = needs_fit(allowed, demand[row]).any()
    return fit


def _work(waiting: Waiting, count: Counts, total: Floats) -> Floats:
    """Return the work of so many tasks of each class [C], by job [J]."""
    tasks = (count * waiting.duration)[:, np.newaxis]
    return np.asarray(sum_by(waiting.job, parts(waiting.demand * tasks, total), len(waiting.jobs.names)).sum(axis=1))
