"""kube-scheduler's queue: in which order waiting pods are tried (Kubernetes 1.36, pkg/scheduler/backend/queue).

Each end of a pod has all refused pods tried again, whoever could use the room. Those go first that were never tried, or
have backed off for long enough; the others follow by when that ends, to the second (`SchedulerPopFromBackoffQ`). So a
pod that was refused once comes before one that has been refused for minutes. Within both, pods go by priority, and then
by when they came or were last refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting

_LONGEST_SECONDS = 10.0
_DOUBLINGS = 4
"""Backoff is 1, 2, 4, 8 and then 10 s (podInitialBackoffSeconds, podMaxBackoffSeconds)."""

_ROUNDING = 1e-9


@dataclass(slots=True)
class SchedulingQueue:
    """The pods that wait, by task class: pods of one class are alike, and are refused together.

    For each class that ever waited: how often it was refused (`refusals`), when it came or was last refused (`since`),
    and where it stood among those of the same moment (`place`).
    """

    _names: Sequence[str] = ()
    _rows: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    _row_of: dict[str, int] = field(default_factory=dict)
    _refusals: Counts = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _since: Floats = field(default_factory=lambda: np.empty(0))
    _place: Counts = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _allocated: Floats | None = None

    def ranks(self, waiting: Waiting, now: float) -> Counts:
        """Return the place of each class in the order in which pods are tried at `now` [C]."""
        rows = self._known(waiting.names, now)
        refusals, since = self._refusals[rows], self._since[rows]
        backoff = np.minimum(2.0 ** np.minimum(refusals - 1, _DOUBLINGS), _LONGEST_SECONDS)
        until = np.where(refusals > 0, np.floor(since + backoff), -np.inf)
        until = np.where(until < np.floor(now), -np.inf, until)
        priority = np.zeros(len(rows)) if waiting.priority is None else waiting.priority
        return _places(np.lexsort((self._place[rows], since, -priority, until)))

    def note(self, ranks: Counts, refused: Mask, snapshot: Snapshot, allocated: Floats, now: float) -> None:
        """Note which of the classes of the last `ranks` [C] were refused, with what is `allocated` now [N, R].

        Where no pod has ended since the last time, only those that are new were tried.
        """
        before, self._allocated = self._allocated, allocated
        if before is not None and not (snapshot.allocated < before * (1.0 - _ROUNDING)).any():
            refused = refused & (self._refusals[self._rows] == 0)
        tried = self._rows[refused]
        self._refusals[tried] += 1
        self._since[tried], self._place[tried] = now, ranks[refused]

    def _known(self, names: Sequence[str], now: float) -> Rows:
        """Return the rows of these classes [C]; new ones came at `now`, in this order."""
        if names is not self._names:
            count = len(self._row_of)
            for name in names:
                self._row_of.setdefault(name, len(self._row_of))
            new = len(self._row_of) - count
            self._refusals = np.append(self._refusals, np.zeros(new, dtype=np.int64))
            self._since = np.append(self._since, np.full(new, now))
            self._place = np.append(self._place, np.arange(new))
            self._names = names
            self._rows = np.array([self._row_of[name] for name in names], dtype=np.intp)
        return self._rows


def _places(order: Rows) -> Counts:
    """Return the place of each row in an order [C]."""
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places
