"""The chances that a job lets pass under Delay Scheduling, where it waits as long as it takes."""

import numpy as np


def skips_in_all(*, tasks: int, nodes: int, replicas: int) -> float:
    """Return how many chances a job lets pass until all its tasks have started beside their input (3.5).

    With K left a chance has the input of one with p = 1 - exp(-R K / M), so that 1 / p - 1 pass before it: the sum
    over K = 1 .. N. It is for a job that is always first in turn and waits as long as it takes.
    """
    left = np.arange(1, tasks + 1)
    return float((1.0 / -np.expm1(-replicas * left / nodes) - 1.0).sum())
