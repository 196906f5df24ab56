"""Whose turn it is, between queues and between the jobs of one: the order in which freed room is offered.

Groups [G] are queues and those above them; `parent` [G] is the row of each one's, -1 for none. Shares are parts of the
cluster (dominant shares, DRF). A minimum is a part of the whole cluster, a weight counts among siblings.
"""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats, Mask, Rows

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


def loosened(keys: Floats, weight: Floats, *, kappa: float) -> Floats:
    """Return the keys [G] as if each had `kappa` of the cluster less; who is below its minimum stays before all others.

    Whoever has a loosened key of at most the least key of its siblings is at most `kappa` ahead of that one's share by
    weight: the counter of Graphene (5.1), kept in what is held now.
    """
    less = np.divide(kappa, weight, out=np.zeros_like(keys), where=weight > 0)
    return np.where(keys >= 0, np.maximum(keys - less, 0.0), keys)


def first_of_siblings(
    keys: Floats, loose: Floats, parent: Rows, paths: Sequence[Rows], queue: Rows, pool: Mask
) -> Mask:
    """Return those of the `pool` [k], of queues `queue` [k], whose turn it may be.

    Who is furthest below a minimum goes before all. Then, from the top down, each of a queue's groups must have a
    loosened key (`loose` [G]) of at most the least of the `keys` [G] of its siblings that have somebody in the pool.
    `paths` are the groups of each queue [Q], the highest first.
    """
    groups = [path[queue] for path in paths]
    first = _furthest_below_minimum(keys, groups, pool)
    for group in groups:
        first = near_the_least(keys[group], loose[group], parent[group] + 1, first)
    return first


def first_by_rank(keys: Floats, paths: Sequence[Rows], queue: Rows, pool: Mask) -> Mask:
    """Return those of the `pool` [k], of queues `queue` [k], whose queue comes first by `leaf_ranks`.

    It looks at the queues of the pool alone, and sorts nothing: a plan asks at every start. `paths` are the groups of
    each queue [Q], the highest first.
    """
    groups = [path[queue] for path in paths]
    first = _furthest_below_minimum(keys, groups, pool)
    for group in groups:
        first = least(keys[group], first)
        first = least(np.where(group == groups[-1], -1, group), first)
    return first


def _furthest_below_minimum(keys: Floats, groups: Sequence[Rows], pool: Mask) -> Mask:
    """Return those of the `pool` [k] furthest below a minimum, their own or of a group above; all where nobody is.

    `groups` are their groups [k], level by level.
    """
    return least(np.minimum(np.min([keys[group] for group in groups], axis=0), 0.0), pool)


def least(keys: Floats | Rows, pool: Mask) -> Mask:
    """Return those of the `pool` [k] that have the least of its keys [k]."""
    return np.asarray(pool & (keys <= np.where(pool, keys, np.inf).min(initial=np.inf)))


def near_the_least(keys: Floats, loose: Floats, family: Rows, pool: Mask) -> Mask:
    """Return those of the `pool` [k] whose loosened key [k] is at most the least of the keys [k] in their `family` [k].

    Only the keys of the pool count. A family is any number from 0.
    """
    least = np.full(family.max(initial=-1) + 1, np.inf)
    np.minimum.at(least, family[pool], keys[pool])
    return np.asarray(pool & (loose <= least[family]))


def paths_from_top(parent: Rows, leaf: Rows) -> list[Rows]:
    """Return the groups above each queue [Q] and its own, level by level, the highest first.

    A shorter chain repeats the queue's own group: so siblings are on one level, however much is below them.
    """
    upwards = [leaf]
    while (parent[upwards[-1]] >= 0).any():
        upwards.append(np.where(parent[upwards[-1]] >= 0, parent[upwards[-1]], upwards[-1]))
    if len(upwards) == 1:  # the usual case: there are only queues
        return upwards
    chains, queue = np.array(upwards), np.arange(len(leaf))
    depth = np.count_nonzero(np.diff(chains, axis=0), axis=0)
    return [chains[np.maximum(depth - level, 0), queue] for level in range(len(upwards))]


def leaf_ranks(keys: Floats, parent: Rows, leaf: Rows) -> Floats:
    """Return the order of the queues [Q] (rows `leaf` of the groups): first by their highest parents' keys [G], ...

    Before that by who is below its minimum, or has a group above that is: a minimum is a part of the whole cluster.
    Without parents these are the keys themselves, else ranks: equal for equal keys of queues below one parent.
    """
    if not (parent[leaf] >= 0).any():
        return keys[leaf]
    below_first: list[Floats | Rows] = []
    paths = paths_from_top(parent, leaf)
    for path in paths[::-1]:  # what is below groups with equal keys stays together
        below_first += [np.where(path == leaf, -1, path), keys[path]]
    below_first.append(np.minimum(keys[np.array(paths)].min(axis=0), 0.0))
    order = np.lexsort(below_first)
    steps = np.any([column[order][1:] != column[order][:-1] for column in below_first], axis=0)  # they may be infinite
    ranks = np.empty(len(leaf))
    ranks[order] = np.concatenate(([0.0], np.cumsum(steps)))
    return ranks
