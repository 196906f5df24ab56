"""How well idle room suits a class of tasks: short ones, and those that are seldom evicted (UBIS, VII)."""

import numpy as np

from extender.arrays import Floats


def suitability(seconds: Floats, evicted: Floats) -> Floats:
    """Return the mean of brevity and of the part that is not evicted [C], in [0, 1].

    `seconds` [C] is what a task is expected to take, `evicted` [C] which part of its starts on idle room was evicted.
    Brevity is 1/2 at the median of the known durations, and 0 where nothing is known: it has no unit of its own.
    """
    known = np.isfinite(seconds)
    usual = float(np.median(seconds[known])) if known.any() else 0.0
    scale = usual + np.where(known, seconds, 0.0)
    brevity = np.where(known, np.where(scale > 0, usual / np.where(scale > 0, scale, 1.0), 1.0), 0.0)
    return np.asarray((brevity + 1.0 - evicted) / 2.0)
