"""A cluster at work: what there is to do on it, what runs, how fast it goes, and what became of it all.

Whose clock it is, and who decides what starts where, is the caller's: the simulator's engine, or pods of a real cluster
whose machines are simulated.
"""

from dataclasses import replace

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.resources import MEMORY_INDEX
from extender.errors import DovetailError
from extender.planner import Assignments
from lab.sim.engine.backlog import Backlog
from lab.sim.engine.journal import Journal
from lab.sim.engine.measures import Recorder
from lab.sim.engine.outcome import Outcome, Speed
from lab.sim.engine.running import Ends, RunningTasks, Starts
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import Machines, Workload

_MEMORY = MEMORY_INDEX


def machine_names(count: int) -> tuple[str, ...]:
    """Return what so many machines are called, in the order of their names."""
    width = max(4, len(str(count - 1)))
    return tuple(f"m{row:0{width}d}" for row in range(count))


class World:
    """The jobs of a workload and the machines, from `begin` on. It is also the Moment that is measured.

    Blocks are placed by `seed`. `loss`: the goodput that contention wastes (contention.factors). Points of time series
    are at least `sample_seconds` apart, and there are at most `points`.
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
    ) -> None:
        self.table = table_of(workload, machines)
        capacity = np.array(machines.capacity, dtype=np.float64)
        self.backlog = Backlog(self.table, machines, np.random.default_rng(seed))
        self.tasks = RunningTasks(capacity, loss=loss)
        self.journal = Journal(self.table, len(capacity))
        self.now = begin
        self._of = workload.name, machines.name, seed
        self._recorder = Recorder(
            capacity=capacity,
            queue=self.table.job_queue,
            queues=len(self.table.queue_names),
            every=max(sample_seconds, self.table.least_seconds(capacity.sum(axis=0)) / points),
            points=points,
            begin=begin,
        )

    @property
    def running(self) -> int:
        """How many tasks run."""
        return self.tasks.count

    @property
    def demand(self) -> Floats:
        """What tasks want of each machine now [N, R]."""
        return self.tasks.demand

    @property
    def allocated(self) -> Floats:
        """What tasks were promised of each machine [N, R]."""
        return self.tasks.allocated

    @property
    def held(self) -> Floats:
        """What each job's tasks were promised, wherever [J, R]."""
        return self.backlog.held

    @property
    def active(self) -> Rows:
        """The jobs that have arrived and not ended."""
        return self.backlog.active_jobs

    @property
    def waiting(self) -> Counts:
        """How many tasks of each class wait [C]."""
        return self.backlog.count

    @property
    def wanted(self) -> Floats:
        """What a task of each class would take of its machine [C, R]."""
        return self.backlog.wanted

    def used(self) -> Floats:
        """Return what tasks really use of the cluster [R]."""
        return self.tasks.use()

    def pass_to(self, now: float) -> Ends | None:
        """Let time pass, in which nothing starts; return the tasks whose work is done by now.

        Their machines are free. What waits for them (`backlog.end`) learns of it from the caller, now or later.
        """
        self._recorder.between(self.now, now, self)
        self.now = now
        ends = self.tasks.end_due(now)
        if ends is not None:
            self.journal.end(ends)
        return ends

    def start(self, assignments: Assignments) -> Starts:
        """Start what was decided. Raises DovetailError for what cannot be started."""
        starts = self.backlog.start(assignments, self.now)
        self.tasks.rates = self.backlog.rates.values
        self.backlog.hold(starts, self.tasks.start(starts, self.now))
        self._check_memory(starts)
        self.journal.start(starts, self.now)
        return starts

    def share(self) -> None:
        """Give every task its rates from now on."""
        self.tasks.share(self.now)

    def _check_memory(self, starts: Starts) -> None:
        over = self.tasks.allocated[:, _MEMORY] > self.tasks.capacity[:, _MEMORY]
        if over.any():
            node = int(over.argmax())
            last = starts.stage[starts.node == node][-1]
            raise DovetailError(
                f"{self.table.names[last]}: the scheduler starts it on {machine_names(len(over))[node]}, "
                f"whose memory is promised to others"
            )

    def outcome(self, policy: str, speed: Speed) -> Outcome:
        """Return what came of it all, once every task has ended; `policy` is who decided, `speed` how fast that was."""
        journal, series = self.journal, self._recorder.series()
        name, machines, seed = self._of
        return Outcome(
            workload=name,
            policy=policy,
            machines=machines,
            seed=seed,
            makespan=journal.makespan,
            jobs=journal.job_runs(self._recorder.unfairness()),
            tasks=journal.task_runs(),
            locality=journal.locality,
            fullness=self._recorder.fullness(*journal.starting),
            series=replace(series, job_row=self.table.job_place[series.job_row]),
            queue_names=self.table.queue_names,
            least_seconds=self.table.least_seconds(self.tasks.capacity.sum(axis=0)),
            speed=speed,
        )
