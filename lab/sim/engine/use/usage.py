"""What a run in which use is not the promise has besides: its tasks, the samples of their use, and its record."""

import numpy as np

from lab.sim.engine.use.record import OpportunisticRecord
from lab.sim.engine.use.sampling import Sampler, Sampling, Seen
from lab.sim.engine.use.tasks import UsedTasks


class UseRecorder:
    """Samples and records while time passes; `total` is the number of tasks of the run.

    Without `sampling` nobody asks for samples, and none are taken.
    """

    def __init__(self, tasks: UsedTasks, sampling: Sampling | None, total: int, begin: float) -> None:
        nodes, width = tasks.capacity.shape
        self.tasks, self.sampling = tasks, sampling
        self.record = OpportunisticRecord.of(total, width)
        self._sampler = None if sampling is None else Sampler(sampling, nodes, width, begin)

    def between(self, begin: float, end: float) -> None:
        """Take note of a time in which nothing changed."""
        if self._sampler is not None:
            self._sampler.between(begin, end, self.tasks)
        self.record.measure(self.tasks.use_on, self.tasks.capacity)

    def seen(self, now: float) -> Seen | None:
        """Return the newest sample that is known now; the same object until there is another."""
        return None if self._sampler is None else self._sampler.newest(now)

    def next_at(self, now: float) -> float:
        """Return when the next sample will be known; infinite where none will."""
        return np.inf if self._sampler is None else self._sampler.next_known(now)
