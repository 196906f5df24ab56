"""Whose turn it is: shares, fair shares, the fairness knob, and deficits.

Groups are the jobs [J] of weighted queues [Q]: a queue's fair share is divided among its jobs that want something.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]


def dominant_shares(allocated: Floats, total: Floats) -> Floats:
    """Return each group's largest share of any dimension [J], in [0, 1]; `allocated` [J, R], `total` [R] (DRF).

    A dimension that the cluster has none of or does not limit takes no part.
    """
    counts = (total > 0) & np.isfinite(total)
    return np.asarray((allocated[:, counts] / total[counts]).max(axis=1, initial=0.0))


def fair_shares(queue: Rows, weight: Floats, queue_weight: Floats, active: Mask) -> Floats:
    """Return each group's fair share [J]: its queue's part of the cluster, divided by weight among its active groups.

    `queue` [J] a row of `queue_weight` [Q], `weight` [J]; only `active` [J] groups count, others get 0.
    """
    wanted = np.where(active, weight, 0.0)
    inside = np.bincount(queue, weights=wanted, minlength=len(queue_weight))
    queues = np.where(inside > 0, queue_weight, 0.0)
    whole = queues.sum()
    if whole <= 0:
        return np.zeros(len(queue))
    return np.asarray(wanted / np.where(inside > 0, inside, 1.0)[queue] * queues[queue] / whole)


def owed(share: Floats, fair: Floats) -> Floats:
    """Return how far below its fair share each group is [J], as a part of it: 1 has nothing, 0 its share, below 0 more.

    Minus infinity where the fair share is 0.
    """
    below: Floats = np.divide(fair - share, fair, out=np.full(len(fair), -np.inf), where=fair > 0)
    return below


def first_in_line(owed: Floats, active: Mask, *, fairness: float) -> tuple[Mask, float]:
    """Return the groups to choose among [J], furthest below their share, and what the last is owed (Tetris, 3.4).

    They are the first ceil((1 - f) x |J|) of the active ones: at least one, if any is active; those that are owed as
    much as the last of them are in. Where all are in, nothing is too little.
    """
    waiting = owed[active]
    take = max(1, math.ceil((1.0 - fairness) * len(waiting) - 1e-9))
    if take >= len(waiting):
        return active, -math.inf
    waiting.partition(len(waiting) - take)
    least = float(waiting[len(waiting) - take])
    return np.asarray(active & (owed >= least)), least


def serve(deficit: Floats, fair: Floats, group: int, amount: float) -> Floats:
    """Return the deficits [J] after `group` got `amount` of the cluster (Graphene, 5.1).

    It loses amount x (1 - its fair share); every other group gains amount x its own. With the amount being the task's
    dominant share of the cluster this follows DRF; with a constant, slots.
    """
    after: Floats = deficit + amount * fair
    after[group] -= amount
    return after


def most_owed(deficit: Floats, active: Mask, *, kappa: float) -> Mask:
    """Return the groups to choose among [J] (Graphene, 5.1).

    That with the highest deficit alone (the first of equals) once it is `kappa` of the cluster or more, else all
    active.
    """
    if not active.any():
        return active
    highest = int(np.where(active, deficit, -np.inf).argmax())
    if deficit[highest] < kappa:
        return active
    only = np.zeros(len(active), dtype=np.bool_)
    only[highest] = True
    return only
