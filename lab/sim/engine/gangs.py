"""Groups of tasks that start together: when their work begins under a scheduler that does not know of them.

It starts them one by one. Those that are there hold their room, and their work begins when enough of them are there.
"""

import numpy as np

from extender.arrays import Mask, Rows
from lab.sim.engine.running import Starts
from lab.sim.workloads.stages import StageTable


class Gangs:
    """The gangs of a table as their tasks start. One that has begun does not wait again for a task that is lost."""

    def __init__(self, table: StageTable) -> None:
        self._least = table.tasks if table.least is None else table.least
        self._waits: Mask = np.zeros(len(table.tasks), dtype=np.bool_) if table.gang is None else table.gang.copy()

    def start(self, starts: Starts, present: Rows) -> tuple[Rows, Rows]:
        """Return which tasks (rows of the table) must wait for others of their gang, and which gangs begin now.

        `present` [A] is how many tasks of the stage of each of these have started, with these.
        """
        waits = self._waits[starts.stage]
        if not waits.any():
            return starts.task[:0], starts.stage[:0]
        whole = present >= self._least[starts.stage]
        begin = np.unique(starts.stage[waits & whole])
        self._waits[begin] = False
        return starts.task[waits & ~whole], begin

    def holding(self, stages: Rows) -> Rows:
        """Return which of these stages, of which tasks run, are gangs that have not begun."""
        return stages[self._waits[stages]]
