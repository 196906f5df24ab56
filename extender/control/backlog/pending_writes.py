"""Which pods are being written to, and which rest after a write that failed: both are left alone for a while."""

import threading
from collections import Counter
from collections.abc import KeysView

LONGEST_REST_SECONDS = 60.0
"""A pod that cannot be written to is tried again after 1, 2, 4 ... at most so many seconds."""

LONGEST_CLAIM_SECONDS = 1_800.0

_MOST_DOUBLINGS = 10


class PendingWrites:
    """`claimed` and `resting` say until when, by UID, in seconds since the epoch. They share the backlog's `lock`.

    `queued` are those with a write that has not begun, how many of each: they are left alone also when their claim is
    over, so that no more pile up. They have a lock of their own: who writes never waits for who looks at the backlog.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self.claimed: dict[str, float] = {}
        self.resting: dict[str, float] = {}
        self.queued: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._lock = lock
        self._queue_lock = threading.Lock()

    def rest(self, uid: str, now: float) -> None:
        """Leave a pod alone for a while that could not be written to, longer each time; it is not on its way."""
        with self._lock:
            self.claimed.pop(uid, None)
            self._failed[uid] += 1
            doublings = min(self._failed[uid] - 1, _MOST_DOUBLINGS)
            self.resting[uid] = now + min(2.0**doublings, LONGEST_REST_SECONDS)

    def failures(self, uid: str) -> int:
        """Return how often in a row a pod could not be written to."""
        return self._failed.get(uid, 0)

    def claim(self, uid: str, until: float) -> None:
        """Note that a pod is being written to; it is left alone until then, or until news of it."""
        with self._lock:
            self.claimed[uid] = until

    def claim_on(self, uid: str) -> float | None:
        """Return until when a pod is claimed, which tells one claim from the next; None where it is not."""
        return self.claimed.get(uid)

    def queue(self, uid: str) -> None:
        """Note that a write to a pod waits to begin."""
        with self._queue_lock:
            self.queued[uid] += 1

    def begin(self, uid: str) -> None:
        """Note that a write to a pod that was queued begins."""
        with self._queue_lock:
            self.queued[uid] -= 1
            if self.queued[uid] <= 0:
                del self.queued[uid]

    def busy(self, uid: str) -> bool:
        """Say whether a pod is being written to, or is to be, or rests."""
        return uid in self.claimed or uid in self.resting or uid in self.queued

    def count(self, uids: KeysView[str]) -> int:
        """Return how many of these pods are busy."""
        with self._lock:
            if not (self.claimed or self.resting or self.queued):
                return 0
            if len(uids) <= len(self.claimed):  # most classes have few pods
                return sum(map(self.busy, uids))
            with self._queue_lock:
                return len(uids & (self.claimed.keys() | self.resting.keys() | self.queued.keys()))

    def expire(self, now: float, longest: float = LONGEST_CLAIM_SECONDS) -> None:
        """Let go of what was claimed until now: no news of it has come.

        So too of what was claimed for `longest` seconds and more from now: the clock was set back.
        """
        with self._lock:
            for of in (self.claimed, self.resting):
                for uid in [uid for uid, until in of.items() if not now < until <= now + longest]:
                    del of[uid]

    def forget(self, uid: str) -> None:
        """Forget all of a pod: there is news of it, or it is gone."""
        self.claimed.pop(uid, None)
        self.resting.pop(uid, None)
        self._failed.pop(uid, None)
