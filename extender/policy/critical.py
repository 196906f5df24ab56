"""Jobs that decide when everything is done: those whose own chain of stages is long beside all that is left.

Not in Tetris. Shortest remaining time leaves the largest jobs for the end, where their stages run one after the other
on an emptying cluster; Graphene (section 6) bounds a schedule by the same two, the critical path and the work. They go
before others, the longest chain first, but not before small jobs: those cost them next to nothing, and gain the most.
A job of which no stage waits for another has no chain, but where its few tasks take long it comes last all the same:
it counts as a chain of one task if it is thin, which is to say that others hardly notice whether it runs. What is small
is settled anew as work ends, so there are small jobs to the end: where such a job takes as long as all that is left, it
is urgent, and waits for nobody.
"""

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats

_THIN = 0.05
"""The part of the cluster that a thin job takes, in the mean, if it runs for as long as its longest task."""

_URGENT = 0.1
"""The part of the cluster that urgent jobs take together at most, with tasks as long that run."""


def chain_seconds(path: Floats, longest: Floats, work: Floats) -> Floats:
    """Return the seconds that each job still takes, however much it is given [J]; 0 where more machines help.

    `path` [J] is the longest chain of its stages, 0 where no stage waits for another; `longest` [J] the seconds of its
    longest task, of those that are open; `work` [J] its remaining work (policy.remaining).
    """
    return np.where(path > 0, path, np.where(work <= _THIN * longest, longest, 0.0))


def critical(chain: Floats, left_seconds: float, *, tail: float) -> NDArray[np.bool_]:
    """Return which jobs [J] must not wait: their `chain` [J] takes at least `tail` of the seconds that all work takes.

    With `tail` infinite nobody is critical.
    """
    return np.asarray(chain >= tail * left_seconds)


def small(work: Floats, *, part: float) -> NDArray[np.bool_]:
    """Return the smallest jobs by remaining work [J], as many as together are at most this part of all work."""
    order = np.argsort(work, kind="stable")
    upto = np.cumsum(work[order])
    smallest = np.zeros(len(work), dtype=np.bool_)
    smallest[order] = upto <= part * upto[-1:]
    return smallest


def urgent(longest: Floats, work: Floats, left_seconds: float, *, taken: float) -> NDArray[np.bool_]:
    """Return which jobs [J] end last unless they start now: they take as long as all that is left keeps all busy.

    `longest` [J] is the seconds of the longest task of each job that is no chain of stages, 0 for the others; `work`
    [J] the remaining work. The longest go first, as many as together take a tenth of the cluster; running tasks of at
    least `left_seconds` have `taken` a part of that. All parts are sums over resources, as remaining work is.
    """
    part = np.divide(work, longest, out=np.full(len(work), np.inf), where=longest > 0)
    late = (longest >= left_seconds) & (part <= _URGENT)
    order = np.argsort(-longest, kind="stable")
    first = np.zeros(len(late), dtype=np.bool_)
    first[order] = taken + np.cumsum(np.where(late, part, 0.0)[order]) <= _URGENT
    return np.asarray(late & first)
