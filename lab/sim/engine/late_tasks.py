"""Tasks that come after their job, each at its own time."""

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from lab.sim.engine.running import DONE_SECONDS
from lab.sim.workloads.stages import StageTable


class LateTasks:
    """The tasks of stages that say when theirs come. `missing` [S] is how many of each stage are to come."""

    def __init__(self, table: StageTable) -> None:
        self._comes, self._first = table.comes, table.first_task
        self._to_come: list[tuple[float, int, int]] = []
        self.missing = np.zeros(len(table.tasks), dtype=np.int64)

    def __contains__(self, stage: int) -> bool:
        """Say whether a stage has such tasks."""
        return stage in self._comes

    @property
    def next_at(self) -> float:
        """When the next task comes; infinite if none is to come."""
        return self._to_come[0][0] if self._to_come else np.inf

    def begin(self, stage: int, now: float) -> None:
        """Note that a stage begins: its tasks come so long after `now`."""
        first = int(self._first[stage])
        for number, seconds in enumerate(self._comes[stage].tolist()):
            heappush(self._to_come, (now + seconds, stage, first + number))
        self.missing[stage] += len(self._comes[stage])

    def come(self, now: float) -> Iterator[tuple[int, int]]:
        """Yield stage and row of each task that has come by `now`."""
        while self.next_at <= now + DONE_SECONDS:
            _, stage, task = heappop(self._to_come)
            self.missing[stage] -= 1
            yield stage, task
