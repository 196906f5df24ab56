"""One run of the delay experiment as a value: which jobs on which machines, who decides; and what is kept of it."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Floats
from extender.planner import Planner, Policy, Scheduler
from lab.experiments.delay.scans import Cluster, Scans
from lab.sim.engine.any_source import AnySource
from lab.sim.engine.clock import Settings, run
from lab.sim.engine.outcome import Outcome
from lab.sim.parallel import Tell
from lab.sim.schedulers.bound import CpuAndMemory
from lab.sim.schedulers.heartbeats import Heartbeats
from lab.sim.schedulers.in_order import InOrder
from lab.sim.workloads.workload import Machines, Workload
from lab.sim.workloads.yahoo import yahoo

HEARTBEAT_SECONDS = 3.0
"""How often Hadoop's machines report ('every few seconds', 2)."""

FAIR, FIFO = "fair", "fifo"

_STRICT = {
    "sharing": "slots",
    "fairness": 0.99,
    "srtf": 0.0,
    "remote_penalty": 0.0,
    "barrier": 1.0,
    "tail": math.inf,
    "starved_after": math.inf,
}
"""Nothing but the order of jobs counts: the fewest slots, or who came first (algorithm 1)."""

_BETWEEN_REPORTS = HEARTBEAT_SECONDS / 100
"""What being passed over counts where nobody reports: as long as until the next of a hundred machines would have."""


@dataclass(frozen=True, slots=True)
class Who:
    """Who decides: the planner, in this order of jobs, with these waits.

    As in Hadoop it sees slots only, and the machines that report at the time. With `whole` it is as on a real cluster:
    it sees disks and links, and all machines whenever something happens, and orders jobs by its defaults. Without
    `reports` a slot is offered the moment it frees up; with them, who is passed over waits until the next one.
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
        ordered = InOrder(planner) if self.order == FIFO else planner
        slots = AnySource(CpuAndMemory(ordered), seed)
        return Heartbeats(slots, seconds=HEARTBEAT_SECONDS, seed=seed) if self.reports else slots


@dataclass(frozen=True, slots=True)
class Trace:
    """A Yahoo trace by its name, on machines of so many map slots."""

    name: str
    folder: Path
    slots: int = 2

    @property
    def label(self) -> str:
        """What it is called where it is shown."""
        return self.name


@dataclass(frozen=True, slots=True)
class Trial:
    """One run."""

    jobs: Scans | Trace
    cluster: Cluster | None
    who: Who
    seed: int

    @property
    def name(self) -> str:
        """What it is called where it is shown; different trials have different names."""
        waits = "+".join(f"{wait:g}" for wait in self.who.waits) or "no"
        on = f" on {self.cluster.name}" if self.cluster else ""
        return f"{self.who.name} ({waits} s) with {self.jobs.label}{on}, seed {self.seed}"

    def scene(self) -> tuple[Workload, Machines]:
        """Return what is run. Raises TraceError."""
        if isinstance(self.jobs, Trace):
            return yahoo(self.jobs.folder, self.jobs.name, slots=self.jobs.slots)
        cluster = self.cluster or Cluster(100, 4)
        machines = cluster.machines()
        return self.jobs.workload(self.seed, machines), machines


@dataclass(frozen=True, slots=True)
class Measured:
    """What is kept of a run, by job [J]: maps, and how many of them read on their node, and in their rack.

    Maps without a known block take no part. `seconds` from a job's arrival to its end, `maps_all` with all.
    """

    makespan: float
    seconds: Floats
    maps_all: Counts
    maps: Counts
    on_node: Counts
    in_rack: Counts
    decisions_per_second: float

    def local(self, jobs: "NDArray[np.bool_] | None" = None) -> float:
        """Return the percentage of the maps (of these jobs) that read on their node."""
        return _percent(self.on_node, self.maps, jobs)

    def rack_local(self, jobs: "NDArray[np.bool_] | None" = None) -> float:
        """Return the percentage of the maps (of these jobs) that read on their node or in their rack."""
        return _percent(self.in_rack, self.maps, jobs)


def perform(trial: Trial, tell: Tell) -> Measured:
    """Return what comes of a trial. Raises DovetailError."""
    workload, machines = trial.scene()
    heart = 0.0 if not trial.who.whole else 0.1
    outcome = run(
        workload,
        machines,
        trial.who.scheduler(trial.seed),
        seed=trial.seed,
        settings=Settings(heartbeat_seconds=heart, points=50),
        policy=trial.who.name,
        progress=tell,
    )
    return measured(outcome, workload, machines)


def measured(outcome: Outcome, workload: Workload, machines: Machines) -> Measured:
    """Return what is kept of an outcome."""
    tasks = outcome.tasks
    job_of_stage = np.repeat(np.arange(len(workload.jobs)), [len(job.stages) for job in workload.jobs])
    job, count = job_of_stage[tasks.stage], len(workload.jobs)
    reads = _has_block(workload)
    on_node = reads & (tasks.source == tasks.node)
    racks = machines.racks
    in_rack = on_node if racks is None else reads & (racks[tasks.source] == racks[tasks.node])
    return Measured(
        makespan=outcome.makespan,
        seconds=outcome.job_seconds,
        maps_all=np.bincount(job, minlength=count),
        maps=np.bincount(job[reads], minlength=count),
        on_node=np.bincount(job[on_node], minlength=count),
        in_rack=np.bincount(job[in_rack], minlength=count),
        decisions_per_second=outcome.speed.decisions_per_second,
    )


def _has_block(workload: Workload) -> NDArray[np.bool_]:
    """Return which tasks read a block [T]: those of stages that read blocks."""
    stages = [stage for job in workload.jobs for stage in job.stages]
    return np.repeat([stage.source == "blocks" for stage in stages], [stage.tasks for stage in stages])


def _percent(part: Counts, whole: Counts, jobs: "NDArray[np.bool_] | None") -> float:
    chosen = slice(None) if jobs is None else jobs
    total = int(whole[chosen].sum())
    return 100.0 * int(part[chosen].sum()) / total if total else math.nan
