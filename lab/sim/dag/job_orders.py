"""In which order the tasks of each job of a replay should start, found when it arrives (`extender.graph`)."""

import math
from collections.abc import Callable

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.resources import DISK_READ_INDEX, NETWORK_IN_INDEX
from extender.cluster.waiting import TaskOrder
from extender.graph import Dag, Machines, Parent, Stage, build
from extender.graph.replay import Ranks
from lab.sim.dag.jobs import counting
from lab.sim.workloads.stages import StageTable
from lab.sim.workloads.workload import SHUFFLE, SOURCES

MakeRanks = Callable[[Dag, Machines], Ranks]
"""Returns the order of a job on its share of the machines."""

EFFORT = 1_000
"""Of the search for each job, a tenth of a second or so. More of it changed nothing for many jobs."""

_SHUFFLE = SOURCES.index(SHUFFLE)


def searched(dag: Dag, machines: Machines) -> Ranks:
    """Return the best order that little effort finds."""
    return build(dag, machines, effort=EFFORT).ranks


class JobOrders:
    """The orders of the jobs that have arrived: `priority` [T] of the tasks of a table (`waiting.TaskOrder`).

    The tasks of a stage start by their number, whatever the order would have of them: for a scheduler they are alike.
    """

    def __init__(self, table: StageTable, capacity: Floats, make: MakeRanks) -> None:
        """Take the machines' capacity [N, R] and who finds orders."""
        self._table, self._capacity, self._make = table, capacity, make
        self.priority = np.ones(len(table.durations))

    def arrive(self, job: int, active: int) -> None:
        """Find the order of a job, which shares the machines with all that are `active`.

        Its part is 1 / sqrt(active) of them: while a job runs it has more than an even part, as those with little left
        go first (docs/results/graphene.md). Tasks take what the scheduler expects. Where machines differ, they are
        taken to be all as large as can be.
        """
        table = self._table
        stages = np.flatnonzero(table.job == job)
        demand = table.seen[stages].copy()
        column = np.where(table.source[stages] == _SHUFFLE, NETWORK_IN_INDEX, DISK_READ_INDEX)
        demand[np.arange(len(stages)), column] += table.reading[stages]
        capacity = self._capacity.max(axis=0)
        columns = counting(demand, capacity)
        dag = Dag(
            [
                Stage(
                    str(stage),
                    np.full(table.tasks[stage], table.expected[stage]),
                    demand[place, columns],
                    tuple(
                        Parent(str(parent), parent in table.one_to_one.get(stage, ()))
                        for parent in table.parents[stage].tolist()
                    ),
                )
                for place, stage in enumerate(stages.tolist())
            ]
        )
        share = max(round(len(self._capacity) / math.sqrt(active)), 1)
        for stage, of_stage in zip(
            stages.tolist(), priorities(self._make(dag, Machines(share, capacity[columns]))), strict=True
        ):
            first = table.first_task[stage]
            self.priority[first : first + len(of_stage)] = of_stage

    def of(self, classes: Rows, count: Counts) -> TaskOrder:
        """Return the order of these classes (rows of the table), of which so many tasks wait [C]."""
        table = self._table
        return TaskOrder(
            priority=self.priority,
            next=table.first_task[classes] + table.tasks[classes] - count,
            dag=table.job[classes],
        )


def priorities(ranks: Ranks) -> list[Floats]:
    """Return 1 for the tasks with the least rank and less for each later one, above 0; of each stage in that order.

    It is 1 - place / tasks; equal ranks have the place of the first of them (Graphene, 5).
    """
    every = np.sort(np.concatenate([np.asarray(stage_ranks, dtype=float) for stage_ranks in ranks]))
    return [1.0 - np.searchsorted(every, np.sort(stage_ranks)) / len(every) for stage_ranks in ranks]
