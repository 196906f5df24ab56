"""In which order nominations and releases are written: a release soon after its pod's nomination, not at once.

Two writes to one pod in direct succession cost more than two: the API server makes the second from a copy of the pod
that is older than the first, and makes it again. So a few other writes come between. More than a few would only let a
pod wait that could start.
"""

import threading
from collections import deque
from collections.abc import Callable

WRITES_BETWEEN = 8
"""So many other nominations have ended between a pod's nomination and its release, if so many are there."""

Write = Callable[[], None]


class WriteOrder:
    """Nominations and releases that wait. Any thread may call it; each call of `next` takes one that was added.

    Symbols: `_ended` nominations have ended, of `_added` that were added; a release goes first once as many have ended
    as it says. One that must not go before then, while the last of these are still being written, is `_owed`: whoever
    ends a nomination writes it.
    """

    def __init__(self) -> None:
        self._nominations: deque[Write] = deque()
        self._releases: deque[tuple[int, bool, Write]] = deque()
        self._added = self._ended = self._owed = 0
        self._lock = threading.Lock()

    def add_nomination(self, write: Write) -> None:
        """Add a nomination behind the others."""
        with self._lock:
            self._nominations.append(write)
            self._added += 1

    def add_release(self, write: Write, *, whole: bool) -> None:
        """Add a release behind the others; with `whole`, all nominations that were added so far end before it."""
        with self._lock:
            self._releases.append((self._added if whole else self._ended + WRITES_BETWEEN, whole, write))

    def next(self) -> None:
        """Write what is next, unless that has to wait for a nomination that another thread writes."""
        with self._lock:
            release = self._may_release()
            if not release and not self._nominations:
                self._owed += 1
                return
            write = self._releases.popleft()[2] if release else self._nominations.popleft()
        try:
            write()
        finally:
            if not release:
                self._note_end()

    def _may_release(self) -> bool:
        if not self._releases:
            return False
        after, whole, _ = self._releases[0]
        return after <= self._ended or not (whole or self._nominations)

    def _note_end(self) -> None:
        with self._lock:
            self._ended += 1
            owed, self._owed = self._owed, 0
        for _ in range(owed):
            self.next()
