"""When the Job controller makes new pods for those that a Job has lost (Kubernetes 1.36, pkg/controller/job).

It waits for 10 s after a Job lost a pod, 20 s after the second, and so on, up to ten minutes after the last. Until then
it makes no pod of that Job. Once a pod of the Job has ended well, it makes all that are missing at once.
"""

from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Mask, Rows
from lab.sim.engine.running import DONE_SECONDS
from lab.sim.workloads.stages import StageTable

_FIRST_SECONDS, _LONGEST_SECONDS = 10.0, 600.0
_DOUBLINGS = 6
"""The seventh wait would be longer than the longest."""


@dataclass(slots=True)
class _Missing:
    """What one job has lost: its missing `tasks`, each as (stage, task, node that it ran on).

    It has lost tasks so many `times` since one ended. The missing ones are there again at `until`.
    """

    tasks: list[tuple[int, int, int]] = field(default_factory=list)
    times: int = 0
    until: float = -np.inf


class JobBackoff:
    """The tasks of Jobs that were lost and are not there yet.

    `missing` [S] is how many of each stage. The next come at `next_at`; infinite where none is missing.
    """

    def __init__(self, table: StageTable) -> None:
        self._job, self._backs_off = table.job, table.backs_off
        self._by_job: dict[int, _Missing] = {}
        self.missing = np.zeros(len(table.tasks), dtype=np.int64)
        self.next_at = np.inf

    def lose(self, stage: Rows, task: Rows, node: Rows, now: float) -> Mask:
        """Note that tasks [A] were lost that ran on these nodes; return which of them are missing for now [A]."""
        jobs = self._job[stage]
        gone = self._backs_off[jobs]
        for row, job in zip(np.flatnonzero(gone).tolist(), jobs[gone].tolist(), strict=True):
            lost = self._by_job.setdefault(job, _Missing())
            lost.tasks.append((stage.item(row), task.item(row), node.item(row)))
            lost.until = now + min(_FIRST_SECONDS * 2.0 ** min(lost.times, _DOUBLINGS), _LONGEST_SECONDS)
            lost.times += 1
        np.add.at(self.missing, stage[gone], 1)
        self._settle()
        return gone

    def end(self, jobs: Rows) -> None:
        """Note that a task of each of these jobs has ended: what is missing of them comes at once."""
        ended = self._by_job.keys() & set(jobs.tolist()) if self._by_job else ()
        for job in ended:
            self._by_job[job].times, self._by_job[job].until = 0, -np.inf
        if ended:
            self._settle()

    def made(self, now: float) -> tuple[Rows, Rows, Rows]:
        """Return the tasks [A] that are there again at `now`: their stages, rows of the table, and old nodes."""
        due = [lost for lost in self._by_job.values() if lost.tasks and lost.until <= now + DONE_SECONDS]
        rows = [row for lost in due for row in lost.tasks]
        for lost in due:
            lost.tasks = []
        stage, task, node = np.array(rows, dtype=np.intp).reshape(-1, 3).T
        np.subtract.at(self.missing, stage, 1)
        self._settle()
        return stage, task, node

    def _settle(self) -> None:
        """Work out when the next tasks come. Forget jobs of which none is missing and none was lost since one ended."""
        self._by_job = {job: lost for job, lost in self._by_job.items() if lost.tasks or lost.times}
        self.next_at = min((lost.until for lost in self._by_job.values() if lost.tasks), default=np.inf)
