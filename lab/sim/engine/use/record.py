"""What became of opportunistic tasks in a run, and who was killed."""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from lab.sim.engine.use.tasks import Tasks


@dataclass(frozen=True, slots=True)
class OpportunisticOutcome:
    """Counts of starts, of which `opportunistic`; promotions, evictions, and kills by memory of either class.

    `lost_seconds` is for how long those ran that were evicted or killed. By task [T]: whether its last start was
    `opportunistic_at_start`, when its stage was `opened`, and its `first_start`. `peak` [R] is the largest use of any
    node, as a part of it.
    """

    starts: int
    opportunistic: int
    promoted: int
    evicted: int
    killed_opportunistic: int
    killed_regular: int
    lost_seconds: float
    opportunistic_at_start: Mask
    opened: Floats
    first_start: Floats
    peak: Floats


@dataclass(slots=True)
class OpportunisticRecord:
    """Writes down what happens to the tasks [T] of a run."""

    first_start: Floats
    at_start: Mask
    peak: Floats
    starts: int = 0
    opportunistic: int = 0
    promoted: int = 0
    evicted: int = 0
    killed_opportunistic: int = 0
    killed_regular: int = 0
    lost_seconds: float = 0.0

    @classmethod
    def of(cls, tasks: int, width: int) -> "OpportunisticRecord":
        """Return an empty record."""
        return cls(np.full(tasks, np.nan), np.zeros(tasks, dtype=np.bool_), np.zeros(width))

    def start(self, task: Rows, now: float, *, opportunistic: bool) -> None:
        """Write down starts."""
        self.starts += len(task)
        self.opportunistic += len(task) if opportunistic else 0
        self.at_start[task] = opportunistic
        self.first_start[task] = np.fmin(self.first_start[task], now)

    def lose(self, tasks: Tasks, now: float, *, evicted: bool) -> None:
        """Write down tasks that were evicted, or else killed."""
        given = int(np.count_nonzero(tasks.opportunistic))
        self.evicted += given if evicted else 0
        self.killed_opportunistic += 0 if evicted else given
        self.killed_regular += 0 if evicted else len(tasks.task) - given
        self.lost_seconds += float((now - tasks.began).sum())

    def measure(self, use: Floats, capacity: Floats) -> None:
        """Take note of the use of machines [N, R]."""
        part = np.divide(use, capacity, out=np.zeros_like(use), where=(capacity > 0) & np.isfinite(capacity))
        np.maximum(self.peak, part.max(axis=0), out=self.peak)

    def outcome(self, opened: Floats) -> OpportunisticOutcome:
        """Return what has become of them all, given when the stage of each task was opened [T]."""
        return OpportunisticOutcome(
            self.starts,
            self.opportunistic,
            self.promoted,
            self.evicted,
            self.killed_opportunistic,
            self.killed_regular,
            self.lost_seconds,
            self.at_start,
            opened,
            self.first_start,
            self.peak,
        )
