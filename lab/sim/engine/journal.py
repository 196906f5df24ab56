"""When and where every task and job started and ended; an outcome is made from it."""

import numpy as np

from extender.arrays import Floats, Rows
from lab.sim.engine.outcome import BegunAnew, JobRun, TaskRuns
from lab.sim.engine.running import Ends, Starts
from lab.sim.workloads.stages import StageTable
from lab.sim.workloads.workload import BLOCKS, SOURCES


class Journal:
    """The record of a run over the tasks [T] and jobs [J] of a table; `nodes` is the number of machines."""

    def __init__(self, table: StageTable, nodes: int) -> None:
        tasks, jobs = len(table.durations), len(table.job_names)
        self._table, self._nodes = table, nodes
        self._started, self._ended = np.full(tasks, np.nan), np.full(tasks, np.nan)
        self._node, self._source = np.full(tasks, -1, dtype=np.intp), np.full(tasks, -1, dtype=np.intp)
        self._job_started, self._job_ended = np.full(jobs, np.inf), np.full(jobs, -np.inf)
        self.tasks_started = self.tasks_ended = 0
        self.begun_anew = BegunAnew()

    def start(self, starts: Starts, now: float) -> None:
        """Write down tasks that start."""
        now += 0.0  # the first heartbeat is at -0.0; draws go by that, so it stays so elsewhere
        self._started[starts.task] = now
        self._node[starts.task] = starts.node
        self._source[starts.task] = np.where(starts.source < self._nodes, starts.source, -1)
        job = self._table.job[starts.stage]
        self._job_started[job] = np.minimum(self._job_started[job], now)
        self.tasks_started += len(starts.task)

    def end(self, ends: Ends) -> None:
        """Write down tasks that have ended."""
        self._ended[ends.task] = ends.at
        np.maximum.at(self._job_ended, self._table.job[ends.stage], ends.at)
        self.tasks_ended += len(ends.task)

    def lose(self, tasks: Rows, now: float) -> None:
        """Write down tasks that wait again, their work lost."""
        before, seconds = self.begun_anew, float((now - self._started[tasks]).sum())
        self.begun_anew = BegunAnew(before.times + len(tasks), before.seconds + seconds)

    @property
    def starting(self) -> tuple[float, float]:
        """When the first task started, though it may have begun anew, and the last; both 0 where there are none."""
        return (float(self._job_started.min()), float(self._started.max())) if len(self._started) else (0.0, 0.0)

    @property
    def makespan(self) -> float:
        """From the first arrival to the last end."""
        return float(self._job_ended.max() - self._table.arrives_at.min()) if len(self._job_ended) else 0.0

    @property
    def locality(self) -> float:
        """Which part of the tasks that read a block had it on their own node; NaN where none reads one."""
        reads = (self._table.source == SOURCES.index(BLOCKS))[self._table.stage_of_task]
        return float((self._source[reads] == self._node[reads]).mean()) if reads.any() else float("nan")

    def task_runs(self) -> TaskRuns:
        """Return when and where all tasks ran."""
        table = self._table
        stage = table.stage_place[table.stage_of_task]
        return TaskRuns(stage, table.durations, self._started, self._ended, self._node, self._source)

    def job_runs(self, unfairness: Floats) -> list[JobRun]:
        """Return the times of all jobs, with their `unfairness` [J], in the order of the workload."""
        table, tasks = self._table, self._table.job_tasks
        return [
            JobRun(
                name=table.job_names[job],
                queue=table.queue_names[table.job_queue[job]],
                arrived=float(table.arrives_at[job]),
                started=float(self._job_started[job]),
                ended=float(self._job_ended[job]),
                tasks=int(tasks[job]),
                unfairness=float(unfairness[job]),
            )
            for job in np.argsort(table.job_place).tolist()
        ]
