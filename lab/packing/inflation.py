"""How much more would fit: workload inflation (paper, III.C, algorithms 1 and 2), and picky tasks."""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Floats, Mask, Rows
from lab.packing.compaction import Policy
from lab.packing.holes import PAIR, utilisation
from lab.packing.model import NO_GROUP, Problem
from lab.packing.orders import median_machine, order_of
from lab.packing.placing import Filling, pack

PICKY = 0.6
"""A task is picky that demands more of the median machine, or may go to fewer of all machines (paper, III.C)."""

_STEP = 0.01
MOST = 64.0
"""No workload is inflated to more than so many times itself."""


@dataclass(frozen=True, slots=True)
class Inflated:
    """A workload inflated by a factor: the part of its tasks that is pending, and CPU and memory allocated [2]."""

    factor: float
    pending: float
    used: Floats


def picky(problem: Problem) -> tuple[Mask, Mask]:
    """Return which classes [C] are too large, and which may go to too few machines."""
    classes, median = problem.classes, median_machine(problem)
    large = np.asarray((classes.demand[:, PAIR] > PICKY * median[list(PAIR)]).any(axis=1))
    few = np.asarray(classes.masks.sum(axis=1) < PICKY * problem.machines)
    return large, few[classes.mask]


def horizontal(problem: Problem, factor: float, rows: Rows) -> Problem:
    """Return the workload with clones of these classes [K], each of ceil(tasks x (factor - 1)) tasks."""
    classes = problem.classes
    added = np.ceil(np.round(classes.count[rows] * (factor - 1), 9)).astype(np.int64)
    rows, added = rows[added > 0], added[added > 0]
    group = classes.group[rows]
    apart = np.where(group == NO_GROUP, NO_GROUP, group + classes.group.max(initial=0) + 1)
    more = replace(
        classes,
        demand=np.concatenate((classes.demand, classes.demand[rows])),
        count=np.concatenate((classes.count, added)),
        mask=np.concatenate((classes.mask, classes.mask[rows])),
        group=np.concatenate((classes.group, apart)),
        at_most=np.concatenate((classes.at_most, classes.at_most[rows])),
        job=(*classes.job, *(f"{classes.job[row]} (clone)" for row in rows.tolist())),
        ties=(*classes.ties, *(replace(classes.ties[row], copy=1) for row in rows.tolist())),
    )
    return replace(problem, classes=more)


def vertical(problem: Problem, factor: float, rows: Rows) -> Problem:
    """Return the workload where these classes [K] demand so many times the CPU and memory.

    No task demands more than the largest machine has: its user would see that it stays pending (paper, III.C).
    """
    demand = problem.classes.demand.copy()
    largest = problem.capacity[:, PAIR].max(axis=0)
    here = np.ix_(rows, np.array(PAIR))
    demand[here] = np.minimum(np.ceil(np.round(demand[here] * factor, 6)), np.maximum(largest, demand[here]))
    return replace(problem, classes=replace(problem.classes, demand=demand))


WAYS = {"horizontal": horizontal, "vertical": vertical}
"""The ways to inflate a workload, by name."""


def inflate(problem: Problem, way: str, factor: float, rows: Rows, policy: Policy, seed: int = 0) -> Inflated:
    """Return what becomes of the workload with these classes [K] inflated, on all machines."""
    larger = WAYS[way](problem, factor, rows)
    draw = np.random.default_rng(seed)
    packing = pack(larger, np.arange(problem.machines), order_of(larger, policy.order), policy.rule, draw=draw)
    pending = packing.pending / max(larger.classes.tasks, 1)
    return Inflated(factor, pending, utilisation(problem, packing.allocated))


def most(problem: Problem, way: str, rows: Rows, policy: Policy, tau: float, seed: int = 0) -> Inflated | None:
    """Return the end of a binary search for the largest factor that leaves at most `tau` pending, in steps of 0.01.

    `MOST` where even that does: tasks that are each as large as the largest machine grow no more. None where more is
    pending without inflation, or no class is to be inflated.
    """
    best = inflate(problem, way, 1.0, rows, policy, seed)
    if best.pending > tau or not len(rows):
        return None
    least, above = 1.0, 2.0
    while above <= MOST and (tried := inflate(problem, way, above, rows, policy, seed)).pending <= tau:
        least, best, above = above, tried, 2 * above
    if above > MOST:
        return best
    while above - least > _STEP * (1 + 1e-9):
        middle = round((least + above) / 2, 2)
        if middle in (least, above):
            break
        tried = inflate(problem, way, middle, rows, policy, seed)
        if tried.pending <= tau:
            least, best = middle, tried
        else:
            above = middle
    return best


def by_chance(problem: Problem, rows: Rows, policy: Policy, tau: float, seed: int = 0) -> Inflated:
    """Return what is reached by cloning jobs drawn at random until more than `tau` is pending (algorithm 2).

    `rows` [K] are the classes whose jobs may be drawn. The factor is the tasks that have a place, by tasks without
    clones: the last clone has none, or not for all of its tasks.
    """
    classes, draw = problem.classes, np.random.default_rng(seed)
    filling = Filling(problem, np.arange(problem.machines), policy.rule, draw)
    # 1. The workload as it is.
    tasks = classes.tasks
    pending = tasks - sum(int(filling.place(row).count.sum()) for row in order_of(problem, policy.order).tolist())
    # 2. A clone of a job at random, until too much is pending.
    jobs = defaultdict[str, list[int]](list)
    for row in rows.tolist():
        jobs[classes.job[row]].append(row)
    choices, clone = list(jobs.values()), 0
    while choices and pending <= tau * tasks and tasks < MOST * classes.tasks:
        clone += 1
        for row in choices[int(draw.integers(len(choices)))]:
            count = int(classes.count[row])
            pending += count - int(filling.place(row, clone=clone).count.sum())
            tasks += count
    return Inflated(
        (tasks - pending) / max(classes.tasks, 1), pending / max(tasks, 1), utilisation(problem, filling.allocated)
    )
