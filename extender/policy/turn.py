"""Whose turn it is between queues: the order in which freed room is offered, and how much each may have.

Groups [G] are queues and those above them; `parent` [G] is the row of each one's, -1 for none. Shares are parts of the
cluster (dominant shares, DRF). A minimum is a part of the whole cluster, a weight counts among siblings.
"""

import numpy as np

from extender.arrays import Floats, Rows

ROUNDING = 1e-9


def sibling_keys(share: Floats, held: Floats, weight: Floats, minimum: Floats) -> Floats:
    """Return the order among siblings [G]: who has the least key is offered freed room first.

    Below 0 for those below their minimum, by how much of it they have; for the others what they have by their weight.
    `share` [G] is what they have; `held` [G] the same with what they save for one large task.
    """
    below = share < minimum - ROUNDING
    of_minimum = np.divide(share, minimum, out=np.zeros_like(share), where=below)
    by_weight = np.divide(held, weight, out=np.full_like(share, np.inf), where=weight > 0)
    return np.where(below, of_minimum - 1.0, by_weight)


def leaf_ranks(keys: Floats, parent: Rows, leaf: Rows) -> Floats:
    """Return the order of the queues [Q] (rows `leaf` of the groups): first by their highest parents' keys [G], ...

    Without parents these are the keys themselves, so that equal keys are equal; else ranks.
    """
    if not (parent[leaf] >= 0).any():
        return keys[leaf]
    paths = [leaf]
    while (parent[paths[-1]] >= 0).any():
        paths.append(np.where(parent[paths[-1]] >= 0, parent[paths[-1]], paths[-1]))
    below_first = []
    for path in paths:  # a shorter chain repeats its top: equal keys there decide nothing
        below_first += [path, keys[path]]
    ranks = np.empty(len(leaf))
    ranks[np.lexsort(below_first)] = np.arange(len(leaf))
    return ranks


def parts_as_wanted(weight: Floats, minimum: Floats, parent: Rows, wanted: Floats) -> Floats:
    """Return each group's part of the cluster [G]: by weight, none below its minimum, none more than it wants.

    `wanted` [G] is what each queue has and wants besides, as a share; of parents it is added up. What one does not want
    its siblings divide (max-min fairness with weights and minimums). All that is wanted is given where it adds up to
    less than there is.
    """
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
    wanted = np.minimum(wanted, whole)
    least = np.minimum(minimum, wanted)
    asked = float(least.sum())
    if asked > whole:
        return np.asarray(least * (whole / asked))
    if float(wanted.sum()) <= whole:
        return wanted
    growing = weight > 0
    starts, ends = least[growing] / weight[growing], wanted[growing] / weight[growing]
    levels = np.concatenate((starts, ends))
    slopes = np.concatenate((weight[growing], -weight[growing]))
    order = np.argsort(levels, kind="stable")
    levels, slopes = levels[order], np.cumsum(slopes[order])
    given = asked + np.concatenate(([0.0], np.cumsum(slopes[:-1] * np.diff(levels))))
    if not len(levels) or given[-1] <= whole:  # the rest is for those without a weight, as if they had one alike
        part, rest = np.where(growing, wanted, least), ~growing
        left = max(whole - float(part[growing].sum()), 0.0)
        if rest.any():
            part[rest] = _divided(np.ones(len(part))[rest], least[rest], wanted[rest], left)
        return part
    place = int(np.searchsorted(given, whole, side="left")) - 1  # from here to the next level enough is given out
    level = levels[place] + (whole - given[place]) / slopes[place] if place >= 0 else levels[0]
    return np.asarray(np.clip(level * weight, least, wanted))


def _depths(parent: Rows) -> Rows:
    """Return how many groups are above each [G]."""
    depth, above = np.zeros(len(parent), dtype=np.intp), parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return depth
