"""Idle room: what regular pods have reserved and do not use, and who gives it back when they do (UBIS, IV).

N nodes, R resources. All functions are pure; a use that was not measured is NaN, and is never taken for idle.
"""

import numpy as np

from extender.arrays import Floats, Mask, Rows

RAMP_UP_SECONDS = 30.0
"""A pod counts by what it is expected to use until a whole window lies after its start, and at least so long."""

LEAST_LOAD = 0.02
"""The part of a node's allocatable below which a load is not told from the difference of two measurements."""


def used(node: Floats, pods: Floats, system: Floats) -> Floats:
    """Return what is used of each node's allocatable [N, R].

    The larger of what its `pods` use and of what the whole `node` uses beyond what is set aside for the `system`
    (capacity - allocatable). NaN where neither was measured.
    """
    return np.fmax(np.maximum(node - system, 0.0), pods)


def load_besides_pods(node: Floats, pods: Floats, system: Floats, allocatable: Floats) -> Floats:
    """Return what each node uses of its allocatable that no pod accounts for [N, R] (Tetris, 4.1).

    0 where the `node` or its `pods` were not measured, and where it is less than `LEAST_LOAD` of what is `allocatable`:
    the two are measured at moments of their own, and never agree exactly.
    """
    load = node - system - pods
    return np.asarray(np.where(load > LEAST_LOAD * allocatable, load, 0.0))


def measured_whole(started: Floats, since: Floats | float, at: Floats | float) -> Mask:
    """Return which pods [P] a measurement from `since` to `at` ([P], or of all) holds whole (Tetris, 4.1).

    They started before its window, and `RAMP_UP_SECONDS` before its end at least. What is not known (NaN) is held by
    none.
    """
    return np.asarray((started + RAMP_UP_SECONDS <= at) & (started <= since))


def at_least_measured(expected: Floats, measured: Floats) -> Floats:
    """Return what young pods count [P, R]: what is `expected` of them, and no less than was `measured` already."""
    return np.maximum(expected, measured)


def ramped_up(measured: Floats, young: Floats, expected: Floats) -> Floats:
    """Return the use [N, R] with pods that were not measured for a whole window counted as `expected` [N, R].

    `young` [N, R] is what the measurement holds of these pods already; it counts once (Tetris, 4.1).
    """
    return np.maximum(measured - young, 0.0) + expected


def idle_room(used: Floats, allocatable: Floats, threshold: Floats) -> Floats:
    """Return what opportunistic pods may take of each node [N, R] (UBIS, algorithm 1, line 21).

    `threshold` [N] or [N, 1] is T_alloc, a part of `allocatable`. 0 where the use was not measured; infinite where a
    node does not limit a resource.
    """
    part, limited = np.reshape(threshold, (-1, 1)), np.isfinite(allocatable)
    room = part * np.where(limited, allocatable, 0.0) - used
    room = np.where(limited, room, np.where(part > 0, np.inf, 0.0))
    return np.asarray(np.maximum(np.where(np.isnan(room), 0.0, room), 0.0))


def over(used: Floats, allocatable: Floats, threshold: Floats) -> Floats:
    """Return by how much the use is over T_preempt x allocatable [..., R], 0 where it is not, or was not measured."""
    limited = np.isfinite(allocatable) & np.isfinite(threshold)
    limit = np.where(limited, allocatable, 0.0) * np.where(limited, threshold, 0.0)
    above = np.where(limited & ~np.isnan(used), used - limit, 0.0)
    return np.asarray(np.maximum(above, 0.0))


def to_free(waited: Floats, used: Floats, allocatable: Floats, *, at_most: float, floor: float) -> Floats:
    """Return how much CPU is to come free at once where regular pods wait for it [N], 0 where they do not.

    `waited` [N] is the part of the time for which the regular pod that waited longest did; `at_most` is borne. Where it
    was not measured (NaN) nothing comes free. It does not say how much is lacking. So a part `at_most` of what is
    allocatable comes free at once, and no more than is used above `floor` x allocatable: where less is used, they wait
    for something else.
    """
    above = np.where(np.isnan(used), 0.0, used - floor * allocatable)
    step = np.minimum(at_most * allocatable, above)
    return np.asarray(np.where(waited > at_most, np.maximum(step, 0.0), 0.0))


def smallest_set(over: Floats, use: Floats, lost: Floats, may_go: Mask) -> Rows | None:
    """Return whom to evict of a node's opportunistic pods [P]: as few as bring every resource under its threshold.

    `over` [R] is what is too much, `use` [P, R] what each pod was measured to use, `lost` [P] the work that each would
    lose, `may_go` [P] who may be evicted. Of sets of one size that with the least work lost is taken. None where even
    all together do not suffice: then nobody is evicted in vain, and the caller decides.

    Exact where one or two suffice, which is the usual case. Beyond that greedy: first who brings most of what is still
    too much, then whoever turns out not to be needed stays.
    """
    short = over > 0
    if not short.any():
        return np.empty(0, dtype=np.intp)
    able = may_go.nonzero()[0]
    # Whole amounts add up exactly, six sixths of one do not.
    gives, needed = np.where(np.isnan(use), 0.0, use)[np.ix_(able, short.nonzero()[0])], over[short]
    if (gives.sum(axis=0) < needed).any():
        return None
    work = lost[able]
    alone = (gives >= needed).all(axis=1)
    if alone.any():
        return np.asarray(able[[int(np.where(alone, work, np.inf).argmin())]])
    pairs = _best_pair(gives, needed, work)
    if pairs is not None:
        return np.asarray(able[pairs])
    return np.asarray(able[_greedy(gives, needed, work)])


def _best_pair(gives: Floats, needed: Floats, work: Floats) -> Rows | None:
    """Return the two that suffice with the least work lost; None where no two do."""
    best, least = None, np.inf
    for first in range(len(gives) - 1):
        enough = (gives[first] + gives[first + 1 :] >= needed).all(axis=1)
        cost = np.where(enough, work[first + 1 :] + work[first], np.inf)
        second = int(cost.argmin())
        if cost[second] < least:
            best, least = (first, first + 1 + second), float(cost[second])
    return None if best is None else np.array(best, dtype=np.intp)


def _greedy(gives: Floats, needed: Floats, work: Floats) -> Rows:
    """Return a set that suffices [k]: each brings most of what is still needed, then those not needed are left out."""
    lacking, chosen = needed, []
    left = np.ones(len(gives), dtype=np.bool_)
    while (lacking > 0).any() and left.any():
        brings = (np.minimum(gives, np.maximum(lacking, 0.0)) / needed).sum(axis=1)
        order = np.lexsort((work, -brings, ~left))
        chosen.append(int(order[0]))
        left[order[0]] = False
        lacking = lacking - gives[order[0]]
    whole = gives[chosen].sum(axis=0)
    kept = list(chosen)
    for pod in sorted(chosen, key=lambda pod: -work[pod]):
        if (whole - gives[pod] >= needed).all():
            kept.remove(pod)
            whole = whole - gives[pod]
    return np.array(kept, dtype=np.intp)
