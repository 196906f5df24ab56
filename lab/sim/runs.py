"""One run as a value: what is replayed, on which machines, by whom; and how it is done, in whatever process."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from extender.planner import Planner, Policy, Scheduler
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.engine.outcome import Outcome
from lab.sim.parallel import Tell
from lab.sim.schedulers.policies import choice
from lab.sim.workloads import specs
from lab.sim.workloads.parameters import Parameters, variants
from lab.sim.workloads.workload import Workload

Tuning = tuple[tuple[str, object], ...]
"""What of planner.Policy is other than its default."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be run; equal values come to equal outcomes.

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
        """Return who decides. Raises DovetailError for a policy or tuning that does not exist."""
        if self.tuning:
            return Planner(Policy(**dict(self.tuning)))  # type: ignore[arg-type] # checked by Policy itself
        return choice(self.policy).make(self.seed)


def perform(asked: Run, tell: Tell) -> Outcome:
    """Return what comes of a run. Raises DovetailError."""
    scheduler = asked.scheduler()
    values = _parameters(asked.parameters)
    workload = specs.workload(asked.workload, asked.seed, asked.traces, values)
    machines = specs.machines(asked.machines, values)
    if not asked.tuning:
        machines = choice(asked.policy).machines(machines)
    return run(
        all_at_start(workload) if asked.at_start else workload,
        machines,
        scheduler,
        seed=asked.seed,
        settings=asked.settings,
        policy=asked.policy,
        progress=tell,
    )


def all_at_start(workload: Workload) -> Workload:
    """Return the same jobs, all of which arrive at time 0."""
    return replace(workload, jobs=[replace(job, arrives_at=0.0) for job in workload.jobs])


def _parameters(changed: str) -> Parameters:
    """Return the usual values but for the one that is named."""
    if not changed:
        return Parameters()
    return dict(variants(changed.partition(".")[0]))[changed]
