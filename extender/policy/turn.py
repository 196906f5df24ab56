"""Whose turn it is between queues: the order in which freed room is offered.

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
