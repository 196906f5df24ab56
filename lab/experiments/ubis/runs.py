"""One run of the UBIS experiment as a value, and the figures that are kept of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import CPU_INDEX
from extender.control.preemption.overload import Limits, Pressure
from extender.planner import Planner, Scheduler
from lab.experiments.ubis.alibaba_jobs import AlibabaJobs
from lab.experiments.ubis.jobs import Pipelines, SleepJobs, chain_seconds
from lab.sim.engine import clock
from lab.sim.engine.outcome import Outcome
from lab.sim.engine.use.record import OpportunisticOutcome
from lab.sim.engine.use.sampling import Sampling
from lab.sim.opportunistic.ubis import Ubis, UbisSettings
from lab.sim.parallel import Tell
from lab.sim.schedulers.bound import CpuAndMemory
from lab.sim.workloads.workload import Workload

HEARTBEAT_SECONDS = 1.0
"""Every node reports every second (5.A), in runs with and without opportunistic tasks alike."""

_POINTS = 200


@dataclass(frozen=True, slots=True)
class UbisRun:
    """One run: these jobs, with opportunistic tasks up to `t_alloc` (None: without), and one seed.

    `memory` and `cpu` are T_preempt. Without `io` only CPU and memory are planned; without `io_first` disks and links
    know no order. Jobs in `never` are regular only. With `auto` the predicted peaks stand for `t_alloc`. Without
    `learns`, tasks that are not measured yet count in full. `by_pressure`: for CPU tasks are evicted where regular ones
    wait for it, not where it is full. `cpu_weight` is that of opportunistic ones (clock.SimulationSettings). Without
    `moves` nobody is moved who gets next to nothing.
    """

    jobs: SleepJobs | Pipelines | AlibabaJobs
    t_alloc: float | None
    seed: int
    memory: float = 0.95
    cpu: float = 0.99
    scrape: float = 1.0
    io: bool = True
    io_first: bool = True
    learns: bool = True
    without_gone: bool = True
    never: frozenset[str] = field(default_factory=frozenset)
    at_mean_use: bool = False
    by_pressure: bool = False
    cpu_weight: float = 0.0
    auto: bool = False
    moves: bool = True

    @property
    def name(self) -> str:
        """The name that is shown; different runs have different names."""
        marks = [
            "auto"
            if self.auto
            else "without"
            if self.t_alloc is None
            else f"T_alloc {'at mean use' if self.at_mean_use else self.t_alloc}",
            *([f"T_preempt {self.memory:g}, {self.cpu:g}"] if (self.memory, self.cpu) != (0.95, 0.99) else []),
            *([f"scrapes of {self.scrape:g} s"] if self.scrape != 1.0 else []),
            *([] if self.io else ["without I/O"]),
            *([] if self.io_first else ["disks know no order"]),
            *([] if self.learns else ["in full until measured"]),
            *([] if self.without_gone else ["with who has ended"]),
            *(["by pressure"] if self.by_pressure else []),
            *([f"CPU weight {self.cpu_weight:.3g}"] if self.cpu_weight else []),
            *([] if self.moves else ["nobody moved"]),
            *([f"never {', '.join(sorted(self.never))}"] if self.never else []),
        ]
        return f"{self.jobs.label}: {', '.join(marks)}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class UbisOutcome:
    """The figures of a run.

    `job_seconds` by the jobs of figure 8, from when they could begin to their last end, which is at `job_ends`;
    `task_seconds` is summed over all tasks. `slowdown` is how much longer tasks that started as regular took than with
    what they use (1: no longer), `stretch` [T] the same of each task, as they are in the workload, `waits` the mean
    wait of each job's tasks by name. `use` [R] are parts of the cluster in the mean over the makespan;
    `use_at` and `queues_at` are by the time `at`. `decision_seconds` is the mean time of a regular plan. `chain` is how
    long the makespan is at least: until the longest chain of stages of a job is over. `evicted_for` counts evictions by
    the resource that was short, and those that were moved.
    """

    makespan: float
    job_seconds: dict[str, float]
    job_ends: dict[str, float]
    task_seconds: float
    slowdown: float
    stretch: Floats
    waits: dict[str, float]
    use: Floats
    at: Floats
    use_at: Floats
    queues_at: Floats
    queue_names: tuple[str, ...]
    decision_seconds: float
    counts: OpportunisticOutcome
    chain: float
    evicted_for: dict[str, int] = field(default_factory=dict)

    @property
    def preempted(self) -> float:
        """The percentage of all starts that were evicted, or killed as opportunistic ones."""
        return 100.0 * (self.counts.evicted + self.counts.killed_opportunistic) / self.counts.starts


def perform(run: UbisRun, progress: Tell) -> UbisOutcome:
    """Return the figures of a run. Raises DovetailError."""
    if run.at_mean_use:
        alone = perform(replace(run, t_alloc=None, at_mean_use=False), progress)
        run = replace(run, t_alloc=float(alone.use[CPU_INDEX]), at_mean_use=False)
    workload, machines = run.jobs.workload(run.seed), run.jobs.machines
    scheduler: Scheduler = Planner() if run.io else CpuAndMemory(Planner())
    opportunism = None
    if run.t_alloc is not None or run.auto:
        pressure = Pressure(floor=run.t_alloc or 0.8) if run.by_pressure else None
        limits = Limits.of(cpu=run.cpu, memory=run.memory, pressure=pressure)
        opportunism = Ubis(
            UbisSettings(
                run.t_alloc or 0.0,
                limits,
                run.never,
                learns=run.learns,
                io=run.io,
                without_gone=run.without_gone,
                auto=run.auto,
                moves=run.moves,
            )
        )
    settings = clock.SimulationSettings(
        heartbeat_seconds=HEARTBEAT_SECONDS,
        points=_POINTS,
        sampling=Sampling(run.scrape),
        io_first=run.io_first,
        cpu_weight=run.cpu_weight,
    )
    outcome = clock.run(
        workload, machines, scheduler, seed=run.seed, settings=settings, progress=progress, opportunism=opportunism
    )
    figures = figures_of(outcome, workload)
    return figures if opportunism is None else replace(figures, evicted_for=dict(opportunism.evicted_for))


def figures_of(outcome: Outcome, workload: Workload) -> UbisOutcome:
    """Return the figures that are kept of an outcome. Raises ValueError where use is the promise."""
    tasks, counts, series = outcome.tasks, outcome.opportunistic, outcome.series
    if counts is None:
        raise ValueError("use is the promise in this outcome")
    seconds = tasks.ended - tasks.started
    stretch = seconds / tasks.seconds
    regular = ~counts.opportunistic_at_start
    job = np.repeat(np.arange(len(workload.jobs)), [len(job.stages) for job in workload.jobs])[tasks.stage]
    waits = counts.first_start - counts.opened
    return UbisOutcome(
        makespan=outcome.makespan,
        job_seconds=_by_job(workload, tasks.stage, lambda mask: tasks.ended[mask].max() - counts.opened[mask].min()),
        job_ends=_by_job(workload, tasks.stage, lambda mask: tasks.ended[mask].max()),
        task_seconds=float(seconds.sum()),
        slowdown=float(stretch[regular].mean()),
        stretch=stretch,
        waits={one.name: float(waits[job == row].mean()) for row, one in enumerate(workload.jobs)},
        use=series.used.mean(axis=0),
        at=series.at,
        use_at=series.used,
        queues_at=series.queues,
        queue_names=tuple(outcome.queue_names),
        decision_seconds=outcome.speed.plan_seconds / max(outcome.speed.plans, 1),
        counts=counts,
        chain=chain_seconds(workload) - workload.jobs[0].arrives_at,
    )


def _by_job(workload: Workload, stage: Rows, figure: Callable[[Mask], np.float64]) -> dict[str, float]:
    """Return a figure of each job of figure 8: the tasks of the stages whose names begin with its name."""
    names = [one.name.partition("-")[0] for job in workload.jobs for one in job.stages]
    group = np.array(names)[stage]
    return {name: float(figure(group == name)) for name in dict.fromkeys(names)}
