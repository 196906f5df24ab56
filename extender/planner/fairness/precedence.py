"""Who goes before others, whatever the score."""

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats
from extender.cluster.waiting import Waiting
from extender.planner.tuning import Policy
from extender.policy.critical import chain_seconds, critical, small, urgent
from extender.policy.remaining import work_by_resource

_ABOVE = 1e6
"""More than any two scores differ: at most 6 in alignment, and m x 6 x the number of classes in remaining work."""


def before_others(policy: Policy, waiting: Waiting, last: NDArray[np.bool_], total: Floats) -> Floats:
    """Return what puts classes above others [C], 0 for most, less than 0 for who goes after small jobs.

    The `last` [C] of a stage come first, and urgent jobs; then, where some jobs decide when everything is done, small
    jobs, then those jobs, the longest chain first, then the rest. `total` [R] is what the cluster has. Levels are few,
    and that of small jobs is 0: a large number takes the last digits of a score that is added to it, and beside a job
    of very much work other scores differ in these alone.
    """
    before = np.zeros(len(last))
    if np.isfinite(waiting.left_seconds):
        jobs = waiting.jobs
        longest = np.zeros(len(jobs.names))
        np.maximum.at(longest, waiting.job, waiting.duration)
        path = np.zeros(len(longest)) if jobs.path is None else jobs.path
        chain = chain_seconds(path, longest, jobs.work)
        decides = critical(chain, waiting.left_seconds, tail=policy.tail)
        if decides.any():
            first = np.where(decides, 1.0 + np.unique(chain, return_inverse=True)[1], 0.0)
            first[small(jobs.work, part=policy.small)] = len(chain) + 1
            level = np.unique(first, return_inverse=True)[1]
            before = _ABOVE * (level - level.max())[waiting.job]
        if np.isfinite(policy.tail):
            without_chain = np.where(path > 0, 0.0, longest)
            is_urgent = urgent(without_chain, jobs.work, waiting.left_seconds, taken=_long_part(waiting, total))
            before[is_urgent[waiting.job]] = _ABOVE
    before[last] = _ABOVE
    return before


def _long_part(waiting: Waiting, total: Floats) -> float:
    """Return the part of the cluster, summed over resources, that running tasks as long as all that is left have."""
    running = waiting.running
    if running is None or running.seconds is None:
        return 0.0
    is_long = (running.seconds >= waiting.left_seconds) & np.isfinite(running.seconds)
    return float(work_by_resource(running.demand[is_long], np.ones(is_long.sum()), total).sum())
