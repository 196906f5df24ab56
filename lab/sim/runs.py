"""One run as a value: workload, machines, policy and seed; and the function that performs it in any process."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from extender.errors import SpecError
from extender.planner import Planner, Policy, Scheduler
from lab.sim.engine import clock
from lab.sim.engine.clock import SimulationSettings
from lab.sim.engine.outcome import Outcome
from lab.sim.parallel import Tell
from lab.sim.recorded.reading import FORM, MACHINES, RECORDED, Replay, replay_of
from lab.sim.schedulers.policies import choice
from lab.sim.workloads import specs
from lab.sim.workloads.parameters import Parameters, variants
from lab.sim.workloads.workload import Workload

Tuning = tuple[tuple[str, object], ...]
"""The fields of planner.Policy that differ from their defaults."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run; equal values have equal outcomes.

    `workload`, `machines` and `policy` as a user writes them (specs, policies). `tuning` other than () makes the policy
    a planner with these fields of planner.Policy, called `policy`. With `at_start` all jobs arrive at time 0, as where
    the paper measures makespan (Tetris, 5.3.1). `parameters`: which unpublished value is at an end of its range, as
    parameters.variants calls it; "" for none.
    """

    workload: str
    machines: str
    policy: str
    seed: int
    tuning: Tuning = ()
    at_start: bool = False
    parameters: str = ""
    settings: SimulationSettings = field(default_factory=SimulationSettings)
    traces: Path = Path()

    def scheduler(self) -> Scheduler:
        """Return the scheduler. Raises DovetailError for a policy or tuning that does not exist."""
        if self.tuning:
            return Planner(Policy(**dict(self.tuning)))  # type: ignore[arg-type] # checked by Policy itself
        return choice(self.policy).make(self.seed)


def perform(run: Run, tell: Tell) -> Outcome:
    """Return the outcome of a run. Raises DovetailError."""
    values = _parameters(run.parameters)
    replay = recording(run.workload)
    scheduler: Scheduler
    if run.policy == RECORDED and not run.tuning:
        if replay is None or run.machines != MACHINES:
            raise SpecError(f"policy {RECORDED} needs --workload {FORM}FILE and --machines {MACHINES}")
        scheduler = replay.placements
    else:
        scheduler = run.scheduler()
    workload = replay.workload if replay else specs.workload(run.workload, run.seed, run.traces, values)
    machines = replay.machines if replay and run.machines == MACHINES else specs.machines(run.machines, values)
    if not run.tuning and run.policy != RECORDED:
        machines = choice(run.policy).machines(machines)
    return clock.run(
        all_at_start(workload) if run.at_start else workload,
        machines,
        scheduler,
        seed=run.seed,
        settings=run.settings,
        policy=run.policy,
        progress=tell,
    )


def recording(workload: str) -> Replay | None:
    """Return the replay that a spec names; None for another workload. Raises DovetailError."""
    return replay_of(Path(workload.removeprefix(FORM))) if workload.startswith(FORM) else None


def all_at_start(workload: Workload) -> Workload:
    """Return the same jobs, all of which arrive at time 0."""
    return replace(workload, jobs=[replace(job, arrives_at=0.0) for job in workload.jobs])


def _parameters(changed: str) -> Parameters:
    """Return the default values, except for the one that is named."""
    if not changed:
        return Parameters()
    return dict(variants(changed.partition(".")[0]))[changed]
