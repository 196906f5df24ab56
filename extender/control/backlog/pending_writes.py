"""Which pods are being written to, and which are left alone for a while because a write to them failed."""

import threading
from collections import Counter
from collections.abc import KeysView, Set

LONGEST_BACKOFF_SECONDS = 60.0
"""A pod that could not be written to is tried again after 1, 2, 4 ... seconds, at most so many."""

LONGEST_CLAIM_SECONDS = 1_800.0

_MOST_DOUBLINGS = 10
"""After so many doublings each of our times is at its longest."""


def doubled(first: float, times: int, longest: float) -> float:
    """Return `first` seconds for the first time, twice as many each time after it, and at most `longest`."""
    return min(first * 2.0 ** min(times - 1, _MOST_DOUBLINGS), longest)


class PendingWrites:
    """`in_progress` and `backoff` say until when, by UID, in seconds since the epoch. Under the backlog's `lock`.

    `queued` counts by UID the writes that have not begun. Their pods are left alone even when their claim has ended, so
    that writes do not pile up. It has a lock of its own: a writer never waits for whoever looks at the backlog.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self.in_progress: dict[str, float] = {}
        self.backoff: dict[str, float] = {}
        self.queued: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._failed_clears: set[str] = set()
        self._lock = lock
        self._queue_lock = threading.Lock()

    def back_off(self, uid: str, now: float, first: float = 1.0, longest: float = LONGEST_BACKOFF_SECONDS) -> None:
        """Leave a pod alone for a while after a write to it failed, longer each time; it is not on its way."""
        with self._lock:
            self.in_progress.pop(uid, None)
            self._failed_clears.discard(uid)
            self._failures[uid] += 1
            self.backoff[uid] = now + doubled(first, self._failures[uid], longest)

    def note_failed_clear(self, uid: str) -> None:
        """Note that what failed last was to clear a pod's nomination: that has to wait as well."""
        with self._lock:
            if uid in self.backoff:
                self._failed_clears.add(uid)

    def may_clear(self, uid: str) -> bool:
        """Say whether a pod's nomination may be cleared now, though other writes to it may have to wait."""
        return uid not in self.queued and not (uid in self.backoff and uid in self._failed_clears)

    def failures(self, uid: str) -> int:
        """Return how many writes to a pod have failed in a row."""
        return self._failures.get(uid, 0)

    def claim(self, uid: str, until: float) -> None:
        """Note that a pod is being written to: it is left alone until then, or until news of it."""
        with self._lock:
            self.in_progress[uid] = until

    def claim_on(self, uid: str) -> float | None:
        """Return until when a pod is claimed, which tells one claim from the next; None where it is not."""
        return self.in_progress.get(uid)

    def queue(self, uid: str) -> None:
        """Note that a write to a pod waits to begin."""
        with self._queue_lock:
            self.queued[uid] += 1

    def begin(self, uid: str) -> None:
        """Note that a queued write to a pod begins."""
        with self._queue_lock:
            self.queued[uid] -= 1
            if self.queued[uid] <= 0:
                del self.queued[uid]

    def busy(self, uid: str) -> bool:
        """Say whether a pod is being written to, or is about to be, or is left alone after a failure."""
        return uid in self.backoff or self.under_way(uid)

    def under_way(self, uid: str) -> bool:
        """Say whether a pod is being written to, or is about to be."""
        return uid in self.in_progress or uid in self.queued

    def any(self) -> bool:
        """Say whether any pod is busy."""
        return bool(self.in_progress or self.backoff or self.queued)

    def pods(self) -> Set[str]:
        """Return all pods that are busy, by UID."""
        with self._lock, self._queue_lock:
            return self.in_progress.keys() | self.backoff.keys() | self.queued.keys()

    def count(self, uids: KeysView[str]) -> int:
        """Return how many of these pods are busy."""
        with self._lock:
            if not self.any():
                return 0
            if len(uids) <= len(self.in_progress):  # most classes have few pods
                return sum(map(self.busy, uids))
            return len(uids & self.pods())

    def expire(self, now: float, longest: float = LONGEST_CLAIM_SECONDS, *, claims: bool = True) -> None:
        """Forget what was claimed, or left alone, until `now` or earlier: no news of it has come.

        Without `claims` only what was left alone. What ends more than `longest` seconds from now is forgotten too: the
        clock was set back.
        """
        with self._lock:
            for deadlines in (self.in_progress, self.backoff) if claims else (self.backoff,):
                expired = [uid for uid, until in deadlines.items() if not now < until <= now + longest]
                for uid in expired:
                    del deadlines[uid]

    def forget(self, uid: str) -> None:
        """Forget all about a pod: there is news of it, or it is gone."""
        self.in_progress.pop(uid, None)
        self.backoff.pop(uid, None)
        self._failures.pop(uid, None)
        self._failed_clears.discard(uid)
