"""Where an evicted class does not come back to for a while: without it, the same pod would go and come in a loop."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Mask

FIRST_SECONDS = 60.0
LONGEST_SECONDS = 3_600.0


@dataclass(slots=True)
class _Stay:
    until: float
    seconds: float


class StaysOff:
    """For how long a task class stays off a node where one of its pods was evicted: twice as long each time.

    After as long again without an eviction there it starts anew. Lost at a restart: then each may come back once.
    """

    def __init__(self, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS) -> None:
        self._first, self._longest = first, longest
        self._stays: dict[tuple[str, str], _Stay] = {}

    def note(self, task_class: str, node: str, now: float) -> None:
        """Note that a pod of the class was evicted from the node."""
        stay = self._stays.get((task_class, node))
        if stay is not None and now < stay.until:  # one more of the same overload
            return
        again = stay is not None and now < stay.until + stay.seconds
        seconds = min(2.0 * stay.seconds, self._longest) if stay is not None and again else self._first
        self._stays[task_class, node] = _Stay(now + seconds, seconds)

    def barred(self, task_classes: Sequence[str], nodes: Sequence[str], now: float) -> Mask:
        """Return which of these classes stay off which of these nodes [C, N]."""
        self._expire(now)
        if not self._stays:
            return np.zeros((len(task_classes), len(nodes)), dtype=np.bool_)
        rows = {name: row for row, name in enumerate(task_classes)}
        columns = {name: column for column, name in enumerate(nodes)}
        barred = np.zeros((len(task_classes), len(nodes)), dtype=np.bool_)
        for (task_class, node), stay in self._stays.items():
            if now < stay.until and task_class in rows and node in columns:
                barred[rows[task_class], columns[node]] = True
        return barred

    def _expire(self, now: float) -> None:
        over = [key for key, stay in self._stays.items() if now >= stay.until + stay.seconds]
        for key in over:
            del self._stays[key]
