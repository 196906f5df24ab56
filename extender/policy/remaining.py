"""How much work a job has left: what shortest-remaining-time-first goes by (Tetris, 3.3.1)."""

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats


def work_by_resource(demand: Floats, duration: Floats, total: Floats) -> Floats:
    """Return how long one task of each stage keeps each resource of the whole cluster busy [S, R], in seconds.

    The sum over the resources is the work of a task: its seconds x the sum of its demand / the cluster's total.
    `demand` [S, R] with reading as disk-read, `duration` [S] seconds, `total` [R] the cluster's capacity. A dimension
    that the cluster has none of or does not limit takes no part.
    """
    per_unit = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(duration[:, np.newaxis] * demand * per_unit)


def remaining_work(work: Floats, left: NDArray[np.int64], job: NDArray[np.intp], jobs: int) -> Floats:
    """Return the remaining work of each job [J]: `work` per task [S] x tasks not yet ended [S], summed by `job` [S]."""
    return np.bincount(job, weights=work * left, minlength=jobs).astype(np.float64)
