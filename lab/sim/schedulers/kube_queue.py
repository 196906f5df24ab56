"""kube-scheduler's queue: in which order waiting pods are tried (Kubernetes 1.36, pkg/scheduler/backend/queue).

Each end of a pod has all refused pods tried again, whoever could use the room. Those go first that were never tried, or
have backed off for long enough; the others follow by when that ends, to the second (`SchedulerPopFromBackoffQ`). So a
pod that was refused once comes before one that has been refused for minutes. Within both, pods go by priority, and then
by when they came or were last refused.

Pods are tried one after the other, and each try takes a moment. Where a pod ends before all have been tried, those that
were not come first then, as they were refused longer ago: so the order is cut now and then, and stays so.
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

_TRY_SECONDS = 2e-4
"""How long a try that fails takes: 0.18 ms in the mean of 27,636 by kube-scheduler's own count (1.36, 8 nodes)."""

_ROUNDING = 1e-9


@dataclass(slots=True)
class _Groups:
    """Pods of one task class that were refused together, in groups [G].

    `kind` is the class, by a number that it keeps; of each group there are `count` pods, refused so many times
    (`refusals`, at most as many as change the backoff); `since` is when they came or were last refused, and `place`
    where they stood among those of the same moment.
    """

    kind: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    count: Counts = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    refusals: Counts = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    since: Floats = field(default_factory=lambda: np.empty(0))
    place: Counts = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def add(self, kind: Rows, count: Counts, refusals: Counts, since: Floats, place: Counts) -> None:
        """Add groups behind the others."""
        self.kind, self.count = np.append(self.kind, kind), np.append(self.count, count)
        self.refusals, self.since = np.append(self.refusals, refusals), np.append(self.since, since)
        self.place = np.append(self.place, place)

    def keep(self, rows: Rows) -> None:
        """Leave out all groups but these, which come in this order then."""
        self.kind, self.count, self.refusals = self.kind[rows], self.count[rows], self.refusals[rows]
        self.since, self.place = self.since[rows], self.place[rows]


@dataclass(slots=True)
class SchedulingQueue:
    """The pods that wait, as groups of pods that are alike and were refused together.

    The groups under way (`_left`, in order) are tried from `_begun` on: of each so many pods as there are.
    """

    _groups: _Groups = field(default_factory=_Groups)
    _names: Sequence[str] = ()
    _kinds: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    _kind_of: dict[str, int] = field(default_factory=dict)
    _order: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    _left: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    _begun: float = 0.0
    _allocated: Floats | None = None

    def line(self, waiting: Waiting, now: float) -> tuple[Rows, Counts]:
        """Return in which order pods are tried at `now`: classes (rows) [G], and how many pods of each [G].

        A class may be there more than once.
        """
        # 1. Count the tries until now, and take in who came or went.
        self._settle(now)
        self._take(waiting, now)
        # 2. Those go first that have backed off for long enough, the others by when that ends, to the second.
        groups = self._groups
        backoff = np.minimum(2.0 ** np.minimum(groups.refusals - 1, _DOUBLINGS), _LONGEST_SECONDS)
        until = np.where(groups.refusals > 0, np.floor(groups.since + backoff), -np.inf)
        until = np.where(until < np.floor(now), -np.inf, until)
        class_of = np.full(len(self._kind_of), -1)
        class_of[self._kinds] = np.arange(len(self._kinds))
        classes = class_of[groups.kind]
        priority = np.zeros(len(classes)) if waiting.priority is None else waiting.priority[classes]
        order = np.lexsort((groups.place, groups.since, -priority, until))
        self._order = order[groups.count[order] > 0]
        return classes[self._order], groups.count[self._order]

    def note(self, placed: Counts, snapshot: Snapshot, allocated: Floats, now: float) -> None:
        """Note how many pods of each group of the last `line` were placed [G]; all others are refused, one by one.

        What is `allocated` now is [N, R]. Where no pod has ended since the last time, only new ones are tried.
        """
        groups, before, self._allocated = self._groups, self._allocated, allocated
        groups.count[self._order] -= placed
        left = self._order[groups.count[self._order] > 0]
        if before is None or (snapshot.allocated < before * (1.0 - _ROUNDING)).any():
            self._left, self._begun = left, now
            return
        new = left[(groups.refusals[left] == 0) & ~np.isin(left, self._left)]
        self._refuse(new, np.full(len(new), now), np.arange(len(new)))

    def _settle(self, now: float) -> None:
        """Refuse who has been tried by now; of a group in which the last try was, the others wait on."""
        groups, left = self._groups, self._left
        ends = np.cumsum(groups.count[left])
        tries = int(min((now - self._begun) / _TRY_SECONDS, float(ends[-1]))) if len(left) else 0
        if tries == 0:
            return
        # 1. Part the group in which the last try was: its first pods are a group of their own from now on.
        whole = int(np.searchsorted(ends, tries, side="right"))
        tried, first = left[:whole], tries - (int(ends[whole - 1]) if whole else 0)
        if first:
            part = left[whole : whole + 1]
            groups.count[part] -= first
            part_count = np.array([first], dtype=np.int64)
            groups.add(groups.kind[part], part_count, groups.refusals[part], groups.since[part], groups.place[part])
            tried = np.append(tried, len(groups.count) - 1)
        # 2. Refuse who was tried, each at its moment.
        moments = np.asarray(self._begun + _TRY_SECONDS * np.cumsum(groups.count[tried]), dtype=np.float64)
        self._refuse(tried, moments, np.arange(len(tried)))
        self._left, self._begun = left[whole:], self._begun + _TRY_SECONDS * tries

    def _refuse(self, rows: Rows, moments: Floats, places: Counts) -> None:
        groups = self._groups
        groups.refusals[rows] = np.minimum(groups.refusals[rows] + 1, _DOUBLINGS + 1)
        groups.since[rows], groups.place[rows] = moments, places

    def _take(self, waiting: Waiting, now: float) -> None:
        """Take in who came, as new groups at `now`, and who left without having been placed."""
        if waiting.names is not self._names:
            for name in waiting.names:
                self._kind_of.setdefault(name, len(self._kind_of))
            self._names = waiting.names
            self._kinds = np.array([self._kind_of[name] for name in waiting.names], dtype=np.intp)
        groups, kinds = self._groups, self._kinds
        queued = np.bincount(groups.kind, weights=groups.count, minlength=len(self._kind_of))[kinds].astype(np.int64)
        more = waiting.count - queued
        for place in np.flatnonzero(more < 0).tolist():
            self._lose(int(kinds[place]), int(-more[place]))
        if not len(self._left):
            self._tidy(np.isin(groups.kind, kinds) & (groups.count > 0))
        else:
            groups.count[~np.isin(groups.kind, kinds)] = 0
        came = np.flatnonzero(more > 0)
        zeros = np.zeros(len(came), dtype=np.int64)
        groups.add(kinds[came], more[came], zeros, np.full(len(came), now), np.arange(len(came)))

    def _lose(self, kind: int, count: int) -> None:
        """Take pods of a class out, those that came last first."""
        for row in np.flatnonzero(self._groups.kind == kind)[::-1].tolist():
            gone = min(count, int(self._groups.count[row]))
            self._groups.count[row] -= gone
            count -= gone

    def _tidy(self, kept: Mask) -> None:
        """Leave out groups, and join those of one class that follow each other and are refused alike."""
        groups = self._groups
        rows = np.flatnonzero(kept)
        rows = rows[np.lexsort((groups.place[rows], groups.since[rows]))]
        groups.keep(rows)
        if len(rows) < 2:
            return
        begins = np.append(
            [True], (groups.kind[1:] != groups.kind[:-1]) | (groups.refusals[1:] != groups.refusals[:-1])
        )
        begins[groups.refusals == 0] = True
        if begins.all():
            return
        firsts = np.flatnonzero(begins)
        total = np.add.reduceat(groups.count, firsts)
        groups.keep(firsts)
        groups.count = total
