"""The last tasks before a barrier go first (Tetris, 3.5): little is taken from others, and a whole stage may begin."""

import numpy as np
from numpy.typing import NDArray


def last_before_barrier(finished: NDArray[np.float64], *, barrier: float) -> NDArray[np.bool_]:
    """Return which classes are their stage's last tasks [C]: the part that has `finished` [C] is at least `barrier`.

    Every stage ends in a barrier or in its job's end, which counts as one. With `barrier` 1 nobody is preferred.
    """
    return np.asarray((finished >= barrier) & (barrier < 1.0))
