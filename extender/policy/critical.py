"""Jobs that decide when everything is done: those whose own chain of stages is long beside all that is left.

Not in Tetris. Shortest remaining time leaves the largest jobs for the end, where their stages run one after the other
on an emptying cluster; Graphene (section 6) bounds a schedule by the same two, the critical path and the work. They go
before others, the longest chain first, but not before small jobs: those cost them next to nothing, and gain the most.
"""

import numpy as np
from numpy.typing import NDArray


def critical(path: NDArray[np.float64], left_seconds: float, *, tail: float) -> NDArray[np.bool_]:
    """Return which jobs [J] must not wait: their `path` [J] takes at least `tail` of the seconds that all work takes.

    With `tail` infinite nobody is critical.
    """
    return np.asarray(path >= tail * left_seconds)


def small(work: NDArray[np.float64], *, part: float) -> NDArray[np.bool_]:
    """Return the smallest jobs by remaining work [J], as many as together are at most this part of all work."""
    order = np.argsort(work, kind="stable")
    upto = np.cumsum(work[order])
    smallest = np.zeros(len(work), dtype=np.bool_)
    smallest[order] = upto <= part * upto[-1:]
    return smallest
