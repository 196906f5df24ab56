"""The last tasks before a barrier go first (Tetris, 3.5): little is taken from others, and a whole stage may begin."""

import numpy as np
from numpy.typing import NDArray


def last_before_barrier(
    finished: NDArray[np.float64], wanted: NDArray[np.float64], *, barrier: float
) -> NDArray[np.bool_]:
    """Return which classes are their stage's last tasks [C]: the part that has `finished` [C] is at least `barrier`.

    All that wait of a class take the part `wanted` [C] of the cluster. Where that is more than all, they are not few:
    others would wait while a part of a long stage runs. Every stage ends in a barrier or in its job's end, which counts
    as one. With `barrier` 1 nobody is preferred.
    """
    return np.asarray((finished >= barrier) & (wanted <= 1.0) & (barrier < 1.0))
