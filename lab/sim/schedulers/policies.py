"""The schedulers that `dovetail simulate` knows, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from extender.errors import DovetailError
from extender.planner import Planner, Policy, Scheduler
from extender.policy.alignment import TASK_RULES
from lab.sim.dag.job_orders import MakeRanks, searched
from lab.sim.schedulers.bound import CpuAndMemory, aggregate
from lab.sim.schedulers.drf import Drf, YarnDrf
from lab.sim.schedulers.first_fit import FirstFit
from lab.sim.schedulers.kube import KubeDefault, WithExtender
from lab.sim.schedulers.preempting import Preempting
from lab.sim.schedulers.slots import CapacityScheduler, SlotFair
from lab.sim.workloads.workload import Machines


def as_they_are(machines: Machines) -> Machines:
    """Return the machines themselves."""
    return machines


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A scheduler by name: what it is, how to make one from a seed, and which machines it schedules.

    `order` finds the order of each job's tasks when it arrives (None: no job has one). `whole`: it goes by all that a
    user's files can say: resources beyond the six dimensions, node selectors, taints.
    """

    about: str
    make: Callable[[int], Scheduler]
    machines: Callable[[Machines], Machines] = as_they_are
    whole: bool = False
    order: MakeRanks | None = None


def tetris(**tuning: object) -> Callable[[int], Scheduler]:
    """Return how to make a planner with this tuning (fields of planner.Policy), the defaults otherwise."""
    return lambda _seed: Preempting(Planner(Policy(**tuning)))  # type: ignore[arg-type] # Policy itself checks


_OWN = "dot"
DOVETAIL, GRAPHENE = "dovetail", "graphene"
BY_SETTINGS = frozenset({DOVETAIL, GRAPHENE})
"""The policies that go by the settings of the service, where such a file is given."""

POLICIES: Mapping[str, PolicyChoice] = MappingProxyType(
    {
        "tetris": PolicyChoice(
            "Dovetail's planner: packing, shortest remaining time, fairness, barriers", tetris(), whole=True
        ),
        DOVETAIL: PolicyChoice(
            "the planner by the policy of --settings, or the defaults of the chart", tetris(), whole=True
        ),
        "paper": PolicyChoice("the planner without what Tetris does not have: critical jobs first", tetris(tail=inf)),
        "srtf": PolicyChoice("the paper's by shortest remaining time only", tetris(packing=False, tail=inf)),
        "packing": PolicyChoice("the paper's by packing only (eps = 0)", tetris(srtf=0.0, tail=inf)),
        "cpu-memory": PolicyChoice(
            "the planner if it saw CPU and memory only", lambda seed: CpuAndMemory(tetris()(seed))
        ),
    }
    | {
        f"tetris-{rule}": PolicyChoice(f"the planner with {rule} for the alignment (table 8)", tetris(rule=rule))
        for rule in TASK_RULES
        if rule != _OWN
    }
    | {
        "tetris-pair": PolicyChoice(
            "the planner taking the best task and machine of all each time", tetris(matching="pair")
        ),
        "tetris-bundle": PolicyChoice(
            "the planner choosing a set of tasks for one machine after the other", tetris(matching="bundle")
        ),
        "tetris-machine": PolicyChoice("the planner filling one machine after the other", tetris(matching="machine")),
        "tetris-deficit": PolicyChoice(
            "the planner with Graphene's counters for fairness: kappa 0.1, no knob", tetris(kappa=0.1, fairness=0.0)
        ),
        "tetris-overbook": PolicyChoice(
            "the planner that may promise a fifth more of disks and links than there is (Graphene, 5)",
            tetris(overbook=0.2),
        ),
        "tetris-slots": PolicyChoice("the planner with shares by memory slots", tetris(sharing="slots")),
        GRAPHENE: PolicyChoice(
            "the planner going by the order of each job's DAG, found when it arrives (Graphene)",
            tetris(),
            order=searched,
        ),
        "upper-bound": PolicyChoice("the planner on one machine as large as all (2.2.3)", tetris(), aggregate),
        "slot-fair": PolicyChoice("Hadoop's Fair Scheduler: 2 GB slots, the job with the fewest goes next", SlotFair),
        "capacity": PolicyChoice(
            "YARN's Capacity Scheduler: 2 GB containers by memory, jobs as they arrived", CapacityScheduler
        ),
        "drf": PolicyChoice("dominant resource fairness on CPU and memory, exact requests", Drf),
        "drf-yarn": PolicyChoice("the same as in YARN: whole virtual cores, containers in steps of 1 GB", YarnDrf),
        "first-fit": PolicyChoice(
            "each task as it arrives to the first machine with CPU and memory for it", lambda _: FirstFit()
        ),
        "kube-default": PolicyChoice("kube-scheduler's default profile", KubeDefault, whole=True),
        "extender": PolicyChoice(
            "kube-scheduler with Dovetail's verbs, as the chart ships it", WithExtender, whole=True
        ),
    }
)
"""The schedulers by the name that `--policy` takes."""


def choice(name: str) -> PolicyChoice:
    """Return the policy of this name. Raises DovetailError, naming what is accepted."""
    if name not in POLICIES:
        raise DovetailError(f"{name!r} is not a policy; accepted: {', '.join(POLICIES)}")
    return POLICIES[name]


def policy(name: str, seed: int) -> Scheduler:
    """Return a scheduler by its name. Raises DovetailError, naming what is accepted."""
    return choice(name).make(seed)
