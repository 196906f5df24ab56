"""A simulated cluster: the backlog, the running tasks, how fast they go, and the record of the run.

The caller owns the clock and decides what starts where. It is the simulator's engine (clock.py), or a real cluster
whose machines are simulated (experiments/cluster/pod_run.py). The order of the calls at one moment:

1. `pass_to` lets time pass until now and takes away the tasks whose work is done.
2. `backlog.end` opens the stages that waited for them; `backlog.arrive` takes in the jobs that have arrived;
   `change_nodes` has machines come and go.
3. `start` starts what was decided.
4. `share` sets the rates of all running tasks until the next moment.
"""

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.resources import DIMENSIONS, MEMORY_INDEX
from extender.errors import DovetailError
from extender.planner import Assignments
from lab.sim.dag.job_orders import JobOrders, MakeRanks
from lab.sim.engine.backlog import StageBacklog
from lab.sim.engine.gangs import Gangs
from lab.sim.engine.journal import Journal
from lab.sim.engine.measures import SeriesRecorder
from lab.sim.engine.outcome import Outcome, Speed
from lab.sim.engine.running import DONE_SECONDS, Ends, RunningTasks, Starts
from lab.sim.engine.use.estimates import StageEstimates
from lab.sim.engine.use.profiles import profiles_of
from lab.sim.engine.use.sampling import Sampling
from lab.sim.engine.use.tasks import UsedTasks
from lab.sim.engine.use.usage import UseRecorder
from lab.sim.workloads.bounds import bounds_of
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import Machines, Workload

_MEMORY = MEMORY_INDEX
_MOST_KILLS = 1000
"""A task that memory has killed so often is killed wherever it is sent: the run ends."""


def machine_names(count: int) -> tuple[str, ...]:
    """Return the names of `count` machines, in the order of the names."""
    width = max(4, len(str(count - 1)))
    return tuple(f"m{row:0{width}d}" for row in range(count))


class World:
    """The jobs of a workload and the machines, from the time `begin` on. It implements `measures.RunState`.

    Blocks are placed by `seed`. `loss`: how much of what contention wastes counts (contention.efficiency). Points of
    time series are at least `sample_seconds` apart, and there are at most `points`. With `sampling`, or where a stage
    says what it uses over time, use is not the promise: then there is `usage`, and tasks can be opportunistic. So it is
    with `estimate`: the next tasks of a stage are promised what finished ones have used. `order` finds the order of
    each job's tasks when it arrives (None: no job has one).
    """

    def __init__(
        self,
        workload: Workload,
        machines: Machines,
        *,
        seed: int,
        begin: float,
        loss: float,
        sample_seconds: float,
        points: int,
        sampling: Sampling | None = None,
        io_first: bool = True,
        cpu_weight: float = 0.0,
        order: MakeRanks | None = None,
        estimate: bool = False,
    ) -> None:
        self.table = table_of(workload, machines)
        self._most = np.array(machines.capacity, dtype=np.float64)
        capacity = self._most.copy()
        orders = None if order is None else JobOrders(self.table, capacity, order)
        self._kills = np.zeros(len(self.table.durations), dtype=np.int64)
        self._estimate = estimate
        estimates = StageEstimates(self.table, machines) if estimate else None
        self.backlog = StageBacklog(self.table, machines, np.random.default_rng(seed), orders, estimates)
        self.tasks: RunningTasks | UsedTasks = RunningTasks(
            capacity, loss=loss, copies=self.backlog.outputs.count, taken=workload.taken
        )
        self.usage: UseRecorder | None = None
        if sampling is not None or self.table.uses or estimate:
            self.tasks = used = UsedTasks(
                capacity,
                profiles_of(self.table),
                loss=loss,
                copies=self.backlog.outputs.count,
                io_first=io_first,
                cpu_weight=cpu_weight,
                measure=estimate,
            )
            self.usage = UseRecorder(used, sampling, len(self.table.durations), begin)
        self.journal = Journal(self.table, len(capacity))
        self._gangs = Gangs(self.table)
        self.now = begin
        self._held = [_MEMORY, *range(len(DIMENSIONS), capacity.shape[1])]
        self._title = workload.name, machines.name, seed
        self._recorder = SeriesRecorder(
            capacity=self._most,
            queue=self.table.job_queue,
            queues=len(self.table.queue_names),
            every=max(sample_seconds, self.table.least_seconds(self._most.sum(axis=0)) / points),
            points=points,
            begin=begin,
            whole=machines.whole,
            shared=machines.total,
            loss=loss,
        )
        self._changes, self._changed = machines.changes, 0
        self.change_nodes(begin)

    @property
    def running(self) -> int:
        """How many tasks run."""
        return self.tasks.count

    @property
    def held(self) -> str:
        """The name of a group of which tasks hold room and wait for others of it; "" if there is none."""
        held = self._gangs.holding(self.tasks.regular_stages)
        return self.table.names[held[0]] if len(held) else ""

    @property
    def demand(self) -> Floats:
        """What tasks want of each machine now [N, R]."""
        return self.tasks.demand

    @property
    def allocated(self) -> Floats:
        """What tasks were promised of each machine [N, R]."""
        return self.tasks.allocated

    @property
    def counted(self) -> Floats:
        """What counts as taken of each machine [N, R]: what was promised, or with estimates what a tracker reports."""
        return self._used_tasks.counted() if self._estimate else self.tasks.allocated

    @property
    def job_allocated(self) -> Floats:
        """What each job's tasks were promised, on any machine [J, R]."""
        return self.backlog.job_allocated

    @property
    def active_jobs(self) -> Rows:
        """The jobs that have arrived and not ended."""
        return self.backlog.active_jobs

    @property
    def waiting(self) -> Counts:
        """How many tasks of each class wait [C]."""
        return self.backlog.count

    @property
    def task_demand(self) -> Floats:
        """What a task of each class would take of its machine [C, R]."""
        return self.backlog.task_demand

    def used(self) -> Floats:
        """Return what tasks really use of the cluster [R]."""
        return self.tasks.use()

    def pass_to(self, now: float) -> Ends | None:
        """Let time pass, in which nothing starts; return the tasks whose work is done by now, None if there are none.

        Their machines are free. The caller reports them to the backlog (`backlog.end`), now or later.
        """
        # 1. Measure the time in which nothing changed.
        self._recorder.between(self.now, now, self)
        if self.usage is not None:
            self.usage.between(self.now, now)
        self.now = now
        # 2. End tasks, and write down when.
        ends = self.tasks.end_due(now)
        if ends is not None:
            self.journal.end(ends)
        return ends

    @property
    def next_change(self) -> float:
        """When a machine comes, changes or goes; infinite if none does, or if there is no work left."""
        left = self.running or self.backlog.count.any() or self.backlog.next_event < np.inf
        return self._changes[self._changed].at if left and self._changed < len(self._changes) else np.inf

    @property
    def machines_change(self) -> bool:
        """Whether machines come, change or go."""
        return len(self._changes) > 0

    def change_nodes(self, now: float) -> bool:
        """Have machines come, change and go; return whether any did. What runs on one that goes waits again."""
        before = self._changed
        while self._changed < len(self._changes) and self._changes[self._changed].at <= now + DONE_SECONDS:
            change = self._changes[self._changed]
            self._changed += 1
            self.tasks.capacity[change.row] = change.capacity
            node = change.node
            allowed = [node is not None and node.allows(constraints) for constraints in self.table.constraints]
            self.backlog.allow(change.row, np.array(allowed, dtype=np.bool_))
            if node is None:
                self._lose(change.row)
        return self._changed > before

    def start(self, assignments: Assignments) -> Starts:
        """Start the assigned tasks. Raises DovetailError for what cannot be started."""
        # 1. Take them off the backlog.
        starts = self.backlog.start(assignments, self.now)
        # 2. Run them on their machines, and count what that allocates to their jobs.
        self.tasks.rates = self.backlog.inputs.rates.values
        self.backlog.allocate(starts, self.tasks.start(starts, self.now))
        self._check_held(starts)
        self._begin_gangs(starts)
        # 3. Write down when and where.
        self.journal.start(starts, self.now)
        if self.usage is not None:
            self.usage.record.start(starts.task, self.now, opportunistic=False)
        return starts

    def share(self) -> bool:
        """Set the rate of every task from now on; return whether memory has killed any: they wait again."""
        self.tasks.share(self.now)
        if self.usage is None:
            return False
        killed = self.usage.tasks.over_memory()
        if len(killed):
            self._count_killed(killed)
            self._come_back(killed, evicted=False)
        return len(killed) > 0

    def _count_killed(self, places: Rows) -> None:
        """Count kills. Raises DovetailError for a task that is killed again and again: it would never end."""
        tasks = self._used_tasks.running
        self._kills[tasks.task[places]] += 1
        often = places[self._kills[tasks.task[places]] >= _MOST_KILLS]
        if len(often):
            stage, node = tasks.stage.item(often[0]), tasks.node.item(often[0])
            memory = float(self._most[node, _MEMORY])
            raise DovetailError(
                f"{self.table.names[stage]}: memory has killed one of its tasks {_MOST_KILLS} times, the last time on "
                f"{machine_names(len(self._most))[node]}, which has {memory:g} bytes; accepted: tasks that declare "
                "about what they use (--know-demands nearer to 1), or machines that all have memory for them"
            )

    # Opportunistic tasks

    def start_opportunistic(self, assignments: Assignments) -> Starts:
        """Start the assigned tasks, allocated nothing. Raises DovetailError for what cannot be started."""
        used = self._used_tasks
        starts = self.backlog.start(assignments, self.now)
        used.rates = self.backlog.inputs.rates.values
        self.backlog.give(starts.stage, used.start(starts, self.now, opportunistic=True))
        self.journal.start(starts, self.now)
        self._begin_gangs(starts)
        self._usage.record.start(starts.task, self.now, opportunistic=True)
        return starts

    def promote(self, places: Rows) -> None:
        """Make these running tasks regular where they are."""
        used = self._used_tasks
        promoted = used.promote(places)
        self.backlog.promote(promoted.stage, used.on_all_nodes(promoted))
        self._usage.record.promoted += len(places)

    def evict(self, places: Rows) -> None:
        """End these running tasks; they wait again, and their work is lost."""
        self._come_back(places, evicted=True)

    @property
    def _usage(self) -> UseRecorder:
        if self.usage is None:
            raise DovetailError("use is the promise in this run: nothing is opportunistic")
        return self.usage

    @property
    def _used_tasks(self) -> UsedTasks:
        return self._usage.tasks

    def _come_back(self, places: Rows, *, evicted: bool) -> None:
        used = self._used_tasks
        tasks = used.take_away(places, self.now)
        self._usage.record.lose(tasks, self.now, evicted=evicted)
        self.journal.lose(tasks.task, self.now)
        amounts = used.on_all_nodes(tasks)
        self.backlog.lose(tasks.stage, tasks.task, tasks.node, amounts, tasks.opportunistic, self.now)
        if not evicted:
            self.tasks.share(self.now)

    def _lose(self, node: int) -> None:
        """Let what runs on a node that is gone wait again, its work lost."""
        if isinstance(self.tasks, UsedTasks):
            self._come_back(np.flatnonzero(self.tasks.running.node == node), evicted=True)
            return
        lost = self.tasks.lose(node, self.now)
        if lost is not None:
            self._wait_again(lost, np.full(len(lost.stage), node, dtype=np.intp))

    def preempt(self, places: Rows) -> None:
        """End these running tasks, places in what `tasks.for_reservations` says; they wait again, their work lost."""
        places = np.sort(places)
        if isinstance(self.tasks, UsedTasks):
            self._come_back(np.flatnonzero(~self.tasks.running.opportunistic)[places], evicted=True)
            return
        nodes = self.tasks.nodes_of(places)
        lost = self.tasks.take_away(places, self.now)
        if lost is not None:
            self._wait_again(lost, nodes)

    def _wait_again(self, lost: Ends, nodes: Rows) -> None:
        self.journal.lose(lost.task, self.now)
        regular = np.zeros(len(lost.stage), dtype=np.bool_)
        self.backlog.lose(lost.stage, lost.task, nodes, lost.job_demand, regular, self.now)

    def _begin_gangs(self, starts: Starts) -> None:
        """Hold tasks of gangs of which too few are there, and let gangs begin of which enough are."""
        held, begun = self._gangs.start(starts, self.backlog.present(starts.stage))
        if len(held):
            self.tasks.hold(held)
        if len(begun):
            self.tasks.begin(begun, self.now)

    def _check_held(self, starts: Starts) -> None:
        """Raise if more is promised than there is of what is never shared: memory, and what is beyond the six.

        A machine that has less than before may still have promised more, until tasks end there. With estimates,
        promises that are not used are made again: there, memory that is not there kills.
        """
        if self._estimate:
            return
        tasks = self.tasks
        over = tasks.allocated[:, self._held] > tasks.capacity[:, self._held]
        if over.any() and over[starts.node].any():
            place, column = (int(place) for place in np.argwhere(over[starts.node])[0])
            node = int(starts.node[place])
            last = starts.stage[starts.node == node][-1]
            raise DovetailError(
                f"{self.table.names[last]}: the scheduler starts it on {machine_names(len(over))[node]}, "
                f"whose {self.table.axis[self._held[column]]} is promised to others"
            )

    def outcome(self, policy: str, speed: Speed) -> Outcome:
        """Return the outcome once every task has ended. `policy` names the scheduler, `speed` is that of the run."""
        journal = self.journal
        workload, machines, seed = self._title
        return Outcome(
            workload=workload,
            policy=policy,
            machines=machines,
            seed=seed,
            makespan=journal.makespan,
            jobs=journal.job_runs(self._recorder.unfairness()),
            tasks=journal.task_runs(),
            locality=journal.locality,
            fullness=self._recorder.fullness(*journal.starting),
            series=self._recorder.series(),
            queue_names=self.table.queue_names,
            axis=self.table.axis,
            begun_anew=journal.begun_anew,
            bounds=bounds_of(self.table, self._most.sum(axis=0)),
            speed=speed,
            opportunistic=None if self.usage is None else self.usage.record.outcome(self._opened()),
        )

    def _opened(self) -> Floats:
        """Return when the stage of each task was opened [T]."""
        return self.backlog.opened[self.table.stage_of_task]
