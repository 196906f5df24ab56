"""Tasks and gangs that could not start if all nodes were empty: they wait, and count for nobody else.

Else one pod that is too large for every node would take a part of the cluster from other queues, and a place from
others in its queue: their due times would be late by its work, the fairness knob would leave them out for it, and in a
FIFO queue nobody behind it would ever be due.
"""

from dataclasses import replace

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, needs, sum_by
from extender.cluster.waiting import Waiting
from extender.planner.gangs import Gangs
from extender.policy.shares import parts

_SAMPLE = 16
"""Most classes fit on one of so many nodes; only for the others are all looked at."""


def without_misfits(waiting: Waiting, gangs: Gangs, empty: Floats, total: Floats, unreadable: Mask) -> Waiting:
    """Return what waits without those that nodes with nothing but what they have when `empty` [N, R] do not hold.

    Nor are those left that could read their input nowhere (`unreadable` [C]). Of a job's remaining work as large a part
    is left as of its waiting tasks, by parts of the `total` [R].
    """
    # 1. Classes that fit nowhere. On a full cluster most plans start nobody, so this must cost little.
    places = _places(waiting, empty, _sample(empty, total))
    fit = places > 0
    rest = (~fit).nonzero()[0]
    fit[rest] = fit_somewhere(waiting, empty, rest)
    count = np.where(fit & ~unreadable, waiting.count, 0)
    # 2. Gangs for which there are too few places. There are enough where each class had them for the whole gang.
    if len(waits := gangs.rows(fit)):
        whole = np.append(gangs.total(count), 0)[gangs.of]
        is_sure = gangs.total(np.where(places >= whole, count, 0)) >= gangs.least
        for gang in waits[~is_sure[waits]].tolist():
            if gangs.most_if_empty(empty, gang) < gangs.least[gang]:
                count[gangs.rows_of(gang)] = 0
    if np.array_equal(count, waiting.count):
        return waiting
    jobs, all_work, work = waiting.jobs, _work(waiting, waiting.count, total), _work(waiting, count, total)
    part = np.divide(work, all_work, out=np.ones(len(work)), where=all_work > 0)
    return replace(waiting, count=count, jobs=replace(jobs, work=jobs.work * part))


def _sample(empty: Floats, total: Floats) -> Rows:
    """Return about as many nodes as are a sample, of all sizes, the largest first."""
    size = parts(np.where(np.isfinite(empty), empty, 0.0), total).sum(axis=1)
    return np.argsort(-size, kind="stable")[:: max(len(size) // _SAMPLE, 1)]


def _places(waiting: Waiting, empty: Floats, nodes: Rows) -> Floats:
    """Return how many tasks of each class fit on these `empty` nodes, if it has them to itself [C]."""
    room, demand = empty[nodes].T[:, np.newaxis], waiting.demand.T[:, :, np.newaxis]
    unasked = np.full((len(demand), len(waiting.count), len(nodes)), np.inf)
    times = np.floor(np.divide(room, demand, out=unasked, where=demand > 0).min(axis=0))
    if waiting.barred is not None:
        times[waiting.barred[:, nodes]] = 0.0
    return np.asarray(times.sum(axis=1))


def fit_somewhere(waiting: Waiting, room: Floats, rows: Rows) -> Mask:
    """Return which of these classes have a node with `room` [N, R] for a task, of those that they may use [K]."""
    demand = waiting.demand[rows]
    fit = np.ones((len(rows), len(room)), dtype=np.bool_) if waiting.barred is None else ~waiting.barred[rows]
    for column in np.flatnonzero((demand > 0).any(axis=0)).tolist():
        fit &= needs(demand[:, column, np.newaxis]) <= room[:, column]
    return np.asarray(fit.any(axis=1))


def _work(waiting: Waiting, count: Counts, total: Floats) -> Floats:
    """Return the work of so many tasks of each class [C], by job [J]."""
    tasks = (count * waiting.duration)[:, np.newaxis]
    return np.asarray(sum_by(waiting.job, parts(waiting.demand * tasks, total), len(waiting.jobs.names)).sum(axis=1))
