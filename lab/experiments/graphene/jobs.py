"""What many-jobs experiments replay: drawn DAGs that arrive on a cluster, and the schedulers that are compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.graph import Dag, orders
from extender.graph import Machines as Share
from extender.graph.replay import Ranks
from extender.planner import Plan, Scheduler
from lab.experiments.graphene.family import draw
from lab.sim.dag.job_orders import MakeRanks, searched
from lab.sim.schedulers.baselines import ArrivalOrder, drawing, offer
from lab.sim.schedulers.drf import Drf, cpu_and_memory
from lab.sim.schedulers.policies import policy, tetris
from lab.sim.workloads.workload import Job, Machines, Stage, Workload

MACHINES = 20
_MACHINE = np.array([16e3, 128 * 2.0**30, 1e9, 1e9, 1.25e9, 1.25e9])
"""As in the paper (8.1): two quad-cores with hyperthreads, 128 GB, ten drives, 10 Gbps."""
_SMALLER = 10
"""A stage has so many times fewer tasks than the family's, at least one: a run takes seconds instead of minutes."""
QUEUES = ("a", "b")


@dataclass(slots=True)
class InArrivalOrder:
    """YARN's Capacity Scheduler where it counts CPU and memory, exactly as requested.

    The queue with the least share goes next, in it the job that came first.
    """

    seed: int = 0
    _arrivals: ArrivalOrder = field(default_factory=ArrivalOrder, init=False)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        accounts, ranks = cpu_and_memory(snapshot, waiting), self._arrivals.ranks(waiting.jobs.names)
        return Plan(offer(snapshot, waiting, accounts, drawing(self.seed, now), fifo=ranks))


@dataclass(frozen=True, slots=True)
class JobsContender:
    """A scheduler, the order inside a job that it is asked for or knows (None: as it likes), and what it is."""

    make: Callable[[int], Scheduler]
    order: MakeRanks | None
    words: str


def _breadth_first(dag: Dag, _machines: Share) -> Ranks:
    return orders.breadth_first(dag)


def _longest_path(dag: Dag, _machines: Share) -> Ranks:
    return orders.longest_path(dag)


TEZ, TEZ_DRF, TEZ_CP, TEZ_TETRIS, TEZ_G, TETRIS, OURS, LOOSE = (
    "tez",
    "tez+drf",
    "tez+cp",
    "tez+tetris",
    "tez+g+cs",
    "tetris",
    "dovetail",
    "dovetail+kappa",
)
KAPPA = 0.2
"""Chosen on seeds 100 to 103, of 0, 0.1, 0.2 and 0.4."""

CONTENDERS: Mapping[str, JobsContender] = {
    TEZ: JobsContender(InArrivalOrder, _breadth_first, "breadth-first, on the Capacity Scheduler (CPU and memory)"),
    TEZ_DRF: JobsContender(Drf, _breadth_first, "breadth-first, on fair shares (DRF of CPU and memory)"),
    TEZ_CP: JobsContender(InArrivalOrder, _longest_path, "longest path first, on the Capacity Scheduler"),
    TEZ_G: JobsContender(InArrivalOrder, searched, "our order inside a job, on the Capacity Scheduler"),
    TEZ_TETRIS: JobsContender(lambda seed: policy("paper", seed), None, "Tetris as in its paper"),
    TETRIS: JobsContender(lambda seed: policy("tetris", seed), None, "our planner without orders"),
    OURS: JobsContender(lambda seed: policy("graphene", seed), searched, "our planner with our orders"),
    LOOSE: JobsContender(
        tetris(queue_kappa=KAPPA), searched, f"the same; a queue may be {KAPPA:g} of the cluster ahead (queue_kappa)"
    ),
}


def machines() -> Machines:
    """Return the cluster."""
    return Machines(f"{MACHINES} machines", np.tile(_MACHINE, (MACHINES, 1)))


def drawn(seed: int, count: int, load: float) -> Workload:
    """Return so many drawn DAGs that arrive one by one, in as much time as `load` times their work asks for.

    The work is that of the resource of which most is asked, on the whole cluster. Edges are one to one where the DAG
    has them so. Each job is of one of two queues, drawn too.
    """
    random = np.random.default_rng(seed)
    dags = [draw(random).dag for _ in range(count)]
    jobs = [Job(f"j{place:03d}", 0.0, _stages(dag), QUEUES[int(random.integers(2))]) for place, dag in enumerate(dags)]
    busy = sum(stage.tasks * stage.duration * _demand(stage) for job in jobs for stage in job.stages)
    seconds = float(np.max(busy / MACHINES)) / load
    arrives = np.cumsum(random.exponential(seconds / count, count))
    jobs = [replace(job, arrives_at=float(at)) for job, at in zip(jobs, arrives - arrives[0], strict=True)]
    return Workload(f"{count} drawn DAGs", jobs, about="DAGs drawn by the statistics of Graphene, 2.3")


def _stages(dag: Dag) -> list[Stage]:
    rows = {stage.name: row for row, stage in enumerate(dag.stages)}
    made = []
    for stage in dag.stages:
        cpu, memory, network, disk = stage.demand.tolist()
        tasks = -(-len(stage.seconds) // _SMALLER)
        made.append(
            Stage(
                stage.name,
                np.array([cpu, memory, 0.0, 0.0, network, 0.0]) * _MACHINE,
                disk * float(_MACHINE[2]),
                float(stage.seconds[0]),
                stage.seconds[:tasks],
                tuple(rows[parent.name] for parent in stage.parents),
                one_to_one=tuple(rows[parent.name] for parent in stage.parents if parent.one_to_one),
            )
        )
    return made


def _demand(stage: Stage) -> Floats:
    """Return what a task takes of a machine, as parts of it [R]."""
    parts: Floats = stage.demand / _MACHINE
    parts[2] += stage.reading / _MACHINE[2]
    return parts
