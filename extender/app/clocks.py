"""The clock of a process: it follows the wall clock, and never jumps."""

import threading
import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since the epoch, as the wall clock says, but that it never jumps. Any thread.

    Where the wall clock was set, or the machine stood still, it goes up to twice as fast, or half as fast, until the
    two agree again. So timeouts, claims and waits last half as long as they should at least, and the ages of what
    others date (the creation of pods, samples) are right again after a while: ten minutes where it was ten behind.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._lock = threading.Lock()
        self._time, self._at = wall(), steady()

    def __call__(self) -> float:
        """Return the time."""
        with self._lock:
            at = self._steady()
            passed, self._at = max(at - self._at, 0.0), at
            behind = self._wall() - (self._time + passed)
            self._time += passed + min(max(behind, -passed / 2), passed)
            return self._time
