"""What waits: the jobs that have arrived, their stages that may begin, and their tasks that have not started.

Arrays over all jobs [J], stages [S] and tasks [T] of a table; what the scheduler sees are the open ones.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Floats, Rows
from extender.cluster.resources import DIMENSIONS, DISK_READ_INDEX, NETWORK_IN_INDEX
from extender.cluster.waiting import Inputs, Jobs, Running, Waiting
from extender.planner import Assignments
from extender.policy.remaining import remaining_work
from lab.sim.engine.assigned import Chosen, Offer, checked
from lab.sim.engine.inputs import LiveBlocks, Pool, copies_of, shuffle
from lab.sim.engine.opened import Opened, opened_of
from lab.sim.engine.running import DONE_SECONDS, Ends, Starts
from lab.sim.workloads.stages import SOURCES, Table
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, Machines

_BLOCKS, _SHUFFLE = SOURCES.index(BLOCKS), SOURCES.index(SHUFFLE)
_READ, _IN = DISK_READ_INDEX, NETWORK_IN_INDEX
_NOT_OPEN = -1

Number = TypeVar("Number", np.bool_, np.intp)


class Backlog:
    """All jobs of a table as time goes by. Blocks are placed at the beginning, with chance from `random`."""

    def __init__(self, table: Table, machines: Machines, random: np.random.Generator) -> None:
        stages, jobs, tasks = len(table.tasks), len(table.job_names), len(table.durations)
        nodes = len(machines.capacity)
        self.table = table
        self.held = np.zeros((jobs, len(DIMENSIONS)))
        self._active = np.zeros(jobs, dtype=np.bool_)
        self.rates, self._ran, self._local = Pool(nodes, np.float64), Pool(nodes, np.int64), Pool(nodes, np.int64)
        self._nodes = nodes
        self._topology = None if machines.racks is None else machines.racks[np.newaxis, :]
        self._demand = np.ascontiguousarray(table.demand.T)
        self._work = remaining_work(table.work, table.tasks, table.job, jobs)
        self._busy = np.zeros(len(DIMENSIONS))
        self._path = np.zeros(jobs)
        self._over = np.zeros(stages, dtype=np.bool_)
        self._stage_range = np.searchsorted(table.job, np.arange(jobs + 1)).tolist()
        self._copies = copies_of(table, machines, random)
        self._free = np.ones(tasks, dtype=np.bool_)
        self._scratch = np.empty(tasks, dtype=np.intp)
        self._next = table.first_task.copy()
        self._count = np.zeros(stages, dtype=np.int64)
        self._ended = np.zeros(stages, dtype=np.int64)
        self._since = np.zeros(stages)
        self._inputs: list[Inputs] = [None] * stages
        self._rates_row = np.full(stages, _NOT_OPEN, dtype=np.intp)
        self._local_row = np.full(stages, _NOT_OPEN, dtype=np.intp)
        self._ran_row = np.full(stages, _NOT_OPEN, dtype=np.intp)
        self._parents_left = np.array([len(parents) for parents in table.parents], dtype=np.int64)
        self._readers_left = table.shuffling_children
        self._stages_left = table.job_stages.copy()
        self._by_arrival = np.argsort(table.arrives_at, kind="stable")
        self._arrived = self._over_jobs = 0
        self._open: Opened | None = None

    @property
    def next_arrival(self) -> float:
        """When the next job arrives; infinite if none is to come, or none before another has ended."""
        if self._arrived == len(self._by_arrival) or self._arrived - self._over_jobs >= self.table.at_once:
            return np.inf
        return float(self.table.arrives_at[self._by_arrival[self._arrived]])

    @property
    def classes(self) -> Rows:
        """The open classes [C], as rows of the table; in order, and the same from call to call until one is added."""
        return self._now_open.classes

    @property
    def copies(self) -> Rows:
        """Where each task's block is [T, K], -1 for none."""
        return _view(self._copies)

    @property
    def count(self) -> Counts:
        """How many tasks of each open class wait [C]."""
        return self._count[self._now_open.classes]

    @property
    def wanted(self) -> Floats:
        """What a task of each open class takes of its machine [C, R]; blocks are there, a shuffle is from elsewhere."""
        opened = self._now_open
        wanted = opened.demand.copy()
        shuffles = self.table.source[opened.classes] == _SHUFFLE
        wanted[:, _READ] += np.where(shuffles, 0.0, opened.reading)
        wanted[:, _IN] += np.where(shuffles, opened.reading, 0.0)
        return wanted

    @property
    def active_jobs(self) -> Rows:
        """The jobs that have arrived and not ended, as rows of the table."""
        return self._now_open.jobs

    @property
    def first_waiting(self) -> int:
        """The first class of which a task waits, as a row of the table."""
        classes = self._now_open.classes
        return int(classes[self._count[classes] > 0][0])

    def arrive(self, now: float) -> bool:
        """Take in the jobs that have arrived by now; say whether there were any."""
        before = self._arrived
        while self.next_arrival <= now + DONE_SECONDS:
            job = int(self._by_arrival[self._arrived])
            self._arrived += 1
            self._active[job] = True
            stages = slice(*self._stage_range[job : job + 2])
            self._busy += self.table.tasks[stages] @ self.table.busy[stages]
            self._path[job] = self.table.path[stages].max()
            for stage in range(stages.start, stages.stop):
                if not self._parents_left[stage]:
                    self._begin(stage, now)
        return self._arrived > before

    def end(self, ends: Ends, now: float) -> None:
        """Take note of ended tasks, and open the stages that waited for them."""
        table = self.table
        job = table.job[ends.stage]
        np.subtract.at(self._work, job, table.work[ends.stage])
        self._busy -= table.busy[ends.stage].sum(axis=0)
        np.subtract.at(self.held.reshape(-1), _cells(job), ends.held.ravel())
        np.add.at(self._ended, ends.stage, 1)
        over = self._ended[ends.stage] == table.tasks[ends.stage]
        if over.any():
            for stage in np.unique(ends.stage[over]).tolist():
                self._finish(stage, now)

    def start(self, assignments: Assignments, now: float) -> Starts:
        """Take the assigned tasks off and return them. Raises DovetailError for what cannot be started."""
        opened = self._now_open
        chosen = checked(assignments, self._offer(opened))
        stage = opened.classes[chosen.task_class]
        task = self._take_tasks(chosen, stage)
        np.subtract.at(self._count, stage, 1)
        self._since[stage] = now
        self._note_where(stage, chosen.node)
        return self._starts(stage, task, chosen)

    def hold(self, starts: Starts, held: Floats) -> None:
        """Take note of what the jobs of these tasks hold by them [R, A]."""
        np.add.at(self.held.reshape(-1), _cells(self.table.job[starts.stage]), held.ravel())

    def waiting(self, running: Running) -> Waiting:
        """Return what waits now. What stays as it is from call to call is the same object, by which it can be known."""
        opened = self._now_open
        jobs = Jobs(
            names=opened.job_names,
            queue=opened.queue,
            weight=np.ones(len(opened.jobs)),
            allocated=self.held[opened.jobs],
            work=self._work[opened.jobs],
            queue_names=opened.queue_names,
            queue_weight=opened.queue_weight,
            path=self._path[opened.jobs],
        )
        return Waiting(
            names=opened.names,
            job=opened.job,
            count=self._count[opened.classes],
            demand=opened.demand,
            reading=opened.reading,
            inputs=opened.inputs,
            duration=opened.expected,
            since=self._since[opened.classes],
            finished=self._ended[opened.classes] / opened.tasks,
            jobs=jobs,
            running=running,
            left_seconds=float(self._busy.max()),
            topology=self._topology,
        )

    @property
    def _now_open(self) -> Opened:
        if self._open is None:
            classes, jobs = np.flatnonzero(self._count), np.flatnonzero(self._active)
            self._open = opened_of(self.table, classes, jobs, self._inputs)
        return self._open

    def _begin(self, stage: int, now: float) -> None:
        """Open a stage: all its tasks wait from now on, and it is known where they read."""
        table = self.table
        self._open = None
        self._count[stage] = table.tasks[stage]
        self._since[stage] = now
        if self._readers_left[stage]:
            self._ran_row[stage] = self._ran.take()
        if table.source[stage] == _BLOCKS:
            self._begin_blocks(stage)
        elif table.source[stage] == _SHUFFLE:
            self._begin_shuffle(stage)

    def _begin_blocks(self, stage: int) -> None:
        first, count = int(self.table.first_task[stage]), int(self.table.tasks[stage])
        copies, free = self._copies[first : first + count], self._free[first : first + count]
        self._local_row[stage] = row = self._local.take()
        self._local.values[row] = np.bincount(copies[copies >= 0], minlength=self._nodes)
        self._inputs[stage] = LiveBlocks(_view(copies), _view(free), self._nodes, self._local, row)

    def _begin_shuffle(self, stage: int) -> None:
        parents = self.table.parents[stage]
        ran = self._ran.values[self._ran_row[parents]].sum(axis=0)
        spread = shuffle(ran, float(self.table.reading[stage]))
        self._inputs[stage] = spread
        self._rates_row[stage] = row = self.rates.take()
        self.rates.values[row, spread.nodes] = spread.rates
        self._readers_left[parents] -= 1
        for parent in parents[self._readers_left[parents] == 0].tolist():
            self._ran.give_back(self._ran_row[parent])
            self._ran_row[parent] = _NOT_OPEN

    def _finish(self, stage: int, now: float) -> None:
        """Close a stage, open its children, and close its job if that was the last."""
        table, job = self.table, int(self.table.job[stage])
        self._inputs[stage] = None
        if self._local_row[stage] != _NOT_OPEN:
            self._local.give_back(int(self._local_row[stage]))
        if self._rates_row[stage] != _NOT_OPEN:
            self.rates.give_back(int(self._rates_row[stage]))
        for child in table.children[stage].tolist():
            self._parents_left[child] -= 1
            if not self._parents_left[child]:
                self._begin(child, now)
        stages = slice(*self._stage_range[job : job + 2])
        self._over[stage] = True
        self._path[job] = np.where(self._over[stages], 0.0, table.path[stages]).max()
        self._stages_left[job] -= 1
        if not self._stages_left[job]:
            self._active[job] = False
            self._over_jobs += 1
            self._work[job] = 0.0
            self._open = None

    def _offer(self, opened: Opened) -> Offer:
        table, classes = self.table, opened.classes
        return Offer(
            names=opened.names,
            count=self._count[classes],
            tasks=opened.tasks,
            reads=opened.reads,
            first_task=table.first_task[classes],
            free=self._free,
            copies=self._copies,
            nodes=self._nodes,
            scratch=self._scratch,
        )

    def _take_tasks(self, chosen: Chosen, stage: Rows) -> Rows:
        """Return which tasks go, as rows of the table's: those that were chosen, else the next of their stage."""
        task = chosen.task.copy()
        anyone = np.flatnonzero(chosen.task < 0)
        if len(anyone):
            order = anyone[np.argsort(stage[anyone], kind="stable")]
            of = stage[order]
            first = np.searchsorted(of, of)
            task[order] = self._next[of] + np.arange(len(of)) - first
            np.add.at(self._next, of, 1)
        self._free[task] = False
        reads = np.flatnonzero(chosen.task >= 0)
        if len(reads):
            copies = self._copies[task[reads]]
            cells = self._local_row[stage[reads], None] * self._nodes + copies
            np.subtract.at(self._local.values.reshape(-1), cells[copies >= 0], 1)
        return task

    def _note_where(self, stage: Rows, node: Rows) -> None:
        row = self._ran_row[stage]
        read = row != _NOT_OPEN
        np.add.at(self._ran.values.reshape(-1), row[read] * self._nodes + node[read], 1)

    def _starts(self, stage: Rows, task: Rows, chosen: Chosen) -> Starts:
        """Return what tasks take of their nodes and where they read from, by where they start."""
        table, node = self.table, chosen.node
        reading, spread = table.reading[stage], self._rates_row[stage]
        local = np.where(chosen.source == node, reading, 0.0)
        source = chosen.source
        many = np.flatnonzero(spread >= 0)
        if len(many):
            source = source.copy()
            source[many] = self._nodes
            local[many] = self.rates.values[spread[many], node[many]]
        elsewhere = reading - local
        held = self._demand.take(stage, axis=1)
        held[_READ] += local
        held[_IN] += elsewhere
        return Starts(stage, task, node, source, spread, held, elsewhere, table.durations[task], table.expected[stage])


def _cells(row: Rows) -> Rows:
    """Return where amounts [R, A] belong in a total [., R] that is laid out flat."""
    width = len(DIMENSIONS)
    return np.asarray((row * width + np.arange(width)[:, None]).ravel())


def _view(array: NDArray[Number]) -> NDArray[Number]:
    view = array.view()
    view.setflags(write=False)
    return view
