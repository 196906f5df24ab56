"""How many machines any placement needs at least: what no order and no rule can beat."""

import numpy as np

from extender.arrays import Counts, Floats, Rows
from lab.packing.model import Classes, Problem

_SIZES = 16
"""Of each dimension so many sizes of tasks are tried, spread evenly over the tasks."""


def fewest_machines(problem: Problem, machines: Rows, pending: int) -> int:
    """Return how many of these machines, in this order [M'], are needed where `pending` tasks may be left out.

    One more than there are where all are too few. Two arguments, each for every set of machines that some classes are
    bound to. Volume: what tasks demand in a dimension, without the `pending` largest, is at most what the machines that
    may take them offer. Number: a machine takes at most floor(capacity / s) tasks that demand s or more of a dimension.
    """
    classes = problem.classes
    capacity = problem.capacity[machines]
    least = 1 if classes.tasks > pending else 0
    for mask in range(len(classes.masks)):
        rows = np.flatnonzero(classes.mask == mask)
        if not classes.masks[mask].all():
            there = np.where(classes.masks[mask, machines][:, np.newaxis], capacity, 0.0)
            least = max(least, _fewest(classes, rows, there, pending))
    return max(least, _fewest(classes, np.arange(len(classes.count)), capacity, pending))


def _fewest(classes: Classes, rows: Rows, capacity: Floats, pending: int) -> int:
    """Return the fewest machines for these classes; `capacity` [M', R] is nothing where they may not go."""
    least, count = 0, classes.count[rows]
    for column in range(capacity.shape[1]):
        demand, offers = classes.demand[rows, column], capacity[:, column]
        if not demand.any() or np.isposinf(offers).any():
            continue
        least = max(least, _reached(np.cumsum(offers), _volume(demand, count, pending)))
        for size in _sizes(demand, count):
            slots = np.cumsum(np.floor(offers / size * (1 + 1e-12)))
            least = max(least, _reached(slots, float(count[demand >= size].sum() - pending)))
    return least


def _reached(sums: Floats, needed: float) -> int:
    """Return after how many machines the sum is what is needed; rounding never counts against them."""
    return int(np.searchsorted(sums, needed * (1 - 1e-9))) + 1 if needed > 0 else 0


def _volume(demand: Floats, count: Counts, pending: int) -> float:
    """Return what all tasks demand but the `pending` largest."""
    order = np.argsort(-demand, kind="stable")
    before = np.cumsum(count[order]) - count[order]
    kept = np.clip(count[order] - np.maximum(pending - before, 0), 0, None)
    return float(demand[order] @ kept)


def _sizes(demand: Floats, count: Counts) -> list[float]:
    """Return sizes of tasks, at evenly spread places among all tasks by size."""
    order = np.argsort(demand, kind="stable")
    places = np.linspace(1, count.sum(), _SIZES)
    found = demand[order][np.searchsorted(np.cumsum(count[order]), places)]
    return [float(size) for size in np.unique(found) if size > 0]
