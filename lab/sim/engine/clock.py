"""The clock: it goes from event to event, lets a scheduler plan, and carries the plan out.

Time goes in steps (`_Simulation.step`). The events are: a job arrives, a term of a task is done, a machine comes,
changes or goes, or the time has come at which the scheduler wants to plan again. With heartbeats a step is at a
multiple of the period: a task that ends in between ends at its exact time, but the scheduler sees that at the next
heartbeat. Steps without an event are left out.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from extender.arrays import Floats, fits, read_only
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import Snapshot, no_nominations
from extender.cluster.resources import DIMENSIONS, DISK_READ
from extender.errors import DovetailError
from extender.explain.amounts import amount
from extender.planner import Scheduler
from lab.sim.dag.job_orders import MakeRanks
from lab.sim.engine.outcome import Outcome, Speed
from lab.sim.engine.running import DONE_SECONDS
from lab.sim.engine.use.sampling import Sampling
from lab.sim.engine.world import World, machine_names
from lab.sim.preemption import PlanWithVictims
from lab.sim.workloads.workload import LOCAL, SOURCES, Machines, Workload, as_declared

Progress = Callable[[int, int], None]
"""Shows how many tasks have ended, of how many."""

_PROGRESS_CALLS = 200
_KILLED_SECONDS = 1.0
"""How long it takes until it is seen that memory has killed somebody."""
_MOST_ROUNDS = 10
"""So many rounds of preemption there are at one moment; then time goes on."""


class Opportunism(Protocol):
    """Runs tasks on what others were promised and do not use, and takes it back."""

    def follow(self, world: World) -> None:
        """Take the world at the beginning."""

    def take_back(self) -> None:
        """Evict and promote, before new regular work."""

    def fill(self) -> None:
        """Start opportunistic tasks, after all regular ones."""

    @property
    def again_at(self) -> float:
        """When there is news of what is used."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How to simulate.

    `heartbeat_seconds`: the time between steps, like the reports of Hadoop's machines; 0: every event is a step of its
    own. `loss`: how much of what contention wastes counts (contention.efficiency). Points of time series are at least
    `sample_seconds` apart, and there are at most `points`. `sampling`: how the use of tasks is measured for opportunism
    (None: as Sampling has it; without opportunism it is not measured); without `io_first` disks and links serve regular
    and opportunistic tasks alike. `cpu_weight`: what an opportunistic task weighs beside a core that a regular one was
    promised, where CPU is short; 0: regular ones get all. With `estimate` tasks are promised what finished ones of
    their stage have used (use/estimates.py), and machines offer what is not used (UsedTasks.counted).
    """

    heartbeat_seconds: float = 3.0
    loss: float = 0.0
    sample_seconds: float = 1.0
    points: int = 1000
    sampling: Sampling | None = None
    io_first: bool = True
    cpu_weight: float = 0.0
    estimate: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.heartbeat_seconds < np.inf:
            raise DovetailError(f"heartbeat: {self.heartbeat_seconds:g} seconds; accepted: a number, 0 or more")
        if not 0 <= self.loss < np.inf:
            raise DovetailError(f"loss: {self.loss:g}; accepted: a number, 0 or more")
        if not (self.sample_seconds > 0 and self.points >= 2):
            raise DovetailError("sample_seconds: above 0; points: 2 or more")


def run(
    workload: Workload,
    machines: Machines,
    scheduler: Scheduler,
    *,
    seed: int,
    settings: SimulationSettings | None = None,
    policy: str = "",
    progress: Progress | None = None,
    follow: Callable[[World], None] | None = None,
    opportunism: Opportunism | None = None,
    order: MakeRanks | None = None,
) -> Outcome:
    """Return the outcome of a workload with this scheduler.

    `policy` is the scheduler's name in the outcome (default: the name of its class). `follow` gets the world at the
    beginning, for a scheduler that needs more than a snapshot. `opportunism` runs tasks on what is promised and not
    used (None: nobody does). `order` finds the order of each job's tasks when it arrives (None: no job has one).
    Raises DovetailError, naming the class, for a stage that fits no machine, for a decision
    that cannot be carried out, and if tasks wait but no event is left.
    """
    began = time.perf_counter()
    chosen = settings or SimulationSettings()
    if opportunism is not None and chosen.sampling is None:
        chosen = replace(chosen, sampling=Sampling())
    simulation = _Simulation(workload, machines, scheduler, seed, chosen, opportunism, order=order)
    if opportunism is not None:
        opportunism.follow(simulation.world)
    if follow is not None:
        follow(simulation.world)
    show = _seldom(progress, workload.tasks) if progress else None
    while simulation.step():
        if show:
            show(simulation.world.journal.tasks_ended)
    wall_seconds = time.perf_counter() - began
    return simulation.world.outcome(policy or type(scheduler).__name__, simulation.speed(wall_seconds))


def _seldom(progress: Progress, total: int) -> Callable[[int], None]:
    """Return a function that shows progress, at most `_PROGRESS_CALLS` times however often it is called."""
    last = -1

    def show(done: int) -> None:
        nonlocal last
        if done * _PROGRESS_CALLS // max(total, 1) > last:
            last = done * _PROGRESS_CALLS // max(total, 1)
            progress(done, total)

    return show


class _Simulation:
    """A run: the world, the scheduler, and when the scheduler wants to plan again."""

    def __init__(
        self,
        workload: Workload,
        machines: Machines,
        scheduler: Scheduler,
        seed: int,
        settings: SimulationSettings,
        opportunism: Opportunism | None = None,
        *,
        order: MakeRanks | None = None,
    ) -> None:
        self._heartbeat = settings.heartbeat_seconds
        first = min((job.arrives_at for job in workload.jobs), default=0.0)
        self.world = World(
            workload,
            machines,
            seed=seed,
            begin=self._due(first) if workload.jobs else 0.0,
            loss=settings.loss,
            sample_seconds=settings.sample_seconds,
            points=settings.points,
            sampling=settings.sampling,
            io_first=settings.io_first,
            cpu_weight=settings.cpu_weight,
            order=order,
            estimate=settings.estimate,
        )
        self._opportunism = opportunism
        self._scheduler = scheduler
        self._empty = empty_snapshot(self.world.tasks.capacity, self.world.table.axis)
        self._plans, self._plan_seconds = 0, 0.0
        self._again_at = np.inf
        self._preempted = -np.inf, 0

    def step(self) -> bool:
        """Go to the next event and handle it; return False if none is left."""
        # 1. Find the next event: a job or a missing task comes, a term of a task ends, or the time of the next plan.
        world = self.world
        event = min(world.backlog.next_event, world.tasks.next_at, world.next_change, self._again_at)
        if not event < np.inf:
            self._check_done()
            return False
        # 2. Let time pass until the step that sees the event; tasks end at their exact times on the way.
        now = max(self._due(event), world.now)
        ends = world.pass_to(now)
        # 3. Open the stages that waited for the ended tasks, and those of the jobs that have arrived. Missing tasks
        #    come. Machines change.
        if ends is not None:
            world.backlog.end(ends, now)
        came = world.backlog.arrive(now) | world.backlog.come(now)
        changed = world.change_nodes(now)
        if changed:
            self._empty = empty_snapshot(world.tasks.capacity, world.table.axis)
        # 4. Plan if anything has changed, or if the time has come; start what was decided.
        if came or changed or ends is not None or self._again_at <= now + DONE_SECONDS:
            self._plan(now)
        # 5. Set the rates of all running tasks until the next event. Whom memory kills is seen a moment later.
        if world.share():
            self._again_at = now + _KILLED_SECONDS
        return True

    def speed(self, wall_seconds: float) -> Speed:
        """Return how fast the run was."""
        journal = self.world.journal
        started, ended = journal.tasks_started, journal.tasks_ended
        return Speed(started + ended, started, self._plans, wall_seconds, self._plan_seconds)

    def _due(self, event: float) -> float:
        """Return the time of the step that sees an event: the event itself, or the next heartbeat."""
        period = self._heartbeat
        if period <= DONE_SECONDS:
            return event
        beat = float(np.ceil((event - DONE_SECONDS) / period) * period)
        return beat if beat >= event - DONE_SECONDS else max(beat + period, event)  # rounding took it below

    def _plan(self, now: float) -> None:
        """Let the scheduler plan if a task waits, and start what it decided; before and after, opportunistic tasks."""
        opportunism = self._opportunism
        self._again_at = np.inf
        if opportunism is None:
            self._plan_regular(now)
            return
        opportunism.take_back()
        self._plan_regular(now)
        opportunism.fill()
        if self.world.running or self.world.backlog.count.any():
            self._again_at = min(self._again_at, opportunism.again_at)

    def _plan_regular(self, now: float) -> None:
        backlog = self.world.backlog
        if not backlog.count.any():
            return
        running, priority = self.world.tasks.for_reservations(), self.world.table.priority
        if priority is not None:
            running = replace(running, priority=priority[self.world.tasks.regular_stages])
        waiting = backlog.waiting(running)
        snapshot = self._snapshot()
        began = time.perf_counter()
        plan = self._scheduler.plan(snapshot, waiting, now)
        self._plan_seconds += time.perf_counter() - began
        self._plans += 1
        self._again_at = plan.again_at
        if len(plan.assignments):  # before victims wait again: the plan's rows are of what waited without them
            self.world.start(plan.assignments)
        if isinstance(plan, PlanWithVictims) and len(plan.victims):
            self.world.preempt(plan.victims)
            self._again_at = self._after_preemption(now)

    def _after_preemption(self, now: float) -> float:
        """Return when to plan for those who were made room for: at once, but not for ever at one moment.

        Where what tasks use counts, and not what they were promised (`estimate`), less room comes free than it seemed,
        and the victim may have it again.
        """
        preempted_at, rounds = self._preempted
        rounds = rounds + 1 if preempted_at == now else 1
        self._preempted = now, rounds
        return now if rounds <= _MOST_ROUNDS else now + _KILLED_SECONDS

    def _snapshot(self) -> Snapshot:
        return replace(
            self._empty,
            version=self._plans,
            assumed=self.world.journal.tasks_started,
            allocated=read_only(self.world.counted.copy()),
        )

    def _check_done(self) -> None:
        """Raise DovetailError if tasks run or wait though no event is left."""
        backlog, table = self.world.backlog, self.world.table
        if held := self.world.held:
            raise DovetailError(
                f"{held} has begun and never goes on: tasks of gangs hold room while others of their gang wait for it, "
                "as the scheduler starts them one by one; accepted: one that starts gangs whole (dovetail, graphene "
                "or tetris), or more machines"
            )
        if self.world.running:
            raise DovetailError(
                "nothing that runs makes progress: a scheduler started tasks where there is no capacity"
            )
        if backlog.count.any():
            raise DovetailError(
                f"{table.names[backlog.first_waiting]} waits, nothing runs or is to arrive, and the scheduler starts "
                f"nothing; {self._asked(backlog.first_waiting)}"
            )

    def _asked(self, stage: int) -> str:
        """Return what a task of a stage that waits for ever asks for, and what of that may be in its way."""
        table, capacity = self.world.table, self.world.tasks.capacity
        demand = zip(table.axis, table.demand[stage].tolist(), strict=True)
        words = ", ".join(f"{name} {amount(name, value)}" for name, value in demand if value > 0)
        parts = []
        if reading := table.reading.item(stage):
            words += f", and reads {amount(DISK_READ, reading)}"
            if table.source[stage] != SOURCES.index(LOCAL):
                parts.append("a planner starts it only where its input can come that fast")
        if table.gang is not None and table.least is not None and table.gang[stage]:
            parts.append(f"{table.least[stage]} of them start together or none")
        large = fits(capacity, table.demand[stage])
        if table.constraint is not None and large.any() and not large[table.allowed[table.constraint[stage]]].any():
            parts.append("node selectors or taints keep it from every machine that has as much")
        if self.world.machines_change:
            parts.append("machines have gone for good: simulate with some that stay")
        return "; ".join((f"a task of it demands {words or 'nothing'}", *parts))


def empty_snapshot(capacity: Floats, axis: tuple[str, ...] = DIMENSIONS) -> Snapshot:
    """Return machines of this capacity [N, R], in the dimensions of `axis` [R], of which nothing is allocated."""
    names = machine_names(len(capacity))
    nothing = read_only(np.zeros_like(capacity))
    return Snapshot(
        version=0,
        assumed=0,
        layout=Layout(
            names=names,
            rows={name: row for row, name in enumerate(names)},
            axis=axis,
            columns={name: column for column, name in enumerate(axis)},
            capacity=read_only(as_declared(capacity)),
        ),
        allocated=nothing,
        in_flight=nothing,
        nominations=no_nominations(len(axis)),
    )
