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
    as it says.
    """

    def __init__(self) -> None:
        self._nominations: deque[Write] = deque()
        self._releases: deque[tuple[int, Write]] = deque()
        self._added = self._ended = 0
        self._lock = threading.Lock()

    def add_nomination(self, write: Write) -> None:
        """Add a nomination behind the others."""
        with self._lock:
            self._nominations.append(write)
            self._added += 1

    def add_release(self, write: Write, *, whole: bool = False) -> None:
        """Add a release behind the others; with `whole`, all nominations that were added so far end before it."""
        with self._lock:
            self._releases.append((self._added if whole else self._ended + WRITES_BETWEEN, write))

    def next(self) -> None:
        """Write what is next."""
        with self._lock:
            release = bool(self._releases) and (not self._nominations or self._releases[0][0] <= self._ended)
            write = self._releases.popleft()[1] if release else self._nominations.popleft()
        try:
            write()
        finally:
            if not release:
                with self._lock:
                    self._ended += 1
