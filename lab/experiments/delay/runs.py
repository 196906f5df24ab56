"""One run of the delay experiment as a value (jobs, machines, scheduler, seed), and the figures that are kept of it."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from extender.arrays import Counts, Floats, Mask
from extender.planner import Planner, Policy, Scheduler
from lab.experiments.delay.scans import Scans, SlotCluster
from lab.sim.engine import clock
from lab.sim.engine.outcome import Outcome
from lab.sim.parallel import Tell
from lab.sim.schedulers.bound import CpuAndMemory
from lab.sim.schedulers.heartbeats import Heartbeats
from lab.sim.schedulers.random_source import RandomSource
from lab.sim.schedulers.single_queue import SingleQueue
from lab.sim.workloads.workload import Machines, Workload
from lab.sim.workloads.yahoo import yahoo

HEARTBEAT_SECONDS = 3.0
"""How often Hadoop's machines report ('every few seconds', 2)."""

FAIR, FIFO = "fair", "fifo"

_WHOLE_HEARTBEAT = 0.1
"""How often, in seconds, a planner that sees everything plans."""

_STRICT = {
    "sharing": "slots",
    "fairness": 0.99,
    "srtf": 0.0,
    "remote_penalty": 0.0,
    "barrier": 1.0,
    "tail": math.inf,
    "starved_after": math.inf,
}
"""Nothing but the order of jobs counts: the fewest slots, or the order of arrival (algorithm 1)."""

_BETWEEN_REPORTS = HEARTBEAT_SECONDS / 100
"""How much waiting one refused slot counts where machines do not report: the time between reports of 100 machines."""


@dataclass(frozen=True, slots=True)
class DelayContender:
    """A scheduler of the comparison: the planner with this order of jobs and these locality waits in seconds.

    By default it works as Hadoop's scheduler does: it sees slots only, and only the machines that report at the time.
    With `whole` it works as on a real cluster: it sees disks, links and all machines whenever something happens, and
    orders jobs by its defaults. Without `reports` a slot is offered the moment it frees up. With `reports` a job that
    was passed over waits until the next report.
    """

    name: str
    order: str = FAIR
    waits: tuple[float, ...] = ()
    whole: bool = False
    reports: bool = True

    def scheduler(self, seed: int) -> Scheduler:
        """Return the scheduler."""
        if self.whole:
            return Planner(Policy(locality_waits=self.waits))
        counts = math.inf if self.reports else _BETWEEN_REPORTS
        planner: Scheduler = Planner(Policy(locality_waits=self.waits, pass_counts=counts, **_STRICT))  # type: ignore[arg-type] # checked there
        ordered = SingleQueue(planner) if self.order == FIFO else planner
        slots = RandomSource(CpuAndMemory(ordered), seed)
        return Heartbeats(slots, seconds=HEARTBEAT_SECONDS, seed=seed) if self.reports else slots


@dataclass(frozen=True, slots=True)
class YahooTrace:
    """A Yahoo trace by its name, on machines of `slots` map slots."""

    name: str
    folder: Path
    slots: int = 2

    @property
    def label(self) -> str:
        """The name that is shown."""
        return self.name


@dataclass(frozen=True, slots=True)
class DelayRun:
    """One run: these jobs on this cluster (None: the hosts of a Yahoo trace), by one contender, with one seed."""

    jobs: Scans | YahooTrace
    cluster: SlotCluster | None
    contender: DelayContender
    seed: int

    @property
    def name(self) -> str:
        """The name that is shown; different runs have different names."""
        waits = "+".join(f"{wait:g}" for wait in self.contender.waits) or "no"
        place = f" on {self.cluster.name}" if self.cluster else ""
        return f"{self.contender.name} ({waits} s) with {self.jobs.label}{place}, seed {self.seed}"

    def setup(self) -> tuple[Workload, Machines]:
        """Return the workload and its machines. Raises TraceError."""
        if isinstance(self.jobs, YahooTrace):
            return yahoo(self.jobs.folder, self.jobs.name, slots=self.jobs.slots)
        cluster = self.cluster or SlotCluster(100, 4)
        machines = cluster.machines()
        return self.jobs.workload(self.seed, machines), machines


@dataclass(frozen=True, slots=True)
class DelayOutcome:
    """The figures of a run, by job [J]: its `maps` with a known block, and how many read `on_node` and `in_rack`.

    `maps_all` counts the maps without a known block too. `seconds` are from a job's arrival to its end.
    """

    makespan: float
    seconds: Floats
    maps_all: Counts
    maps: Counts
    on_node: Counts
    in_rack: Counts

    def local(self, jobs: Mask | None = None) -> float:
        """Return the percentage of the maps (of these jobs) that read on their node."""
        return _percent(self.on_node, self.maps, jobs)

    def rack_local(self) -> float:
        """Return the percentage of the maps that read on their node or in their rack."""
        return _percent(self.in_rack, self.maps, None)


def perform(run: DelayRun, progress: Tell) -> DelayOutcome:
    """Return the figures of a run. Raises DovetailError."""
    workload, machines = run.setup()
    contender = run.contender
    outcome = clock.run(
        workload,
        machines,
        contender.scheduler(run.seed),
        seed=run.seed,
        settings=clock.SimulationSettings(heartbeat_seconds=_WHOLE_HEARTBEAT if contender.whole else 0.0, points=50),
        policy=contender.name,
        progress=progress,
    )
    return figures_of(outcome, workload, machines)


def figures_of(outcome: Outcome, workload: Workload, machines: Machines) -> DelayOutcome:
    """Return the figures that are kept of an outcome."""
    tasks = outcome.tasks
    job_of_stage = np.repeat(np.arange(len(workload.jobs)), [len(job.stages) for job in workload.jobs])
    job, count = job_of_stage[tasks.stage], len(workload.jobs)
    reads = _has_block(workload)
    on_node = reads & (tasks.source == tasks.node)
    racks = machines.racks
    in_rack = on_node if racks is None else reads & (racks[tasks.source] == racks[tasks.node])
    return DelayOutcome(
        makespan=outcome.makespan,
        seconds=outcome.job_seconds,
        maps_all=np.bincount(job, minlength=count),
        maps=np.bincount(job[reads], minlength=count),
        on_node=np.bincount(job[on_node], minlength=count),
        in_rack=np.bincount(job[in_rack], minlength=count),
    )


def _has_block(workload: Workload) -> Mask:
    """Return which tasks read a block [T]: those of stages that read blocks."""
    stages = [stage for job in workload.jobs for stage in job.stages]
    return np.repeat([stage.source == "blocks" for stage in stages], [stage.tasks for stage in stages])


def _percent(part: Counts, whole: Counts, jobs: Mask | None) -> float:
    chosen = slice(None) if jobs is None else jobs
    total = int(whole[chosen].sum())
    return 100.0 * int(part[chosen].sum()) / total if total else math.nan
