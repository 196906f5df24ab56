"""Scores to the eleven levels that kube-scheduler takes from an extender.

kube-scheduler breaks ties at random, so a level is worth most where it tells the best nodes apart.
Scaling scores to 0..10 would put a close field on one level. Levels by rank do not: the best node
has one of its own, and each level below holds twice as many nodes as the one above.
"""

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Floats, Mask

BEST = 10
"""kube-scheduler's MaxExtenderPriority; the worst is 0."""

_LAST_RANKS = (1 << np.arange(BEST)) - 1
"""The last rank of levels 10, 9, ... 1: 0, 1, 3, 7, ... 511."""

_SAME_SCORE = 1e-9
_SAME_FULLNESS = 1e-6
"""Closer than this is the noise of adding floats in another order."""

_FURTHEST = float(1 << 40)
"""Scores beyond this many steps from zero (minus infinity, say) are all the same."""


def levels(scores: Floats, fullness: Floats, *, step: float, strands: Counts | None = None) -> NDArray[np.int64]:
    """Return a level 0..10 per node [N], the best 10.

    Nodes are ordered by what the pod strands there, if that is said, the least first; then by score, in whole steps,
    then by fullness (0..1), the higher first. The rank r
    of a node is the number of nodes strictly before it, so ties share one; its level is
    10 - ceil(log2(r + 1)), at least 0: ranks 0, 1, 2-3, 4-7, ... get 10, 9, 8, 7, ...

    `step` is in units of the score: scores that round to the same multiple of it are equal, and
    then the fuller node wins. All rules divide by capacity, so a dimension adds at most 1 to a score
    and a step means about as much for each: at 0.05, a twentieth of the largest node in one
    dimension (for `cosine`, a twentieth of its range). With 0 nothing is rounded.
    """
    if not scores.size:
        return np.empty(0, dtype=np.int64)
    places = ordinals(scores, fullness, max(step, _SAME_SCORE))
    if strands is not None and strands.min() != strands.max():
        places = _behind(strands, places)
    leading = min(places.size, int(_LAST_RANKS[-1]) + 1)
    first = np.sort(np.partition(places, places.size - leading)[-leading:])
    last = first[np.maximum(leading - 1 - _LAST_RANKS, 0)]
    return np.searchsorted(last[::-1], places, side="right").astype(np.int64)


def best(scores: Floats, fullness: Floats, *, step: float, strands: Counts | None = None) -> Mask:
    """Return which nodes [N] come first, by the order of `levels`: all those that share level 10."""
    if not scores.size:
        return np.zeros(0, dtype=np.bool_)
    places = ordinals(scores, fullness, max(step, _SAME_SCORE))
    if strands is None:
        return np.asarray(places == places.max())
    least = strands == strands.min()
    return np.asarray(least & (places == places[least].max()))


def _behind(strands: Counts, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one integer per node that orders by what is stranded, the least first, then as `places` do."""
    least, most = int(places.min()), int(places.max())
    span, steps = most - least + 1, int(strands.max()) - int(strands.min()) + 1
    if span * steps >= 1 << 62:  # scores of any size, minus infinity among them: count places instead
        places, least, span = np.unique(places, return_inverse=True)[1], 0, places.size
    return np.asarray((places - least) - strands * span)


def ordinals(scores: Floats, fullness: Floats, step: float) -> NDArray[np.int64]:
    """Return one integer per node that orders by rounded score, then by fullness."""
    steps = np.minimum(np.maximum(np.rint(scores / step), -_FURTHEST), _FURTHEST).astype(np.int64)
    return steps * round(2 / _SAME_FULLNESS) + np.rint(fullness / _SAME_FULLNESS).astype(np.int64)
