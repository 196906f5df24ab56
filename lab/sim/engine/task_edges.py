"""Stages of which each task waits for one task of a parent, that of its own number: which of their tasks may start."""

from collections.abc import Iterator

import numpy as np

from extender.arrays import Counts, Rows
from lab.sim.workloads.stages import StageTable


class TaskEdges:
    """The one-to-one edges of a table, as its tasks end. `blocked` [S] is how many tasks of each stage wait for one.

    A stage `begins` when its other parents are over; none of its tasks may start before that.
    """

    def __init__(self, table: StageTable) -> None:
        self._first = table.first_task
        self._children: dict[int, list[int]] = {}
        self._missing: dict[int, Counts] = {}
        self._begun: set[int] = set()
        self.blocked = np.zeros(len(table.tasks), dtype=np.int64)
        for child, parents in table.one_to_one.items():
            self._missing[child] = np.full(table.tasks[child], len(parents))
            self.blocked[child] = table.tasks[child]
            for parent in parents.tolist():
                self._children.setdefault(parent, []).append(child)

    def __contains__(self, stage: int) -> bool:
        """Say whether a stage has such parents."""
        return stage in self._missing

    def begin(self, stage: int) -> list[int]:
        """Note that a stage begins; return which of its tasks may start, as rows of the table."""
        self._begun.add(stage)
        free = np.flatnonzero(self._missing[stage] == 0)
        self.blocked[stage] -= len(free)
        return [int(self._first[stage]) + number for number in free.tolist()]

    def end(self, stages: Rows, tasks: Rows) -> Iterator[tuple[int, int]]:
        """Note that tasks [E] of these stages have ended; yield the stage and row of each that may start by that."""
        if not self._children:
            return
        for stage, task in zip(stages.tolist(), tasks.tolist(), strict=True):
            for child in self._children.get(stage, ()):
                number = task - int(self._first[stage])
                missing = self._missing[child]
                missing[number] -= 1
                if not missing[number] and child in self._begun:
                    self.blocked[child] -= 1
                    yield child, int(self._first[child]) + number
