"""Pods in flight that the watch has not shown: how long they may count, and when nobody believes in them any more.

Whoever asks for a verdict may name a pod that does not exist. So such a pod counts for a moment, and once. After one
that was never shown, none counts for a while.
"""

UNSEEN_SECONDS = 1.0
"""How long a pod that the watch has not shown is in flight: the watch is hardly ever that far behind."""

DISTRUST_SECONDS = 10.0
"""For how long no such pod is in flight after one that the watch never showed."""

_MOST_UNSEEN = 10_000


class Unseen:
    """When each pod was first asked about that the watch has not shown. The ledger's lock is held by who calls."""

    def __init__(self, in_flight_seconds: float) -> None:
        self._seconds = min(UNSEEN_SECONDS, in_flight_seconds)
        self._first: dict[str, float] = {}
        self._distrusts_until = float("-inf")

    def may_fly_until(self, uid: str, now: float) -> float:
        """Return until when a pod that the watch has not shown may be in flight; `now` where it may not."""
        if now < self._distrusts_until:
            return now
        first = self._first.setdefault(uid, now)
        if len(self._first) > _MOST_UNSEEN:
            del self._first[next(iter(self._first))]
        return first + self._seconds

    def shown(self, uid: str) -> None:
        """Forget a pod: the watch has shown it."""
        self._first.pop(uid, None)

    def never_shown(self, since: float) -> None:
        """Take note that one was in flight that the watch never showed, up to this moment."""
        self._distrusts_until = since + DISTRUST_SECONDS
