"""The peak of what a node's pods will use, by what they have used; and the idle room that it leaves (T_alloc `auto`).

Peak prediction: Bashir and others, "Take it to the limit: peak prediction-driven resource overcommitment in
datacenters", EuroSys 2021, section 4. A node's peak is the larger of two predictions: the mean of its pods' total plus
N standard deviations of it, and the sum of its pods' percentiles; never more than pods may use. Ours are the floor
(never below what is used now) and the control of N by evictions.

The horizon is in neither formula: N has to cover it, so N is led by what comes of it. Pods that come later are in
neither: they count when they are there, or as the caller adds them. A pod that ends is taken to be followed by
its like.

N nodes, P pods, T samples, R resources. Nodes do not depend on each other, so they can be asked about in batches.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows

_ROUNDING = 1e-9

_NEWEST = 3
"""A pod of which none of so many last samples is known counts as expected: what is known of it is too old."""

CLASS_LEAST = 5
"""So many pods must have shown what they use before their class counts by it."""


@dataclass(frozen=True, slots=True)
class History:
    """What the pods on some nodes were measured to use.

    `use` [P, T, R]: the samples, NaN where a pod was not measured (it had not started, or a sample is missing).
    `node` [P]: the row of the pod's node. `expected` [P, R]: what a pod counts as while too little is known of it: what
    its class has used (`class_peaks`), else its demand. `most` [P, R]: what it can use at most, its limit; infinite
    where it has none.
    `present` [N, R]: what is used of the node now, NaN where that was not measured.
    """

    use: Floats
    node: Rows
    expected: Floats
    most: Floats
    present: Floats


@dataclass(frozen=True, slots=True)
class PeakTuning:
    """How peaks are predicted.

    `warm_up_seconds`: a pod of which samples reach back less far counts as expected (two hours, on SURF's jobs:
    docs/results/peaks.md). `step_seconds` is the time between two samples. `percentile`: the part of a pod's samples
    that its percentile covers, and the part of a class's pods that its peak covers.
    """

    warm_up_seconds: float = 7_200.0
    step_seconds: float = 300.0
    percentile: float = 0.99


@dataclass(frozen=True, slots=True)
class SigmaRule:
    """How N is led. `budget`: evictions that are accepted in a period; any unit, the same as what is counted.

    N starts at `start` and stays between `least` and `most`. In a period without evictions it falls by `fall`, with
    twice the budget it rises by as much, and so on in proportion, by `rise` at most.
    """

    budget: float
    start: float = 5.0
    least: float = 1.0
    most: float = 10.0
    rise: float = 1.0
    fall: float = 0.1


def sigma_peak(history: History, sigmas: Floats | float, tuning: PeakTuning) -> Floats:
    """Return the peak of each node [N, R] as mean + N sigma of the total of its pods (EuroSys 2021, 4).

    `sigmas` (N) is one number, or one for each node [N]. Pods in warm-up count as expected, on top. Where a pod has no
    sample but others have, its own mean stands for it, so that a pod that has just come is no jump of the total.
    """
    warm = is_warm(history.use, tuning)
    measured = ~np.isnan(history.use)
    counts = np.maximum(measured.sum(axis=1), 1)
    mean = np.where(measured, history.use, 0.0).sum(axis=1) / counts
    use = np.where(measured, history.use, mean[:, np.newaxis]) * warm[:, np.newaxis]
    total = _by_node(history, use)
    samples = max(total.shape[1], 1)
    centre = total.sum(axis=1) / samples
    deviation = np.sqrt(((total - centre[:, np.newaxis]) ** 2).sum(axis=1) / samples)
    unknown = _by_node(history, np.where(warm, 0.0, history.expected))
    return _bounded(history, centre + np.reshape(sigmas, (-1, 1)) * deviation + unknown)


def percentile_peak(history: History, tuning: PeakTuning) -> Floats:
    """Return the peak of each node [N, R] as the sum of its pods' percentiles (EuroSys 2021, 4).

    A pod's percentile is the least of its samples that this part of them does not pass: a use that was measured. Pods
    in warm-up count as expected.
    """
    warm = is_warm(history.use, tuning)
    if not warm.any():
        return _bounded(history, _by_node(history, history.expected))
    ordered = np.sort(history.use, axis=1)  # NaN is last
    counts = (~np.isnan(history.use)).sum(axis=1)
    places = np.maximum(np.ceil(tuning.percentile * counts - _ROUNDING).astype(np.intp) - 1, 0)
    percentile = np.take_along_axis(ordered, places[:, np.newaxis], axis=1)[:, 0]
    return _bounded(history, _by_node(history, np.where(warm, percentile, history.expected)))


def peak(history: History, sigmas: Floats | float, tuning: PeakTuning) -> Floats:
    """Return the peak of each node [N, R]: the larger of both predictions (EuroSys 2021, 4)."""
    return np.maximum(sigma_peak(history, sigmas, tuning), percentile_peak(history, tuning))


def auto_room(allocatable: Floats, predicted: Floats) -> Floats:
    """Return what opportunistic pods may take of each node [N, R]: what the predicted peak leaves of `allocatable`.

    As `slack.idle_room`: 0 where nothing was predicted (NaN), infinite where a node does not limit a resource.
    """
    room = np.where(np.isfinite(allocatable), allocatable, 0.0) - predicted
    room = np.maximum(np.where(np.isnan(room), 0.0, room), 0.0)
    return np.where(np.isfinite(allocatable), room, np.inf)


def next_sigmas(sigmas: Floats, evictions: Floats, rule: SigmaRule) -> Floats:
    """Return N for the next period [...], after one with so many `evictions` [...].

    N changes by `fall` times (evictions / budget - 1), and rises by `rise` at most: evictions beyond 1 + rise / fall
    budgets (11 by default) raise it no further. So over time there are as many evictions as the budget has, unless N
    stays at its most: then prediction alone cannot keep the budget. Without a budget (0) one eviction is too many, and
    N rises by all of `rise`.
    """
    excess = evictions / max(rule.budget, _ROUNDING) - 1.0
    return np.clip(sigmas + np.minimum(rule.fall * excess, rule.rise), rule.least, rule.most)


def is_warm(use: Floats, tuning: PeakTuning) -> Mask:
    """Return of which pods [P, R] enough is known by their samples [P, T, R].

    The first is as old as the warm-up, half of those since are there, and one of the newest is.
    """
    measured = ~np.isnan(use)
    if not measured.shape[1]:
        return np.zeros((len(use), use.shape[2]), dtype=np.bool_)
    samples = measured.shape[1] - measured.argmax(axis=1)
    needed = max(tuning.warm_up_seconds / tuning.step_seconds, 1.0)
    counts = measured.sum(axis=1)
    return np.asarray((samples >= needed - _ROUNDING) & (counts >= needed / 2) & measured[:, -_NEWEST:].any(axis=1))


def class_peaks(most: Floats, task_class: Rows, says: Mask, classes: int, tuning: PeakTuning) -> Floats:
    """Return what nearly all pods of each class never passed [C, R]: the percentile of the largest use of each.

    `most` [P, R] is the largest sample of each pod, NaN where there is none; `task_class` [P] its class. `says` [P]:
    whether a pod has shown all that it uses: it has ended, or is out of its warm-up. A class of which fewer than
    `CLASS_LEAST` do so is not known (NaN): those that run may still grow. What they have used already counts.
    """
    peaks = np.full((classes, most.shape[1]), np.nan)
    for column in range(most.shape[1]):  # R, not P
        known = ~np.isnan(most[:, column])
        shown = np.bincount(task_class[known & says], minlength=classes)
        counts = np.bincount(task_class[known], minlength=classes)
        order = np.lexsort((most[known, column], task_class[known]))
        place = np.cumsum(counts) - counts + np.ceil(tuning.percentile * counts - _ROUNDING).astype(np.intp) - 1
        enough = shown >= CLASS_LEAST
        peaks[enough, column] = most[known, column][order][place[enough]]
    return peaks


def _bounded(history: History, predicted: Floats) -> Floats:
    """Return a prediction [N, R] that is at most what the pods may use, and at least what is used now."""
    return np.maximum(np.minimum(predicted, _by_node(history, history.most)), history.present)


def _by_node(history: History, amounts: Floats) -> Floats:
    """Return the sums of pods' amounts [P, ...] for each node [N, ...]; 0 for a node without pods."""
    sums = np.zeros((len(history.present), *amounts.shape[1:]))
    order = np.argsort(history.node, kind="stable")
    rows, starts = np.unique(history.node[order], return_index=True)
    if len(rows):
        sums[rows] = np.add.reduceat(amounts[order], starts, axis=0)
    return sums
