"""Waiting a little for locality (Delay Scheduling), and what reading from elsewhere costs a score (Tetris, 3.2).

Level 0 is the node that has the input, 1 its rack, and so on; the last is anywhere. `waits` [K] are the seconds for
which a job may be passed over at each level but the last, K. Symbols of the analysis: N tasks, M nodes, R replicas of
each block, D how often a job is passed over at room without its input before it takes it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Floats

_SAME_SECONDS = 1e-6
"""Waits that are over this soon are over: sums of time are not exact."""


def remote_factor(remote: NDArray[np.bool_], *, penalty: float) -> Floats:
    """Return what the alignment is multiplied by [C]: 1, or 1 - `penalty` where it would read from elsewhere."""
    return np.where(remote, 1.0 - penalty, 1.0)


def penalised(scores: Floats, factor: Floats) -> Floats:
    """Return scores with the factor of `remote_factor` applied [C]: those below 0 get lower by it, too."""
    lower: Floats = scores * factor
    negative = scores < 0
    if np.count_nonzero(negative):
        lower[negative] = scores[negative] / factor[negative]
    return lower


def level_now(level: Counts, waited: Floats, waits: Floats) -> Counts:
    """Return the farthest level at which each job may start now [J], in 0 .. K (algorithm 3).

    `level` [J] is the level of its last start (0 at first), `waited` [J] for how long it was passed over since,
    `waits` [J, K] its waits, 0 where it has nothing to wait for.
    """
    ends = _ends(waits)
    over = ends[np.arange(len(level)), level] + waited + _SAME_SECONDS
    return np.asarray((ends <= over[:, np.newaxis]).sum(axis=1) - 1)


def seconds_to_next(level: Counts, waited: Floats, waits: Floats) -> Floats:
    """Return for how long each job must still be passed over to get farther [J]; infinite at the last level."""
    ends = np.append(_ends(waits), np.full((len(level), 1), np.inf), axis=1)
    rows = np.arange(len(level))
    return np.asarray(ends[rows, level_now(level, waited, waits) + 1] - ends[rows, level] - waited)


def expected_locality(skips: float, *, tasks: int, nodes: int, replicas: int) -> float:
    """Return the part of a job's tasks that start beside their input at least, if it lets `skips` chances pass (3.5).

    The mean over K = 1 .. N tasks left of 1 - exp(-R D K / M).
    """
    left = np.arange(1, tasks + 1)
    return float(1.0 - np.exp(-replicas * skips * left / nodes).mean())


def least_locality(skips: float, *, tasks: int, nodes: int, replicas: int) -> float:
    """Return the closed form of the same (3.5): 1 - q / (N (1 - q)) with q = exp(-R D / M). Below it for small jobs.

    It is what equation 2 solves; never below 0.
    """
    miss = math.exp(-replicas * skips / nodes)
    return max(0.0, 1.0 - miss / (tasks * (1.0 - miss))) if miss < 1.0 else 0.0


def skips_for(target: float, *, tasks: int, nodes: int, replicas: int) -> float:
    """Return the chances D that a job must let pass to reach a target locality in [0, 1) (equation 2); none for 0."""
    if target <= 0.0:
        return 0.0
    missed = (1.0 - target) * tasks
    return -nodes / replicas * math.log(missed / (1.0 + missed))


def rate_of_room(slots: float, task_seconds: float) -> float:
    """Return how many slots free up per second where all are busy: S / T (3.2)."""
    return slots / task_seconds


def wait_for(skips: float, rate: float) -> float:
    """Return the seconds in which so many chances come by, at `rate` of them per second (3.5, 4.1)."""
    return skips / rate


def skips_in(wait: float, rate: float) -> float:
    """Return how many chances come by in these seconds."""
    return wait * rate


def _ends(waits: Floats) -> Floats:
    """Return after how many seconds from level 0 each level is reached [J, K + 1]."""
    return np.append(np.zeros((len(waits), 1)), np.cumsum(waits, axis=1), axis=1)
