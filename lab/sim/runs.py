"""One run as a value: workload, machines, policy and seed; and the function that performs it in any process."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from extender.app.tuning import policy_of
from extender.cluster.resources import DIMENSIONS
from extender.control.queues.tree import QueueTree
from extender.errors import DovetailError
from extender.planner import Planner, Policy, Scheduler
from extender.settings import Settings, read
from lab.errors import SpecError
from lab.sim.engine import clock
from lab.sim.engine.clock import SimulationSettings
from lab.sim.engine.outcome import Outcome
from lab.sim.files.jobs import workload_of
from lab.sim.files.machines import machines_of
from lab.sim.parallel import Tell
from lab.sim.recorded.reading import FORM, MACHINES, RECORDED, STEADY, Replay, replay_of
from lab.sim.schedulers.fifo_queues import FifoQueues
from lab.sim.schedulers.policies import BY_SETTINGS, choice
from lab.sim.schedulers.preempting import Preempting
from lab.sim.workloads import specs
from lab.sim.workloads.parameters import Parameters, variants
from lab.sim.workloads.truth import declared_wrongly, heavy_tailed, known
from lab.sim.workloads.workload import Machines, Workload

Tuning = tuple[tuple[str, object], ...]
"""The fields of planner.Policy that differ from their defaults."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run; equal values have equal outcomes.

    `workload`, `machines` and `policy` as a user writes them (specs, policies). `tuning` other than () makes the policy
    a planner with these fields of planner.Policy, called `policy`. With `at_start` all jobs arrive at time 0, as where
    the paper measures makespan (Tetris, 5.3.1). `parameters`: which unpublished value is at an end of its range, as
    parameters.variants calls it; "" for none. `document` is the settings file of the service as text ("": none), by
    which `dovetail` plans. The outcome goes by `title` ("": the policy). `know` is how much schedulers know of
    durations (truth.known), `know_demands` how much of demands (truth.declared_wrongly), 1: all that they are told.
    `tail` is the shape of a tail by which tasks last longer or shorter than the workload says (truth.heavy_tailed;
    None: as long as it says).
    """

    workload: str
    machines: str
    policy: str
    seed: int
    tuning: Tuning = ()
    at_start: bool = False
    parameters: str = ""
    document: str = ""
    title: str = ""
    know: float = 1.0
    know_demands: float = 1.0
    tail: float | None = None
    settings: SimulationSettings = field(default_factory=SimulationSettings)
    traces: Path = Path()

    @property
    def name(self) -> str:
        """The name that is shown where runs differ in what the experiments on Tetris vary."""
        tuned = [f"{key}={value}" for key, value in self.tuning]
        loss = [f"loss={self.settings.loss:g}"] if self.settings.loss else []
        changed = [self.parameters] if self.parameters else []
        start = ["all at the start"] if self.at_start else []
        return ", ".join(
            (f"{self.policy} on {self.workload}, {self.machines}", *tuned, *changed, *loss, *start, f"seed {self.seed}")
        )

    def scheduler(self) -> Scheduler:
        """Return the scheduler. Raises DovetailError for a policy or tuning that does not exist."""
        if self.tuning:
            return Planner(Policy(**dict(self.tuning)))  # type: ignore[arg-type] # checked by Policy itself
        if self.document and self.policy in BY_SETTINGS:
            settings = read(self.document, "settings")
            planner = Planner(policy_of(settings))
            in_line = [queue.name for queue in settings.declared_queues() if queue.fifo]
            return Preempting(FifoQueues(planner, in_line) if in_line else planner)
        return choice(self.policy).make(self.seed)


def perform(run: Run, tell: Tell) -> Outcome:
    """Return the outcome of a run. Raises DovetailError."""
    values = _parameters(run.parameters)
    scheduler: Scheduler
    if run.policy == RECORDED and not run.tuning:
        replay = recording(run.workload)
        if replay is None or run.machines not in (MACHINES, STEADY):
            raise SpecError(f"policy {RECORDED} needs --workload {FORM}FILE and --machines {MACHINES} or {STEADY}")
        scheduler = replay.placements
    else:
        scheduler = run.scheduler()
    workload, machines = inputs_of(run, values)
    chosen = None if run.tuning or run.policy == RECORDED else choice(run.policy)
    if chosen:
        machines = chosen.machines(machines)
    return clock.run(
        all_at_start(workload) if run.at_start else workload,
        machines,
        scheduler,
        seed=run.seed,
        settings=replace(run.settings, estimate=run.settings.estimate and run.policy != RECORDED),
        policy=run.title or run.policy,
        progress=tell,
        order=chosen.order if chosen else None,
    )


def recording(workload: str) -> Replay | None:
    """Return the replay that a spec names; None for another workload. Raises DovetailError."""
    if workload == FORM:
        raise SpecError(f"workload {FORM} names no file; accepted: {FORM}FILE")
    return replay_of(Path(workload.removeprefix(FORM))) if workload.startswith(FORM) else None


def inputs_of(run: Run, parameters: Parameters) -> tuple[Workload, Machines]:
    """Return what is replayed and on what, read from files or made by specs. Raises DovetailError."""
    # 1. The machines, and the jobs that are to run on them.
    replay = recording(run.workload)
    if replay and run.machines in (MACHINES, STEADY):
        steady = run.machines == STEADY or run.policy == RECORDED  # which goes by when and where, and nothing else
        machines = replace(replay.machines, changes=()) if steady else replay.machines
    elif run.machines in (MACHINES, STEADY):
        raise SpecError(f"machines {run.machines}: those of a recording; write --workload {FORM}FILE")
    elif is_file(run.machines):
        machines = machines_of(Path(run.machines))
    else:
        machines = specs.machines(run.machines, parameters)
    if replay:
        simulated = replay.steady if run.machines == STEADY else replay.simulated
        workload = replay.workload if run.policy == RECORDED else simulated
    elif is_file(run.workload):
        workload = workload_of(Path(run.workload), machines)
    elif Path(run.workload).is_file():
        raise SpecError(
            f"workload {run.workload}: a workload file ends in .jsonl, .csv or .json; if it is a recording, write "
            f"--workload {FORM}{run.workload}"
        )
    elif len(machines.axis) > len(DIMENSIONS) or machines.nodes:
        raise DovetailError(
            f"workload {run.workload}: with a machines file, a workload file is needed (.jsonl, .csv or .json)"
        )
    else:
        workload = specs.workload(run.workload, run.seed, run.traces, parameters)
    # 2. The queues of the settings.
    if run.document:
        workload = with_queues(workload, read(run.document, "settings"))
    # 3. What tasks really take, and what schedulers know of it.
    if run.tail is not None:
        if replay:
            raise DovetailError("a recording says how long each task took; accepted with it: no tail")
        workload = heavy_tailed(workload, run.tail, run.seed)
    if run.know != 1.0:
        workload = known(workload, run.know, run.seed)
    if run.know_demands != 1.0 and not (replay and run.policy == RECORDED):  # what was done was done
        workload = declared_wrongly(workload, machines, run.know_demands, run.seed)
    return workload, machines


def is_file(spec: str) -> bool:
    """Say whether a workload or machines are named by a file."""
    return spec.endswith((".jsonl", ".csv", ".json")) and not spec.startswith(FORM)


def with_queues(workload: Workload, settings: Settings) -> Workload:
    """Return the jobs with the queues of the settings."""
    queues = settings.declared_queues()
    return replace(
        workload,
        weights={queue.name: queue.weight for queue in queues},
        tree=QueueTree(queues, settings.undeclared_weight),
    )


def all_at_start(workload: Workload) -> Workload:
    """Return the same jobs, all of which arrive at time 0."""
    return replace(workload, jobs=[replace(job, arrives_at=0.0) for job in workload.jobs])


def _parameters(changed: str) -> Parameters:
    """Return the default values, except for the one that is named."""
    if not changed:
        return Parameters()
    return dict(variants(changed.partition(".")[0]))[changed]
