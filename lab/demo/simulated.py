"""What the simulator says of the demo's workload: shown while the programs of the control plane are being built.

Simulated time only: nothing of Kubernetes runs. Pods start at once and their ends are known at once, so a real run
takes somewhat longer. The schedulers are those of `dovetail simulate`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from extender.cluster.resources import DIMENSIONS, DISK_READ_INDEX
from lab.demo.workload import QUEUES, DemoPod, DemoWorkload
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.engine.outcome import Outcome
from lab.sim.schedulers.policies import choice
from lab.sim.workloads import workload as sim

POLICIES = {"stock scheduler": "kube-default", "Dovetail": "tetris"}
"""Which of the simulator's schedulers stands for whom."""

_ABOUT = (
    "SIMULATED, while Kubernetes is being built (minutes, the first time only): what the simulator says of the same "
    "workload. The measured figures follow."
)


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulated run: who schedules, and its makespan and mean job time in seconds."""

    name: str
    makespan: float
    job_mean: float


def simulate(workload: DemoWorkload, *, seed: int) -> list[Simulated]:
    """Return what comes of the workload by the stock scheduler and by Dovetail, in simulated time."""
    jobs, machines = as_simulated(workload), sim.Machines("demo", workload.capacity)
    outcomes = {
        name: run(
            jobs, machines, choice(policy).make(seed), seed=seed, settings=SimulationSettings(heartbeat_seconds=0.0)
        )
        for name, policy in POLICIES.items()
    }
    return [_simulated(name, outcome) for name, outcome in outcomes.items()]


def as_simulated(workload: DemoWorkload) -> sim.Workload:
    """Return the workload in the simulator's form: each job is one stage, and reads on its own machine."""
    expected_seconds = float(workload.work.mean())  # pods of the demo do not declare how long they run
    jobs = [_job(list(tasks), expected_seconds) for _, tasks in groupby(workload.tasks, key=lambda task: task.job)]
    return sim.Workload("demo", jobs, weights={queue.name: queue.weight for queue in QUEUES})


def show(console: Console, runs: Sequence[Simulated]) -> None:
    """Print the simulated figures, and say that they are simulated."""
    table = Table("simulated", *(run.name for run in runs), box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    table.add_row("makespan: all pods have ended", *(f"{run.makespan:.1f} s" for run in runs))
    table.add_row("mean completion time of a job", *(f"{run.job_mean:.1f} s" for run in runs))
    console.print(_ABOUT)
    console.print(table)


def _job(tasks: Sequence[DemoPod], expected_seconds: float) -> sim.Job:
    first = tasks[0]
    demand = np.array([first.demand[name] for name in DIMENSIONS])
    reading, demand[DISK_READ_INDEX] = float(demand[DISK_READ_INDEX]), 0.0
    seconds = np.array([task.work_seconds for task in tasks])
    stage = sim.Stage("tasks", demand, reading, expected_seconds, seconds)
    return sim.Job(first.job, first.arrives_at, [stage], QUEUES[first.queue].name)


def _simulated(name: str, outcome: Outcome) -> Simulated:
    return Simulated(name, outcome.makespan, float(outcome.job_seconds.mean()))
