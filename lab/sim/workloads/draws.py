"""Random draws that the workloads share: from a range, around a mean, and skewed quantities that go together."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats
from lab.sim.workloads.parameters import Range


def uniform(rng: np.random.Generator, bounds: Range) -> float:
    """Return a number between the bounds."""
    return float(rng.uniform(*bounds))


def durations(rng: np.random.Generator, count: int, mean: float, variation: float) -> Floats:
    """Return the seconds of `count` tasks, log-normal with this coefficient of variation; their mean is `mean`.

    The mean is exact, so that rate x duration over all tasks of a stage gives the bytes of the stage.
    """
    drawn = rng.lognormal(0.0, _sigma(variation), count)
    return np.asarray(drawn * (mean / drawn.mean()))


def skewed(
    scores: Floats, medians: Sequence[float], variations: Sequence[float], *, least: float, most: float
) -> Floats:
    """Return log-normal quantities [K] at these standard normal scores [K], each with its median and variation.

    None is below `least` or above `most` times its median, which makes the coefficients of variation smaller.
    """
    times = np.exp(_sigma(np.asarray(variations)) * scores)
    return np.asarray(np.asarray(medians) * np.clip(times, least, most))


def correlated(rng: np.random.Generator, correlation: Floats) -> Floats:
    """Return standard normal scores [K] with this correlation matrix [K, K] (a Gaussian copula)."""
    return np.asarray(np.linalg.cholesky(correlation) @ rng.standard_normal(len(correlation)))


def _sigma(variation: Floats | float) -> Floats:
    return np.asarray(np.sqrt(np.log1p(np.square(variation))))
