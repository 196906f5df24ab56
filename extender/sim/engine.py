"""The clock: what arrives and ends, what a scheduler then starts, and how fast it all goes.

Time goes in steps. A step takes in what has arrived and ended, opens the stages that waited for it, lets the scheduler
plan if something changed or the time has come for which it asked, starts what it decided, and shares the machines anew.
With heartbeats a step is at a multiple of the period: what ends in between ends at its exact time, but is known at the
next heartbeat only. Steps at which nothing would happen are left out.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from extender.cluster.resources import DIMENSIONS
from extender.cluster.snapshot import Layout, Nominations, Snapshot, read_only
from extender.errors import DovetailError
from extender.planner import Scheduler
from extender.sim.backlog import Backlog
from extender.sim.journal import Journal
from extender.sim.measures import Recorder
from extender.sim.outcome import Outcome, Speed
from extender.sim.running import DONE_SECONDS, RunningTasks, Starts
from extender.sim.stages import table_of
from extender.sim.workload import Machines, Workload

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Counts = NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Told how many tasks have ended, of how many."""

_MEMORY = DIMENSIONS.index("memory")
_TELLINGS = 200


@dataclass(frozen=True, slots=True)
class Settings:
    """How to simulate.

    `heartbeat_seconds`: as often as Hadoop's machines report; 0 means that every event is a step of its own. `loss`:
    the goodput that contention wastes (contention.factors). Points of time series are at least `sample_seconds` apart,
    and there are at most `points`.
    """

    heartbeat_seconds: float = 3.0
    loss: float = 0.0
    sample_seconds: float = 1.0
    points: int = 1000

    def __post_init__(self) -> None:
        if not (self.heartbeat_seconds >= 0 and self.loss >= 0 and self.sample_seconds > 0 and self.points >= 2):
            raise DovetailError(
                "heartbeat_seconds: 0 or more; loss: 0 or more; sample_seconds: above 0; points: 2 or more"
            )


def run(
    workload: Workload,
    machines: Machines,
    scheduler: Scheduler,
    *,
    seed: int,
    settings: Settings | None = None,
    policy: str = "",
    progress: Progress | None = None,
) -> Outcome:
    """Return what comes of a workload when this scheduler decides; `policy` is its name there, else its class's.

    Raises DovetailError, naming the class, for a stage that fits no machine, a decision that cannot be carried out, and
    where nothing can happen any more but tasks wait.
    """
    began = time.perf_counter()
    simulation = _Simulation(workload, machines, scheduler, seed, settings or Settings())
    tell = _seldom(progress, workload.tasks) if progress else None
    while simulation.step():
        if tell:
            tell(simulation.journal.tasks_ended)
    wall_seconds = time.perf_counter() - began
    return simulation.outcome(workload, policy or type(scheduler).__name__, machines, seed, wall_seconds)


def _seldom(progress: Progress, total: int) -> Callable[[int], None]:
    told = -1

    def tell(done: int) -> None:
        nonlocal told
        if done * _TELLINGS // max(total, 1) > told:
            told = done * _TELLINGS // max(total, 1)
            progress(done, total)

    return tell


class _Simulation:
    """A run on its way. It is also the Moment that is measured."""

    def __init__(
        self, workload: Workload, machines: Machines, scheduler: Scheduler, seed: int, settings: Settings
    ) -> None:
        self._table = table_of(workload, machines)
        capacity = np.array(machines.capacity, dtype=np.float64)
        self._backlog = Backlog(self._table, machines, np.random.default_rng(seed))
        self._tasks = RunningTasks(capacity, loss=settings.loss)
        self._scheduler, self._heartbeat = scheduler, settings.heartbeat_seconds
        self._empty = _empty_snapshot(capacity)
        self._now = self._due(self._backlog.next_arrival) if workload.jobs else 0.0
        self.journal = Journal(self._table, len(capacity))
        self._plans, self._plan_seconds = 0, 0.0
        self._again_at = np.inf
        self._recorder = Recorder(
            capacity=capacity,
            queue=self._table.job_queue,
            queues=len(self._table.queue_names),
            every=max(settings.sample_seconds, self._table.least_seconds(capacity.sum(axis=0)) / settings.points),
            points=settings.points,
            begin=self._now,
        )

    @property
    def running(self) -> int:
        """How many tasks run."""
        return self._tasks.count

    @property
    def demand(self) -> Floats:
        """What tasks want of each machine now [N, R]."""
        return self._tasks.demand

    @property
    def allocated(self) -> Floats:
        """What tasks were promised of each machine [N, R]."""
        return self._tasks.allocated

    @property
    def held(self) -> Floats:
        """What each job's tasks were promised, wherever [J, R]."""
        return self._backlog.held

    @property
    def active(self) -> Rows:
        """The jobs that have arrived and not ended."""
        return self._backlog.active_jobs

    @property
    def waiting(self) -> Counts:
        """How many tasks of each class wait [C]."""
        return self._backlog.count

    @property
    def wanted(self) -> Floats:
        """What a task of each class would take of its machine [C, R]."""
        return self._backlog.wanted

    def used(self) -> Floats:
        """Return what tasks really use of the cluster [R]."""
        return self._tasks.use()

    def step(self) -> bool:
        """Go to the next moment at which something happens; return whether there was one."""
        event = min(self._backlog.next_arrival, self._tasks.next_at, self._again_at)
        if not event < np.inf:
            self._check_done()
            return False
        now = max(self._due(event), self._now)
        self._recorder.between(self._now, now, self)
        self._now = now
        ends = self._tasks.end_due(now)
        if ends is not None:
            self.journal.end(ends)
            self._backlog.end(ends, now)
        arrived = self._backlog.arrive(now)
        if arrived or ends is not None or self._again_at <= now + DONE_SECONDS:
            self._plan(now)
        self._tasks.share(now)
        return True

    def _due(self, event: float) -> float:
        """Return the time of the step that takes in an event."""
        period = self._heartbeat
        return float(np.ceil((event - DONE_SECONDS) / period) * period) if period > 0 else event

    def _plan(self, now: float) -> None:
        """Let the scheduler plan, if anything waits, and start what it decided."""
        self._again_at = np.inf
        if not self._backlog.count.any():
            return
        waiting = self._backlog.waiting(self._tasks.for_reservations())
        snapshot = self._snapshot()
        began = time.perf_counter()
        plan = self._scheduler.plan(snapshot, waiting, now)
        self._plan_seconds += time.perf_counter() - began
        self._plans += 1
        self._again_at = plan.again_at
        if len(plan.assignments):
            starts = self._backlog.start(plan.assignments, now)
            self._tasks.rates = self._backlog.rates.values
            self._backlog.hold(starts, self._tasks.start(starts, now))
            self._check_memory(starts)
            self.journal.start(starts, now)

    def _snapshot(self) -> Snapshot:
        empty = self._empty
        return Snapshot(
            version=self._plans,
            assumed=self.journal.tasks_started,
            layout=empty.layout,
            allocated=read_only(self._tasks.allocated.copy()),
            in_flight=empty.in_flight,
            nominations=empty.nominations,
        )

    def _check_memory(self, starts: Starts) -> None:
        over = self._tasks.allocated[:, _MEMORY] > self._tasks.capacity[:, _MEMORY]
        if over.any():
            node = int(over.argmax())
            last = starts.stage[starts.node == node][-1]
            raise DovetailError(
                f"{self._table.names[last]}: the scheduler starts it on {self._empty.layout.names[node]}, "
                f"whose memory is promised to others"
            )

    def _check_done(self) -> None:
        """Raise if nothing can happen any more but something is left."""
        if self._tasks.count:
            raise DovetailError(
                "nothing that runs makes progress: a scheduler started tasks where there is no capacity"
            )
        if self._backlog.count.any():
            stage = self._backlog.first_waiting
            demand = ", ".join(
                f"{name} {amount:g}" for name, amount in zip(DIMENSIONS, self._table.demand[stage], strict=True)
            )
            raise DovetailError(
                f"{self._table.names[stage]} waits, nothing runs or is to arrive, and the scheduler starts nothing; it "
                f"demands {demand}, and reads {self._table.reading[stage]:g} bytes per second"
            )

    def outcome(self, workload: Workload, policy: str, machines: Machines, seed: int, wall_seconds: float) -> Outcome:
        """Return what came of it all."""
        journal, series = self.journal, self._recorder.series()
        return Outcome(
            workload=workload.name,
            policy=policy,
            machines=machines.name,
            seed=seed,
            makespan=journal.makespan,
            jobs=journal.job_runs(self._recorder.unfairness()),
            tasks=journal.task_runs(),
            locality=journal.locality,
            fullness=self._recorder.fullness(*journal.starting),
            series=replace(series, job_row=self._table.job_place[series.job_row]),
            queue_names=self._table.queue_names,
            least_seconds=self._table.least_seconds(self._tasks.capacity.sum(axis=0)),
            speed=Speed(2 * journal.tasks_ended, journal.tasks_started, self._plans, wall_seconds, self._plan_seconds),
        )


def _empty_snapshot(capacity: Floats) -> Snapshot:
    width = max(4, len(str(len(capacity) - 1)))
    names = tuple(f"m{row:0{width}d}" for row in range(len(capacity)))
    nothing = read_only(np.zeros_like(capacity))
    return Snapshot(
        version=0,
        assumed=0,
        layout=Layout(
            names=names,
            rows={name: row for row, name in enumerate(names)},
            axis=DIMENSIONS,
            columns={name: column for column, name in enumerate(DIMENSIONS)},
            capacity=read_only(capacity.copy()),
        ),
        allocated=nothing,
        in_flight=nothing,
        nominations=Nominations((), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), nothing[:0]),
    )
