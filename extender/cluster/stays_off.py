"""Nodes that a class of pods avoids for a while, because it went wrong there: else it would go on in a loop.

Evicted pods have a class that stays off; so has a node that was chosen for a pod, and would not have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Mask

FIRST_SECONDS = 60.0
LONGEST_SECONDS = 3_600.0
_MOST = 10_000
"""So many are remembered; then one of the class that was noted first is forgotten."""


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
        self._stays: dict[str, dict[str, _Stay]] = {}
        self._count = 0

    def note(self, task_class: str, node: str, now: float) -> None:
        """Note that it went wrong for a pod of the class on the node."""
        stay = self._stays.get(task_class, {}).get(node)
        if stay is not None and now < stay.until:  # one more of the same overload
            return
        if stay is not None and now >= stay.until + stay.seconds:
            self._forget(task_class, [node])
            stay = None
        if stay is None:
            if self._count >= _MOST:
                first = next(iter(self._stays))
                self._forget(first, [next(iter(self._stays[first]))])
            self._count += 1
        seconds = self._first if stay is None else min(2.0 * stay.seconds, self._longest)
        self._stays.setdefault(task_class, {})[node] = _Stay(now + seconds, seconds)

    def barred(self, task_classes: Sequence[str], nodes: Sequence[str], now: float) -> Mask:
        """Return which of these classes stay off which of these nodes [C, N]."""
        barred = np.zeros((len(task_classes), len(nodes)), dtype=np.bool_)
        rows = {row: off for row, name in enumerate(task_classes) if (off := self.nodes_of(name, now))}
        columns = {name: column for column, name in enumerate(nodes)} if rows else {}
        for row, off in rows.items():
            barred[row, [columns[node] for node in off if node in columns]] = True
        return barred

    def nodes_of(self, task_class: str, now: float) -> list[str]:
        """Return the nodes that a class stays off."""
        return [node for node, stay in self._of(task_class, now).items() if now < stay.until]

    def _of(self, task_class: str, now: float) -> Mapping[str, _Stay]:
        """Return what is remembered of a class, by node, without what is over."""
        stays = self._stays.get(task_class, {})
        self._forget(task_class, [node for node, stay in stays.items() if now >= stay.until + stay.seconds])
        return stays

    def _forget(self, task_class: str, nodes: Sequence[str]) -> None:
        for node in nodes:
            del self._stays[task_class][node]
            self._count -= 1
        if nodes and not self._stays[task_class]:
            del self._stays[task_class]
