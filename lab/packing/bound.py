"""How many machines any placement needs at least: what no order and no rule can beat."""

from collections.abc import Iterator

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from lab.packing.caps import Cap, caps_of
from lab.packing.devices import PARTS
from lab.packing.measures import measures_of
from lab.packing.model import Problem


def fewest_machines(problem: Problem, machines: Rows, pending: int) -> int:
    """Return how many of these machines, in this order [M'], are needed where `pending` tasks may be left out.

    One more than there are where all are too few. Each argument gives tasks a weight, and says what weight a machine
    takes at most (`measures`): what the first machines take must be what the tasks weigh without the `pending`
    heaviest. It is made for all tasks, and for those that may go to no machine but some. Of those that keep apart, or
    spread, each machine or domain takes few (`caps`).
    """
    classes, capacity = problem.classes, problem.capacity[machines]
    least = 1 if classes.tasks > pending else 0
    for rows, may in _bound_together(problem, machines, pending):
        least = max(least, _fewest(problem, rows, np.where(may[:, np.newaxis], capacity, 0.0), pending))
    for cap, tasks in caps_of(problem):
        least = max(least, _capped(cap, machines, tasks - pending, least))
    return least


def _bound_together(problem: Problem, machines: Rows, pending: int) -> Iterator[tuple[Rows, Mask]]:
    """Yield classes that are bound to the same machines [M'], and these; more than `pending` tasks each time."""
    classes = problem.classes
    yield np.arange(len(classes.count)), np.ones(len(machines), dtype=np.bool_)
    for mask in np.flatnonzero(~classes.masks.all(axis=1)).tolist():
        rows = np.flatnonzero(classes.mask == mask)
        if classes.count[rows].sum() > pending:
            yield rows, classes.masks[mask, machines]


def _fewest(problem: Problem, rows: Rows, capacity: Floats, pending: int) -> int:
    """Return the fewest machines for these classes; `capacity` [M', R] is nothing where they may not go."""
    least, count = 0, problem.classes.count[rows]
    for column, name in enumerate(problem.layout.axis):
        demand, offers = problem.classes.demand[rows, column], capacity[:, column]
        if demand.any() and not np.isposinf(offers).any():
            parts = PARTS.get(name)
            for measure in measures_of(demand, count, offers, parts):
                needed = _without(measure.weights(demand), count, pending)
                least = max(least, _reached(np.cumsum(measure.most(offers)), needed))
    return least


def _capped(cap: Cap, machines: Rows, needed: int, least: int) -> int:
    """Return the fewest machines that take as many tasks as are needed; looks at few where `least` are enough."""
    size = max(least, 1)
    while needed > 0:
        reached = _reached(cap(machines[:size]), float(needed))
        if reached <= size or size >= len(machines):
            return reached
        size *= 2
    return 0


def _reached(sums: Floats, needed: float) -> int:
    """Return after how many machines the sum is first what is needed; rounding never counts against them."""
    return int(np.searchsorted(np.maximum.accumulate(sums), needed * (1 - 1e-9))) + 1 if needed > 0 else 0


def _without(weights: Floats, count: Counts, pending: int) -> float:
    """Return what all tasks weigh but the `pending` heaviest."""
    order = np.argsort(-weights, kind="stable")
    before = np.cumsum(count[order]) - count[order]
    kept = np.clip(count[order] - np.maximum(pending - before, 0), 0, None)
    return float(weights[order] @ kept)
