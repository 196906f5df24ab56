"""What reading from elsewhere costs a placement's score (Tetris, 3.2)."""

import numpy as np
from numpy.typing import NDArray


def remote_factor(remote: NDArray[np.bool_], *, penalty: float) -> NDArray[np.float64]:
    """Return what the alignment is multiplied by [C]: 1, or 1 - `penalty` where it would read from elsewhere."""
    return np.where(remote, 1.0 - penalty, 1.0)
