"""Whose turn it is: shares, fair shares, and the fairness knob.

Groups are the jobs [J] of weighted queues [Q]: a queue's fair share is divided among its jobs that want something.
Queues may have minimum shares, and parents: `parent` [Q] is the row of each one's, -1 for none; those of one parent are
siblings.
"""

import math

import numpy as np

from extender.arrays import Floats, Mask, Rows

_ROUNDING = 1e-9


def dominant_shares(allocated: Floats, total: Floats) -> Floats:
    """Return each group's largest share of any dimension [..., J], in [0, 1] (DRF).

    `allocated` [..., J, R], `total` [R]. A dimension that the cluster has none of or does not limit takes no part.
    """
    return dominant(parts(allocated, total))


def parts(amounts: Floats, total: Floats) -> Floats:
    """Return amounts as parts of the cluster [..., R]: 0 of a dimension that it has none of or does not limit."""
    return np.asarray(amounts / np.where(total > 0, total, np.inf))


def dominant(parts: Floats) -> Floats:
    """Return the largest of what are parts of the cluster already [..., R], 0 at least."""
    return np.asarray(parts.max(axis=-1, initial=0.0))


def dominant_of_one(parts: Floats) -> float:
    """Return the same for one group [R], quickly: a plan asks at every start."""
    largest: float = max(0.0, *parts.tolist())
    return largest


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


def queue_shares(weight: Floats, minimum: Floats, parent: Rows, active: Mask) -> Floats:
    """Return the fair share of each queue that is active and nobody's parent [Q], 0 for others; in all 1, if any is.

    It is a queue's part of the cluster where all active queues want all of it. Raises ValueError where parents go round
    in a circle.
    """
    leaf = np.ones(len(parent), dtype=np.bool_)
    leaf[parent[parent >= 0]] = False
    part = parts_as_wanted(weight, minimum, parent, np.where(active & leaf, np.inf, 0.0))
    return np.where(leaf, part, 0.0)  # what parents have is their children's


def parts_as_wanted(weight: Floats, minimum: Floats, parent: Rows, wanted: Floats) -> Floats:
    """Return each group's part of the cluster [G]: by weight, none below its minimum, none more than it wants.

    `wanted` [G] is what each queue has and wants besides, as a share; of parents it is added up. What one does not want
    its siblings divide (max-min fairness with weights and minimums). All that is wanted is given where it adds up to
    less than there is. Minimums that siblings want and that together exceed their parent's part are scaled down to it.
    With no weight left, those without one divide the rest alike. Raises ValueError where parents go round in a circle.
    """
    if not np.count_nonzero(parent >= 0):  # all are siblings
        return _divided(weight, minimum, wanted, 1.0)
    wanted, depth = wanted.copy(), _depths(parent)
    for level in range(depth.max(initial=0), 0, -1):
        rows = (depth == level).nonzero()[0]
        np.add.at(wanted, parent[rows], wanted[rows])
    part = np.zeros(len(weight))
    for level in range(depth.max(initial=-1) + 1):
        rows = (depth == level).nonzero()[0]
        for above in np.unique(parent[rows]).tolist():
            siblings = rows[parent[rows] == above]
            whole = 1.0 if above < 0 else part.item(above)
            part[siblings] = _divided(weight[siblings], minimum[siblings], wanted[siblings], whole)
    return part


def _divided(weight: Floats, minimum: Floats, wanted: Floats, whole: float) -> Floats:
    """Return the parts of siblings [k]: min(wanted, max(minimum, level x weight)), at the level that gives out all.

    What is given out grows with the level: by a sibling's weight from where it passes its minimum up to what it wants.
    """
    least = np.minimum(minimum, wanted)
    asked = float(least.sum())
    if asked > whole:
        return np.asarray(least * (whole / asked))
    wanted = np.minimum(wanted, whole)
    if float(wanted.sum()) <= whole:
        return wanted
    growing = weight > 0
    starts, ends = least[growing] / weight[growing], wanted[growing] / weight[growing]
    levels = np.concatenate((starts, ends))
    slopes = np.concatenate((weight[growing], -weight[growing]))
    order = np.argsort(levels, kind="stable")
    levels, slopes = levels[order], np.cumsum(slopes[order])
    given = asked + np.concatenate(([0.0], np.cumsum(slopes[:-1] * np.diff(levels))))
    if given[-1] <= whole:  # the rest is for those without a weight, as if they had one alike
        part, rest = np.where(growing, wanted, least), ~growing
        left = max(whole - float(part[growing].sum()), 0.0)
        if rest.any():
            part[rest] = _divided(np.ones(len(part))[rest], least[rest], wanted[rest], left)
        return part
    place = int(np.searchsorted(given, whole, side="left")) - 1  # from here to the next level enough is given out
    level = levels[place] + (whole - given[place]) / slopes[place] if place >= 0 else levels[0]
    return np.asarray(np.clip(level * weight, least, wanted))


def scaled_minimums(minimum: Floats, parent: Rows) -> tuple[Floats, bool]:
    """Return the minimum shares [Q], those of siblings scaled down to 1 where they add up to more, and if any were."""
    group = np.where(parent < 0, len(parent), parent)
    asked = np.bincount(group, weights=minimum, minlength=len(parent) + 1)
    too_much = asked > 1.0 + _ROUNDING
    return minimum / np.where(too_much, asked, 1.0)[group], bool(too_much.any())


def owed(share: Floats, fair: Floats) -> Floats:
    """Return how far below its fair share each group is [J], as a part of it: 1 has nothing, 0 its share, below 0 more.

    Minus infinity where the fair share is 0.
    """
    below: Floats = np.divide(fair - share, fair, out=np.full(len(fair), -np.inf), where=fair > 0)
    return below


def first_in_line(owed: Floats, active: Mask, *, fairness: float) -> tuple[Mask, float]:
    """Return the groups to choose among [J], furthest below their share, and what the last is owed (Tetris, 3.4).

    In the paper they are the first ceil((1 - f) x |J|) of the active ones. Here |J| counts those that have something
    (are owed less than 1), and the first that has nothing: where all have something, that is the same. With many more
    groups than can run at a time, the paper's part of all groups would leave out everyone who runs, and all would be
    served in turn, one task each.
    Those that are owed as much as the last of them are in. Where all are in, nothing is too little.
    """
    waiting = owed[active]
    counted = min(int(np.count_nonzero(waiting < 1.0)) + 1, len(waiting))
    take = max(1, len(waiting) - math.floor(fairness * counted + 1e-9))
    if take >= len(waiting):
        return active, -math.inf
    waiting.partition(len(waiting) - take)
    least = float(waiting[len(waiting) - take])
    return np.asarray(active & (owed >= least)), least


def _depths(parent: Rows) -> Rows:
    """Return how many parents are above each queue [Q]."""
    depth = np.zeros(len(parent), dtype=np.intp)
    above = parent
    while (above >= 0).any():
        depth += above >= 0
        if depth.max() >= len(parent):
            raise ValueError(f"the parents of these queues go round in a circle: rows {np.flatnonzero(above >= 0)}")
        above = np.where(above >= 0, parent[above], -1)
    return depth
