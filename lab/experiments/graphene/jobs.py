"""What many-jobs experiments replay: drawn DAGs that arrive on a cluster, and the schedulers that are compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.graph import Dag, orders
from extender.graph import Machines as Share
from extender.graph.replay import Ranks
from extender.planner import Plan, Scheduler
from lab.sim.dag.job_orders import MakeRanks, searched
from lab.sim.schedulers.baselines import ArrivalOrder, drawing, offer
from lab.sim.schedulers.drf import Drf, cpu_and_memory
from lab.sim.schedulers.policies import policy, tetris
from lab.sim.schedulers.requests import RequestsInOrder
from lab.sim.workloads import specs
from lab.sim.workloads.dags import CORES, dags
from lab.sim.workloads.workload import Machines, Workload

MACHINES = 20
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


def _asked_in_order(seed: int) -> Scheduler:
    return RequestsInOrder(policy("paper", seed))


TEZ, TEZ_DRF, TEZ_CP, TEZ_TETRIS, TEZ_G, TEZ_G_TETRIS, PAPER, TETRIS, OURS, LOOSE = (
    "tez",
    "tez+drf",
    "tez+cp",
    "tez+tetris",
    "tez+g+cs",
    "tez+g+tetris",
    "paper",
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
    TEZ_TETRIS: JobsContender(_asked_in_order, _breadth_first, "breadth-first, on Tetris as in its paper"),
    TEZ_G_TETRIS: JobsContender(_asked_in_order, searched, "our order inside a job, on Tetris as in its paper"),
    PAPER: JobsContender(
        lambda seed: policy("paper", seed), None, "Tetris as in its paper, which sees all open stages"
    ),
    TETRIS: JobsContender(lambda seed: policy("tetris", seed), None, "our planner without orders"),
    OURS: JobsContender(lambda seed: policy("graphene", seed), searched, "our planner with our orders"),
    LOOSE: JobsContender(
        tetris(queue_kappa=KAPPA), searched, f"the same; a queue may be {KAPPA:g} of the cluster ahead (queue_kappa)"
    ),
}


def machines() -> Machines:
    """Return the cluster."""
    return specs.machines(f"dags:{MACHINES}")


def in_two_queues(workload: Workload, seed: int) -> Workload:
    """Return the same jobs, each in one of two queues, drawn."""
    random = np.random.default_rng((seed, 2))
    queues = random.choice(QUEUES, len(workload.jobs)).tolist()
    return replace(workload, jobs=[replace(job, queue=queue) for job, queue in zip(workload.jobs, queues, strict=True)])


def drawn(seed: int, count: int, load: float) -> Workload:
    """Return so many drawn DAGs, which arrive so many times faster than the cluster can serve them."""
    return dags(seed, jobs=count, load=load * MACHINES * CORES)
