"""Two runs of one workload compared, as the paper compares them (Tetris, 5.1): all in percent."""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats

SLOWED_PERCENT = 1.0
"""A job counts as slowed down if it took longer by more than this: less is the luck of ties."""


@dataclass(frozen=True, slots=True)
class Slowed:
    """The jobs that take longer than in the run compared with: how many, by how much in the mean and at worst."""

    percent: float
    mean: float
    worst: float


def improvement(baseline: float, ours: float) -> float:
    """Return 100 x (baseline - ours) / baseline: positive if ours is less; 0 where the baseline is 0."""
    return 100 * (baseline - ours) / baseline if baseline else 0.0


def job_changes(baseline: Floats, ours: Floats) -> Floats:
    """Return each job's improvement [J] in its time from arrival to end; a job that took no time did not change."""
    return np.where(baseline > 0, 100 * (baseline - ours) / np.where(baseline > 0, baseline, 1), 0.0)


def slowed(baseline: Floats, ours: Floats) -> Slowed:
    """Return how many jobs take longer in ours than in the baseline, both [J]."""
    by = -job_changes(baseline, ours)
    slower = by[by > SLOWED_PERCENT]
    if not len(slower):
        return Slowed(0.0, 0.0, 0.0)
    return Slowed(100 * len(slower) / len(by), float(slower.mean()), float(slower.max()))


def bound_share(baseline: float, ours: float, bound: float) -> float:
    """Return what part of the bound's gain over the baseline is ours, in percent; NaN where the bound gains nothing."""
    return 100 * (baseline - ours) / (baseline - bound) if baseline > bound else float("nan")
