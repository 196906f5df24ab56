"""The jobs of the UBIS paper's evaluation: sleeping maps on one node (table I), and pipelines on nineteen (5.C).

Numbers of nodes, cores, memory, tasks and data are the paper's. It does not publish durations, and of use it says the
maxima of table I, that overall mean memory is about half of the overall peak (figure 2), and that a cluster that runs
Terasort alone uses 16 % of its CPU (5.C.2). All else here was chosen from that before any run, and not changed since.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import CPU_INDEX, DIMENSIONS, DISK_WRITE_INDEX, MEMORY_INDEX
from lab.sim.workloads.parameters import GIB, MB
from lab.sim.workloads.workload import BLOCKS, LOCAL, SHUFFLE, Job, Machines, Stage, Use, Workload

SLEEPS = {"sleep": 0.0, "g-sleep-50": 0.5, "g-sleep-75": 0.75, "g-sleep": 0.99}
"""Table I: up to which part of its heap each job's tasks grow; the first does not grow."""

PIPELINES = ("tpcds", "teragen", "terasort", "teravalidate", "wordcount")
"""The jobs of the representative workload, as figure 8 counts them."""

_VCORE = 1000.0
_CONTAINER = 2.0 * GIB
_JVM = 0.2 * GIB
_HEAP = 0.8
_GROWS = 10
_SLEEP_SECONDS = 60.0
_SLEEP_CPU = 0.02
_BLOCK = 256.0 * 2**20
_SPREAD = 0.2
_SCALE = 0.4


@dataclass(frozen=True, slots=True)
class SleepJobs:
    """Maps of a kind of `SLEEPS` on the node of 5.B: 64 cores and 130 GB, of which the job's master takes 1 and 2."""

    kind: str
    maps: int = 315

    @property
    def label(self) -> str:
        """The name that is shown."""
        return f"{self.maps} {self.kind} maps"

    @property
    def machines(self) -> Machines:
        """The machine: what the master leaves of it."""
        return Machines("64 cores, 130 GB", _capacity(1, 63 * _VCORE, 128.0 * GIB, np.inf, np.inf))

    def workload(self, seed: int) -> Workload:
        """Return the job. The seed draws the seconds by which maps start up (up to 2)."""
        random = np.random.default_rng(seed)
        seconds = _SLEEP_SECONDS + random.uniform(0.0, 2.0, self.maps)
        demand = _demand(_CONTAINER)
        stage = Stage("map", demand, 0.0, _SLEEP_SECONDS, seconds, use=self._use())
        return Workload(self.kind, [Job(self.kind, 0.0, [stage])])

    def _use(self) -> Use:
        """Return a JVM that takes 200 MB and grows, in steps, up to its part of the heap."""
        grows = SLEEPS[self.kind]
        until = np.arange(1, _GROWS + 1) / _GROWS
        parts = np.zeros((_GROWS, len(DIMENSIONS)))
        parts[:, CPU_INDEX] = _SLEEP_CPU
        parts[:, MEMORY_INDEX] = (_JVM + grows * until * _HEAP * _CONTAINER) / _CONTAINER
        return Use(until, parts)


@dataclass(frozen=True, slots=True)
class StageShape:
    """A stage: tasks, seconds, use of CPU and of memory by phases that end at `until`, what it reads and writes.

    `reads` and `writes` are bytes a task; a stage whose parents it names reads from them, another from blocks.
    """

    name: str
    tasks: int
    seconds: float
    cpu: tuple[float, ...]
    memory: tuple[float, ...]
    until: tuple[float, ...] = (1.0,)
    reads: float = 0.0
    writes: float = 0.0
    parents: tuple[int, ...] = ()

    def stage(self, random: np.random.Generator, size: float) -> Stage:
        """Return the stage with `size` times its tasks; tasks differ in their seconds by 20 %, in their use by 40 %."""
        tasks = max(1, round(self.tasks * size))
        demand = _demand(_CONTAINER)
        demand[DISK_WRITE_INDEX] = self.writes / self.seconds
        parts = np.ones((len(self.until), len(DIMENSIONS)))
        parts[:, CPU_INDEX], parts[:, MEMORY_INDEX] = self.cpu, self.memory
        scale = random.uniform(1 - _SCALE, 1 + _SCALE, tasks)
        return Stage(
            name=self.name,
            demand=demand,
            reading=self.reads / self.seconds,
            duration=self.seconds,
            durations=self.seconds * random.uniform(1 - _SPREAD, 1 + _SPREAD, tasks),
            parents=self.parents,
            source=SHUFFLE if self.parents and self.reads else BLOCKS if self.reads else LOCAL,
            use=Use(np.array(self.until), parts, scale),
        )


_GB = 1e9
_MAP, _REDUCE = (0.4, 0.7, 1.0), (0.5, 0.7, 1.0)
"""Maps read, sort and spill; reduces fetch, merge and write."""
_MEMORY = (0.35, 0.55, 0.65)
_TERASORT = (
    StageShape("terasort-map", 4096, 30.0, (0.2, 0.6, 0.2), _MEMORY, _MAP, _BLOCK, _BLOCK),
    StageShape("terasort-reduce", 500, 150.0, (0.1, 0.3, 0.2), _MEMORY, _REDUCE, 2 * _GB, 2 * _GB, (0,)),
)
_WORDCOUNT = (
    StageShape("wordcount-map", 4096, 90.0, (0.7, 0.4), (0.5, 0.6), (0.85, 1.0), _BLOCK, 0.1 * _BLOCK),
    StageShape("wordcount-reduce", 250, 60.0, (0.1, 0.3, 0.2), _MEMORY, _REDUCE, 0.4 * _GB, 0.4 * _GB, (0,)),
)
_SCAN = {"cpu": (0.5, 0.3), "memory": (0.45, 0.6), "until": (0.6, 1.0), "reads": 0.1 * _GB, "writes": 0.05 * _GB}
_JOIN = {"cpu": (0.2, 0.5, 0.3), "memory": _MEMORY, "until": _REDUCE, "reads": 0.2 * _GB, "writes": 0.1 * _GB}
_TPCDS = (
    StageShape("tpcds-store", 1600, 40.0, **_SCAN),  # type: ignore[arg-type]
    StageShape("tpcds-catalog", 900, 40.0, **_SCAN),  # type: ignore[arg-type]
    StageShape("tpcds-web", 500, 40.0, **_SCAN),  # type: ignore[arg-type]
    StageShape("tpcds-join", 500, 45.0, parents=(0, 1, 2), **_JOIN),  # type: ignore[arg-type]
    StageShape("tpcds-group", 300, 45.0, parents=(3,), **_JOIN),  # type: ignore[arg-type]
    StageShape("tpcds-order", 20, 30.0, parents=(4,), **_JOIN),  # type: ignore[arg-type]
)
_ETL = (
    StageShape("teragen-map", 500, 150.0, (0.25,), (0.4,), (1.0,), 0.0, 6 * _GB),
    StageShape("terasort-map", 4096, 30.0, (0.2, 0.6, 0.2), _MEMORY, _MAP, _BLOCK, _BLOCK, (0,)),
    StageShape("terasort-reduce", 500, 150.0, (0.1, 0.3, 0.2), _MEMORY, _REDUCE, 2 * _GB, 2 * _GB, (1,)),
    StageShape("teravalidate-map", 500, 60.0, (0.3,), (0.4,), (1.0,), 2 * _GB, 0.0, (2,)),
)
_SMALL_WORDCOUNT = (
    StageShape("small-map", 20, 20.0, (0.7, 0.4), (0.5, 0.6), (0.85, 1.0), 5e6, 1e6),
    StageShape("small-reduce", 1, 10.0, (0.3,), (0.4,), (1.0,), 1e6, 1e6, (0,)),
)
_BURST = (0.2, 1.0, 0.4)
"""Tasks that request what they use in the middle of their time; as they differ by 40 %, some use more than that."""
_BURSTS = (
    StageShape("burst-map", 6000, 60.0, _BURST, (0.3, 0.3, 0.3), (0.3, 0.6, 1.0)),
    StageShape("burst-reduce", 500, 60.0, _BURST, (0.3, 0.3, 0.3), (0.3, 0.6, 1.0), parents=(0,)),
)
_NEVER = (StageShape("never", 400, 60.0, (0.5,), (0.5,)),)


@dataclass(frozen=True, slots=True)
class Pipelines:
    """The pipelines of 5.C on 19 nodes of 56 vcores and 130 GB, all submitted at once, a queue for each.

    `mix`: which of `_JOBS`. `size` is times their tasks, on `nodes` machines. With `one_queue` they share one.
    """

    mix: tuple[str, ...] = ("tpcds", "etl", "wordcount")
    size: float = 1.0
    nodes: int = 19
    one_queue: bool = False

    @property
    def label(self) -> str:
        """The name that is shown."""
        return f"{' + '.join(self.mix)} on {self.nodes} nodes{', one queue' if self.one_queue else ''}"

    @property
    def machines(self) -> Machines:
        """Nodes with 12 disks of 100 MB/s and a link of 10 Gbps (table II)."""
        return Machines("56 vcores, 130 GB", _capacity(self.nodes, 56 * _VCORE, 130.0 * GIB, 1200 * MB, 1250 * MB))

    def workload(self, seed: int) -> Workload:
        """Return the jobs. The seed draws how long each task takes, and what it uses."""
        random = np.random.default_rng(seed)
        jobs = [self._job(name, random) for name in self.mix]
        return Workload("pipelines", jobs)

    def _job(self, name: str, random: np.random.Generator) -> Job:
        shapes, size, arrives_at = _JOBS[name]
        stages = [shape.stage(random, size * self.size) for shape in shapes]
        return Job(name, arrives_at, stages, queue="default" if self.one_queue else name)


_JOBS: dict[str, tuple[Sequence[StageShape], float, float]] = {
    "tpcds": (_TPCDS, 1.0, 0.0),
    "etl": (_ETL, 1.0, 0.0),
    "wordcount": (_WORDCOUNT, 1.0, 0.0),
    "terasort-2tb": (_TERASORT, 2.0, 0.0),
    "small": (_SMALL_WORDCOUNT, 1.0, 60.0),
    "never": (_NEVER, 1.0, 120.0),
    "bursts": (_BURSTS, 1.0, 0.0),
}
"""The stages of each job by name, times how many of their tasks, and when it arrives."""


def chain_seconds(workload: Workload) -> float:
    """Return when the longest chain of stages ends, each as long as its longest task: no schedule is faster."""
    longest = 0.0
    for job in workload.jobs:
        ends: list[float] = []
        for stage in job.stages:
            begins = max((ends[parent] for parent in stage.parents), default=job.arrives_at)
            ends.append(begins + float(stage.durations.max()))
        longest = max(longest, *ends)
    return longest


def _demand(memory: float) -> Floats:
    demand = np.zeros(len(DIMENSIONS))
    demand[CPU_INDEX], demand[MEMORY_INDEX] = _VCORE, memory
    return demand


def _capacity(nodes: int, cpu: float, memory: float, disk: float, network: float) -> Floats:
    return np.tile(np.array([cpu, memory, disk, disk, network, network]), (nodes, 1))
