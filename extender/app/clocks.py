"""The time that a process counts by: it starts as the wall clock's, and nobody sets it."""

import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since the epoch as the wall clock said at the start, and from then on by a clock that is never set.

    So timeouts, claims and waits take as long as they should while the wall clock jumps. Ages of what others date (the
    creation of pods) are off by what the two clocks differ by.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._ahead = wall() - steady()

    def __call__(self) -> float:
        """Return the time."""
        return self._ahead + self._steady()
