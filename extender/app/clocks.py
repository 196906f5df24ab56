"""The clock of a process: it starts at the wall clock's time, and nobody can set it."""

import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since the epoch: by the wall clock at the start, from then on by a clock that is never set.

    So timeouts, claims and waits last as long as they should while the wall clock jumps. Ages of what others date (the
    creation of pods) are wrong by the difference of the two clocks.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._ahead = wall() - steady()

    def __call__(self) -> float:
        """Return the time."""
        return self._ahead + self._steady()
