"""Where a class of pods does not come back to for a while, because it went wrong there: else it would go on in a loop.

Evicted pods have a class that stays off; so has a node that was chosen for a pod, and would not have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Mask

FIRST_SECONDS = 60.0
LONGEST_SECONDS = 3_600.0
_MOST = 10_000
"""So many are remembered; then the oldest is forgotten."""


@dataclass(slots=True)
class _Stay:
    until: float
    seconds: float


class StaysOff:
    """For how long a class stays off a node where it went wrong for one of its pods: twice as long each time.

    After as long again without that it starts anew. Lost at a restart: then each may come back once.
    """

    def __init__(self, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS) -> None:
        self._first, self._longest = first, longest
        self._stays: dict[tuple[str, str], _Stay] = {}

    def note(self, task_class: str, node: str, now: float) -> None:
        """Note that it went wrong for a pod of the class on the node."""
        if len(self._stays) >= _MOST:
            del self._stays[next(iter(self._stays))]
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

    def nodes_of(self, task_class: str, now: float) -> list[str]:
        """Return the nodes that a class stays off."""
        self._expire(now)
        return [node for (name, node), stay in self._stays.items() if name == task_class and now < stay.until]

    def _expire(self, now: float) -> None:
        over = [key for key, stay in self._stays.items() if now >= stay.until + stay.seconds]
        for key in over:
            del self._stays[key]
