"""Levels of priority: a PriorityClass goes before queues, barriers and due times.

A level is planned to its end, and takes what it can; the next gets what is left, but for the room that is reserved.
"""

import numpy as np

from extender.arrays import Counts, Mask
from extender.cluster.waiting import Waiting


def levels(waiting: Waiting) -> list[Mask]:
    """Return which classes are planned together [C], the highest priority first; all at once without priorities.

    A gang is planned with the lowest of its classes: all of it has to be in one level.
    """
    everyone = np.ones(len(waiting.count), dtype=np.bool_)
    if waiting.priority is None:
        return [everyone]
    priority = _of_gangs(waiting, waiting.priority)
    return [priority == value for value in np.unique(priority[waiting.count > 0])[::-1]] or [everyone]


def _of_gangs(waiting: Waiting, priority: Counts) -> Counts:
    """Return the priorities [C] with each gang's lowest in place of its classes' own."""
    if waiting.gang is None:
        return priority
    lowest = np.full(waiting.gang.max(initial=-1) + 2, np.iinfo(np.int64).max)
    waits = waiting.count > 0
    np.minimum.at(lowest, waiting.gang[waits], priority[waits])  # the last place is for those without a gang
    return np.where((waiting.gang >= 0) & waits, lowest[waiting.gang], priority)
