"""How far the order of a job's DAG counts beside packing (Graphene, 5: priScore)."""

import numpy as np

from extender.arrays import Floats


def order_factor(priority: Floats, *, rank: float) -> Floats:
    """Return what the alignment of a job's classes is multiplied by [C], in (0, 1]: 1 for its first waiting task.

    `priority` [C], in (0, 1], is that of each class's next task in the job's order, minus infinity where none waits.
    The paper multiplies by the priority itself. That lets jobs that begin pass jobs that end, so here it counts by how
    far it is behind the job's first waiting task. `rank` in [0, 1] is how much it counts; with 0 every factor is 1.
    """
    waits = np.isfinite(priority)
    behind = np.where(waits, priority.max(initial=-np.inf) - np.where(waits, priority, 0.0), 0.0)
    return np.asarray(1.0 - rank * behind)
