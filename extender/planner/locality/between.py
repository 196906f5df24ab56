"""The waits for locality between two plans: what others than a plan know of them, and what they do to them.

Whoever starts tasks beside the plan (reclaim) goes by the same algorithm 3: a start sets its job's wait anew, and a job
that lets a chance pass has been passed over.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from extender.planner.plan import Carried, LocalityWait
from extender.planner.tuning import Policy
from extender.policy.locality import level_now

_ANYWHERE = 2**31


def wait_now(carried: Carried, name: str, now: float) -> LocalityWait:
    """Return the level of a job's last start, and for how many seconds it has been passed over since, at `now`."""
    wait = carried.locality.get(name, LocalityWait())
    since = max(0.0, now - carried.planned_at)
    return LocalityWait(wait.level, wait.seconds + min(since, wait.counts))


def farthest(policy: Policy, wait: LocalityWait, existing: Collection[int]) -> int:
    """Return the farthest level at which a job that waits like this may start now a task that has these levels."""
    waits = [seconds if level in existing else 0.0 for level, seconds in enumerate(policy.locality_waits)]
    last = np.array([min(wait.level, len(waits))])
    level = int(level_now(last, np.array([wait.seconds]), np.array([waits], dtype=np.float64))[0])
    return level if level < len(waits) else _ANYWHERE


def pass_over(carried: Carried, names: Collection[str], now: float, seconds: float) -> Carried:
    """Return the waits once these jobs have been passed over at `now`, which counts for so many seconds."""
    until = max(0.0, now - carried.planned_at) + seconds
    before = {name: carried.locality.get(name, LocalityWait()) for name in names}
    passed = {name: replace(wait, counts=max(wait.counts, until)) for name, wait in before.items()}
    return replace(carried, locality={**carried.locality, **passed}) if passed else carried


def start(policy: Policy, carried: Carried, name: str, level: int) -> Carried:
    """Return the waits once a task of a job has started at a level: from there the job waits anew."""
    if not policy.locality_waits:
        return carried
    wait = LocalityWait(min(level, len(policy.locality_waits)))
    return replace(carried, locality={**carried.locality, name: wait})
