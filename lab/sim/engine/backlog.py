"""What waits: the jobs that have arrived, their stages that may begin, and their tasks that have not started.

Arrays over all jobs [J], stages [S] and tasks [T] of a table. The scheduler sees the open classes [C]: the stages that
have begun and of which a task waits.
"""

from collections import deque

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.resources import DISK_READ_INDEX, NETWORK_IN_INDEX
from extender.cluster.waiting import Jobs, Running, Waiting
from extender.errors import DovetailError
from extender.planner import Assignments
from extender.policy.remaining import remaining_work
from lab.sim.dag.job_orders import JobOrders
from lab.sim.engine.assignment_check import CheckedAssignments, WaitingTasks, check_assignments
from lab.sim.engine.job_backoff import JobBackoff
from lab.sim.engine.late_tasks import LateTasks
from lab.sim.engine.machine_waves import waves_on
from lab.sim.engine.open_classes import OpenClasses, as_served, open_classes_of
from lab.sim.engine.outputs import OutputCopies
from lab.sim.engine.running import DONE_SECONDS, Ends, Starts
from lab.sim.engine.stage_inputs import StageInputs, read_only_view
from lab.sim.engine.task_edges import TaskEdges
from lab.sim.engine.use.estimates import StageEstimates
from lab.sim.workloads.stages import StageTable
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, SOURCES, UNLIMITED, Machines

_BLOCKS, _SHUFFLE = SOURCES.index(BLOCKS), SOURCES.index(SHUFFLE)
_READ, _IN = DISK_READ_INDEX, NETWORK_IN_INDEX


class StageBacklog:
    """All jobs of a table as time goes by. Blocks are placed at the beginning, by `random`.

    `job_allocated` [J, R] is what the running tasks of each job were promised, on any machine, `job_given` [J, R] what
    its opportunistic ones need (None: there are none). `opened` [S] is when each stage began; `inputs` are where the
    tasks of open stages read, `outputs` where their output is copied to; `orders` knows the order of each job's
    tasks (None: nobody does). With `estimates` the next tasks of a stage are promised what those that have ended were
    measured to use (None: what they declare).
    """

    def __init__(
        self,
        table: StageTable,
        machines: Machines,
        random: np.random.Generator,
        orders: JobOrders | None = None,
        estimates: StageEstimates | None = None,
    ) -> None:
        stages, jobs, tasks = len(table.tasks), len(table.job_names), len(table.durations)
        self.table, self.orders, self._estimates = table, orders, estimates
        self.inputs = StageInputs(table, machines, random)
        self.outputs = OutputCopies(table, machines, random)
        self._waves = waves_on(table, machines)
        self._shuffled: Mask | None = None
        if (machines.capacity[:, _READ] < UNLIMITED).any():  # else nobody waits for a disk
            self._shuffled = table.shuffling_children > 0
        self._nodes, self._capacity = len(machines.capacity), machines.capacity
        self._topology = None if machines.racks is None else machines.racks[np.newaxis, :]
        self._demand = np.ascontiguousarray(table.demand.T)
        self._scratch = np.empty(tasks, dtype=np.intp)
        # Jobs.
        self.job_allocated = np.zeros((jobs, table.demand.shape[1]))
        self.job_given: Floats | None = None
        self._active = np.zeros(jobs, dtype=np.bool_)
        self._task_work, self._task_busy = table.work, table.busy
        self._work = remaining_work(table.work, table.tasks, table.job, jobs)
        self._path = np.zeros(jobs)
        self._stages_left = table.job_stages.copy()
        self._stage_range = np.searchsorted(table.job, np.arange(jobs + 1)).tolist()
        self._busy = np.zeros(table.demand.shape[1])
        # Stages.
        self._count = np.zeros(stages, dtype=np.int64)
        self._ended = np.zeros(stages, dtype=np.int64)
        self._over = np.zeros(stages, dtype=np.bool_)
        self._since = np.zeros(stages)
        self.opened = np.full(stages, np.nan)
        self._next_task = table.first_task.copy()
        self._by_row: dict[int, deque[int]] = {}  # tasks that came back or late, or that waited for one task each
        self._edges, self._backoff, self._late = TaskEdges(table), JobBackoff(table), LateTasks(table)
        self._parents_left = np.array([len(parents) for parents in table.parents], dtype=np.int64)
        for child, parents in table.one_to_one.items():
            self._parents_left[child] -= len(parents)
        # Arrivals, and the arrays that stay the same until a job arrives or ends, or a stage opens.
        self._by_arrival = np.argsort(table.arrives_at, kind="stable")
        self._arrived = self._ended_jobs = 0
        self._open: OpenClasses | None = None

    @property
    def next_arrival(self) -> float:
        """The time of the next arrival; infinite if no job is to come, or none may come before another has ended."""
        if self._arrived == len(self._by_arrival) or self._arrived - self._ended_jobs >= self.table.at_once:
            return np.inf
        return float(self.table.arrives_at[self._by_arrival[self._arrived]])

    @property
    def next_event(self) -> float:
        """When a job arrives, or a task that is missing comes; infinite if none is to come."""
        return min(self.next_arrival, self._late.next_at, self._backoff.next_at)

    @property
    def classes(self) -> Rows:
        """The open classes [C], as rows of the table, in order. They change only when a stage opens or a job ends."""
        return self._open_now.rows

    @property
    def copies(self) -> Rows:
        """The machines that hold each task's block [T, K], -1 for none."""
        return read_only_view(self.inputs.copies)

    @property
    def count(self) -> Counts:
        """How many tasks of each open class wait [C]."""
        return self._count[self._open_now.rows]

    def present(self, stages: Rows) -> Counts:
        """Return how many tasks of each of these open stages [A] have started, and not been lost [A]."""
        return np.asarray(self.table.tasks[stages] - self._count[stages] - self._missing(stages))

    @property
    def task_demand(self) -> Floats:
        """What a task of each open class takes of its machine [C, R]: blocks are read there, shuffles elsewhere."""
        classes = self._open_now
        demand = classes.demand.copy()
        shuffles = self.table.source[classes.rows] == _SHUFFLE
        demand[:, _READ] += np.where(shuffles, 0.0, classes.reading)
        demand[:, _IN] += np.where(shuffles, classes.reading, 0.0)
        return demand

    @property
    def active_jobs(self) -> Rows:
        """The jobs that have arrived and not ended, as rows of the table."""
        return self._open_now.jobs

    @property
    def first_waiting(self) -> int:
        """The first class of which a task waits, as a row of the table."""
        classes = self._open_now.rows
        return int(classes[self._count[classes] > 0][0])

    def arrive(self, now: float) -> bool:
        """Take in the jobs that have arrived by now; return whether there were any."""
        before = self._arrived
        jobs: list[int] = []
        while self.next_arrival <= now + DONE_SECONDS:
            # 1. The job is active, and its work counts as work that is left.
            job = int(self._by_arrival[self._arrived])
            self._arrived += 1
            self._active[job] = True
            jobs.append(job)
            stages = slice(*self._stage_range[job : job + 2])
            self._busy += self.table.tasks[stages] @ self._task_busy[stages]
            self._path[job] = self.table.path[stages].max()
            # 2. Its stages without parents begin.
            for stage in range(stages.start, stages.stop):
                if not self._parents_left[stage]:
                    self._begin(stage, now)
        # 3. Their tasks are put in order, when it is known who shares the machines.
        if self.orders is not None:
            for job in jobs:
                self.orders.arrive(job, int(self._active.sum()))
        return self._arrived > before

    def end(self, ends: Ends, now: float) -> None:
        """Note that tasks have ended, and open the stages that waited for them."""
        # 1. Their work is done, and their jobs hold less.
        table = self.table
        job = table.job[ends.stage]
        np.subtract.at(self._work, job, self._task_work[ends.stage])
        self._busy -= self._task_busy[ends.stage].sum(axis=0)
        self._hold_less(job, ends.job_demand, ends.opportunistic)
        self._backoff.end(job)
        # 2. Stages of which every task has ended are over.
        np.add.at(self._ended, ends.stage, 1)
        if self._estimates is not None:
            self._estimate(self._estimates, self._estimates.end(ends))
        for stage, task in self._edges.end(ends.stage, ends.task):
            self._let(stage, [task], now)
        over = self._ended[ends.stage] == table.tasks[ends.stage]
        if over.any():
            for stage in np.unique(ends.stage[over]).tolist():
                self._finish(stage, now)

    def start(self, assignments: Assignments, now: float) -> Starts:
        """Take the assigned tasks off the backlog and return them. Raises DovetailError for what cannot be started."""
        # 1. Check the decision against what waits.
        classes = self._open_now
        checked = check_assignments(assignments, self._waiting_tasks(classes))
        if classes.barred is not None and classes.barred[checked.task_class, checked.node].any():
            place = int(classes.barred[checked.task_class, checked.node].argmax())
            name, node = classes.names[checked.task_class[place]], checked.node[place]
            raise DovetailError(f"{name}: the scheduler starts it on node {node}, where it may not go")
        # 2. Choose tasks for the assignments that take any task of their stage.
        stage = classes.rows[checked.task_class]
        task = self._tasks(checked, stage)
        # 3. The tasks wait no longer.
        np.subtract.at(self._count, stage, 1)
        self._since[stage] = now
        self.inputs.start(stage, task, checked.node, checked.task >= 0)
        return self._starts(stage, task, checked)

    def allocate(self, starts: Starts, amounts: Floats) -> None:
        """Note what was promised to the jobs of these tasks [R, A]."""
        np.add.at(self.job_allocated.reshape(-1), _cells(self.table.job[starts.stage], len(amounts)), amounts.ravel())

    def give(self, stage: Rows, amounts: Floats) -> None:
        """Note what opportunistic tasks of these stages [A] need [R, A]."""
        if self.job_given is None:
            self.job_given = np.zeros_like(self.job_allocated)
        np.add.at(self.job_given.reshape(-1), _cells(self.table.job[stage], len(amounts)), amounts.ravel())

    def promote(self, stage: Rows, amounts: Floats) -> None:
        """Note that opportunistic tasks of these stages [A] are regular now, with all that they need [R, A]."""
        job = self.table.job[stage]
        self._hold_less(job, amounts, np.ones(len(job), dtype=np.bool_))
        np.add.at(self.job_allocated.reshape(-1), _cells(job, len(amounts)), amounts.ravel())

    def lose(self, stage: Rows, task: Rows, node: Rows, amounts: Floats, opportunistic: Mask, now: float) -> None:
        """Note that tasks [A] on these nodes have lost their work; `amounts` [R, A] they hold no longer.

        They wait again, those of Jobs when they are made.
        """
        self._hold_less(self.table.job[stage], amounts, opportunistic)
        there = ~self._backoff.lose(stage, task, node, now)
        self._come_back(stage[there], task[there], node[there])

    def come(self, now: float) -> bool:
        """Let the tasks wait that were missing and are there by `now`; return whether there are any."""
        late, made = (missing.next_at <= now + DONE_SECONDS for missing in (self._late, self._backoff))
        for stage, task in self._late.come(now) if late else ():
            self._let(stage, [task], now)
        if made:
            self._come_back(*self._backoff.made(now))
        return late or made

    def _missing(self, stages: Rows) -> Counts:
        """Return how many tasks of each of these open stages [A] are not there yet [A]."""
        return self._late.missing[stages] + self._backoff.missing[stages]

    def _come_back(self, stage: Rows, task: Rows, node: Rows) -> None:
        np.add.at(self._count, stage, 1)
        self.inputs.come_back(stage, task, node)
        for row, number in zip(stage.tolist(), task.tolist(), strict=True):
            if self.table.source[row] != _BLOCKS:
                self._by_row.setdefault(row, deque()).append(number)
        self._open = None

    def allow(self, node: int, allowed: Mask) -> None:
        """Say stages of which constraints may go to a node from now on [K]."""
        self.table.allowed[:, node] = allowed
        self._open = None

    def _hold_less(self, job: Rows, amounts: Floats, opportunistic: Mask | None) -> None:
        """Take what tasks of these jobs held [R, A] off the book in which it was."""
        if opportunistic is None or self.job_given is None or not opportunistic.any():
            np.subtract.at(self.job_allocated.reshape(-1), _cells(job, len(amounts)), amounts.ravel())
            return
        for book, chosen in ((self.job_allocated, ~opportunistic), (self.job_given, opportunistic)):
            np.subtract.at(book.reshape(-1), _cells(job[chosen], len(amounts)), amounts[:, chosen].ravel())

    def waiting(self, running: Running) -> Waiting:
        """Return what waits now. Arrays that did not change since the last call are the same objects as then."""
        classes = self._open_now
        jobs = Jobs(
            names=classes.job_names,
            queue=classes.queue,
            weight=np.ones(len(classes.jobs)),
            allocated=self.job_allocated[classes.jobs],
            work=self._work[classes.jobs],
            queue_names=classes.queue_names,
            queue_weight=classes.queue_weight,
            path=self._path[classes.jobs],
            groups=classes.groups,
            opportunistic=None if self.job_given is None else self.job_given[classes.jobs],
        )
        return Waiting(
            names=classes.names,
            job=classes.job,
            count=self._count[classes.rows],
            demand=classes.demand,
            reading=classes.reading,
            inputs=classes.inputs,
            duration=classes.expected,
            since=self._since[classes.rows],
            finished=self._ended[classes.rows] / classes.tasks,
            jobs=jobs,
            running=running,
            left_seconds=float(self._busy.max()),
            priority=classes.priority,
            barred=classes.barred,
            gang=classes.gang,
            gang_least=None if classes.gang is None else self._gang_least(classes.rows[classes.gang >= 0]),
            topology=self._topology,
            shuffled=None if self._shuffled is None else self._shuffled[classes.rows],
            order=None
            if self.orders is None
            else self.orders.of(
                classes.rows, (self._count + self._edges.blocked)[classes.rows] + self._missing(classes.rows)
            ),
        )

    def _gang_least(self, stages: Rows) -> Counts:
        """Return how many tasks of each of these gangs must start with the next that does [G]."""
        table = self.table
        least = table.tasks if table.least is None else table.least
        return np.asarray(np.maximum(least[stages] - self.present(stages), 0))

    @property
    def _open_now(self) -> OpenClasses:
        if self._open is None:
            classes, jobs = np.flatnonzero(self._count), np.flatnonzero(self._active)
            self._open = open_classes_of(self.table, classes, jobs, self.inputs.by_stage)
            if self._estimates is not None:
                self._open = self._estimates.of_classes(self._open)
            self._open = as_served(self._open, self._capacity)
        return self._open

    def _estimate(self, estimates: StageEstimates, stages: Rows) -> None:
        """Go by the new estimates of these stages: what their next tasks are promised, and what work is left."""
        if not len(stages):
            return
        left = self.table.tasks[stages] - self._ended[stages]
        busy = estimates.busy.copy()
        more = busy[stages] - self._task_busy[stages]
        np.add.at(self._work, self.table.job[stages], more.sum(axis=1) * left)
        self._busy += (left * self._active[self.table.job[stages]]) @ more  # of jobs to come it counts when they do
        self._task_busy, self._task_work, self._open = busy, busy.sum(axis=1), None

    def _begin(self, stage: int, now: float) -> None:
        """Open a stage: all its tasks wait from now on, but for those that wait for a task each."""
        if stage in self._edges:
            self._let(stage, self._edges.begin(stage), now)
            return
        if stage in self._late:
            self._late.begin(stage, now)
            return
        self._open = None
        self._count[stage] = self.table.tasks[stage]
        self._since[stage] = self.opened[stage] = now
        self.inputs.open(stage)

    def _let(self, stage: int, tasks: list[int], now: float) -> None:
        """Let these tasks of a stage wait from now on, rows of the table: the tasks that they waited for have ended."""
        if not tasks:
            return
        if np.isnan(self.opened[stage]):
            self._since[stage] = self.opened[stage] = now
            self.inputs.open(stage)
        if not self._count[stage]:
            self._open = None
        self._count[stage] += len(tasks)
        self._by_row.setdefault(stage, deque()).extend(tasks)

    def _finish(self, stage: int, now: float) -> None:
        """Close a stage, open the stages that waited for it alone, and close its job if it was the last."""
        # 1. Close the stage.
        table, job = self.table, int(self.table.job[stage])
        self.inputs.close(stage)
        # 2. Open the children of which all parents are over.
        for child in table.children[stage].tolist():
            if stage in table.one_to_one.get(child, ()):
                continue
            self._parents_left[child] -= 1
            if not self._parents_left[child]:
                self._begin(child, now)
        # 3. The longest chain of stages that the job has left is shorter.
        stages = slice(*self._stage_range[job : job + 2])
        self._over[stage] = True
        self._path[job] = np.where(self._over[stages], 0.0, table.path[stages]).max()
        # 4. Close the job after its last stage.
        self._stages_left[job] -= 1
        if not self._stages_left[job]:
            self._active[job] = False
            self._ended_jobs += 1
            self._work[job] = 0.0
            self._open = None

    def _waiting_tasks(self, classes: OpenClasses) -> WaitingTasks:
        return WaitingTasks(
            names=classes.names,
            count=self._count[classes.rows],
            tasks=classes.tasks,
            reads=classes.reads,
            first_task=self.table.first_task[classes.rows],
            unstarted=self.inputs.unstarted,
            copies=self.inputs.copies,
            nodes=self._nodes,
            scratch=self._scratch,
        )

    def _tasks(self, checked: CheckedAssignments, stage: Rows) -> Rows:
        """Return the tasks that start, as rows of the table: the chosen ones, else the next of their stage."""
        task = checked.task.copy()
        unchosen = np.flatnonzero(task < 0)
        if self._by_row and len(task):
            unchosen = self._again(task, stage, unchosen)
        if len(unchosen):
            # Sorted by stage, the k-th assignment of a stage takes the k-th task from the stage's next one.
            order = unchosen[np.argsort(stage[unchosen], kind="stable")]
            stage_in_order = stage[order]
            first = np.searchsorted(stage_in_order, stage_in_order)
            task[order] = self._next_task[stage_in_order] + np.arange(len(order)) - first
            np.add.at(self._next_task, stage_in_order, 1)
        return task

    def _again(self, task: Rows, stage: Rows, unchosen: Rows) -> Rows:
        """Choose tasks that wait by row first, in the order in which they came; return for whom there is none."""
        left = []
        for place in unchosen.tolist():
            returned = self._by_row.get(stage.item(place))
            if not returned:
                left.append(place)
                continue
            task[place] = returned.popleft()
            if not returned:
                del self._by_row[stage.item(place)]
        return np.array(left, dtype=np.intp)

    def _starts(self, stage: Rows, task: Rows, checked: CheckedAssignments) -> Starts:
        """Return what the tasks take of their nodes and where they read from."""
        # 1. A task that reads one block reads all of it on its own node, or none of it.
        table, node, source = self.table, checked.node, checked.source
        reading, rates_row = table.reading[stage], self.inputs.rates_row(stage)
        local = np.where(source == node, reading, 0.0)
        # 2. A task that shuffles reads part of its input on its own node; its source is the row after the last node.
        shuffling = np.flatnonzero(rates_row >= 0)
        if len(shuffling):
            source = source.copy()
            source[shuffling] = self._nodes
            local[shuffling] = self.inputs.shuffle_rate(rates_row[shuffling], node[shuffling])
        # 3. What is read on the node takes its disk, the rest its network.
        elsewhere = reading - local
        node_demand = self._demand.take(stage, axis=1)
        node_demand[_READ] += local
        node_demand[_IN] += elsewhere
        return Starts(
            stage=stage,
            task=task,
            node=node,
            source=source,
            rates_row=rates_row,
            node_demand=node_demand,
            elsewhere=elsewhere,
            copies=self.outputs.of(stage, task, node),
            seconds=table.durations[task] if self._waves is None else self._waves.seconds(stage, task, node),
            expected=table.expected[stage],
            promised=None if self._estimates is None else self._estimates.promised(stage, local),
        )


def _cells(row: Rows, width: int) -> Rows:
    """Return the places of amounts [R, A] in a flat total [., R], where `row` [A] are rows of the total."""
    return np.asarray((row * width + np.arange(width)[:, None]).ravel())
