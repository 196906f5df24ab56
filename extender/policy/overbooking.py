"""Whether a task should start where it takes more of a disk or link than there is (Graphene, 5, and lines 13 to 19)."""

import numpy as np

from extender.arrays import Floats


def benefit(wait: float, seconds: float, slower: float) -> float:
    """Return how many seconds earlier a task ends if it starts now than if it waits for room.

    Waiting, it would end after `wait` + `seconds`; started now it takes `slower` times its `seconds`.
    """
    return wait + seconds - slower * seconds


def cost(left: Floats, before: Floats, after: Floats, present: float) -> float:
    """Return by how many seconds the tasks that are affected [T] end later, added up.

    At their peaks they would end in `left` [T] seconds. They take `before` [T] times as long without the new task, and
    `after` [T] times as long while it is `present`, for so many seconds.
    """
    slower = after > before
    left, before, after = left[slower], before[slower], after[slower]
    return float(np.minimum(left * (after - before), present * (1.0 - before / after)).sum())
