"""What no scheduler does better: lower bounds of makespan and of job times. Pure.

They are relaxations: every stage could use all machines as if they were one, and nothing waits for what it could avoid.
A stage takes as long as its longest task, and as its work keeps the scarcest resource of the cluster busy. A job takes
as long as its longest chain of stages (its critical path), and as all its work. Jobs together take as long as one
machine that serves one after the other: the job with the least work left first gives the least mean time there
(Schrage, 1968). Symbols: J jobs, S stages, R dimensions.
"""

from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace

import numpy as np

from extender.arrays import Floats, Rows
from lab.sim.workloads.stages import StageTable

_PARTS = (0.25, 0.5, 0.75)
"""Which parts of the jobs may count by their own bounds alone; each split is a bound, and the best one counts."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """In seconds: the least makespan, the least time of each job [J], in the workload's order, and the least mean."""

    makespan: float
    job_seconds: Floats
    mean_job_seconds: float


NO_BOUNDS = Bounds(0.0, np.zeros(0), 0.0)


def bounds_of(table: StageTable, total: Floats) -> Bounds:
    """Return the bounds of a workload on machines that have `total` [R] together.

    What tasks need while they go on is not known of stages with a `use`: of these only durations count.
    """
    if not len(table.arrives_at):
        return NO_BOUNDS
    work = _stage_work(table, total)
    job_work = np.zeros((len(table.arrives_at), len(total)))
    np.add.at(job_work, table.job, work)
    alone = np.maximum(_critical_paths(table, work), job_work.max(axis=1))
    in_order = np.empty(len(alone))
    in_order[table.job_place] = alone
    return Bounds(
        makespan=_least_makespan(table.arrives_at, alone, job_work),
        job_seconds=in_order,
        mean_job_seconds=_least_total(table.arrives_at, alone, job_work[:, job_work.sum(axis=0).argmax()]) / len(alone),
    )


def _stage_work(table: StageTable, total: Floats) -> Floats:
    """Return for how long each stage keeps all of each resource busy [S, R]."""
    seconds = np.bincount(table.stage_of_task, weights=table.durations, minlength=len(table.tasks))
    seconds[list(table.uses)] = 0.0
    amounts = seconds[:, np.newaxis] * table.everywhere
    return np.divide(amounts, total, out=np.zeros_like(amounts), where=total > 0)


def _critical_paths(table: StageTable, work: Floats) -> Floats:
    """Return the length of each job's longest chain of stages [J]; of tasks, where these wait one to one."""
    tails: dict[int, Floats] = {}
    path = np.zeros(len(table.tasks))
    for stage in range(len(path) - 1, -1, -1):  # children come after their parents
        # 1. What follows each task: stages that wait for all of them, or the task of a stage that waits for it alone.
        first, tasks = int(table.first_task[stage]), int(table.tasks[stage])
        children = table.children[stage].tolist()
        single = [child for child in children if stage in table.one_to_one.get(child, ())]
        others = [child for child in children if stage not in table.one_to_one.get(child, ())]
        behind_all = path[others].max(initial=0.0)
        behind = np.full(tasks, behind_all)
        for child in single:
            behind = np.maximum(behind, tails[child])
        # 2. The longest way through one of its tasks, or all of its work before what waits for all of it.
        tail = table.durations[first : first + tasks] + behind
        path[stage] = max(tail.max(), work[stage].max() + behind_all)
        if stage in table.one_to_one:
            tails[stage] = tail
    paths = np.zeros(len(table.arrives_at))
    np.maximum.at(paths, table.job, path)
    return paths


def _least_makespan(arrives_at: Floats, alone: Floats, work: Floats) -> float:
    """Return the least makespan: of each job by itself, and of all the work that comes from any moment on."""
    begin = arrives_at.min()
    order = np.argsort(arrives_at, kind="stable")
    later = np.cumsum(work[order[::-1]], axis=0)[::-1].max(axis=1)
    return float(max((arrives_at + alone).max(), (arrives_at[order] + later).max()) - begin)


def _least_total(arrives_at: Floats, alone: Floats, work: Floats) -> float:
    """Return the least sum of all jobs' times.

    Some jobs count by their own bounds, the others share one machine as if those were not there.
    """
    order = np.argsort(work - alone, kind="stable")  # first those whose own bound is far above their work
    bounds = [float(alone.sum()), shortest_first(arrives_at, work)]
    for part in _PARTS:
        split = int(part * len(order))
        own, shared = order[:split], order[split:]
        bounds.append(float(alone[own].sum()) + shortest_first(arrives_at[shared], work[shared]))
    return max(bounds)


def shortest_first(arrives_at: Floats, seconds: Floats) -> float:
    """Return the sum of the times of jobs [J] on one machine that serves who has the least work left, to the end."""
    order: Rows = np.argsort(arrives_at, kind="stable")
    left: list[float] = []
    now = ends = 0.0
    for arrival, work in zip(arrives_at[order].tolist(), seconds[order].tolist(), strict=True):
        now, ended = _serve(left, now, arrival)
        ends += ended
        heappush(left, work)
    return ends + float((now + np.cumsum(sorted(left))).sum()) - float(arrives_at.sum())


def _serve(left: list[float], now: float, until: float) -> tuple[float, float]:
    """Serve the heap of work that is left up to a moment; return the moment and the sum of the ends before it."""
    ends = 0.0
    while left and now + left[0] <= until:
        now += heappop(left)
        ends += now
    if left and now < until:
        heapreplace(left, left[0] - (until - now))
    return until, ends
