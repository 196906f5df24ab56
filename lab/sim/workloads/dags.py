"""DAGs like those of Graphene's section 2.3, drawn: the paper publishes their statistics, not the DAGs.

What is published and counts here: depth (median 5, a quarter above 10), trees (40 %), DAGs that cut into four parts or
more (24 %), tens of stages and thousands of tasks at the median, most edges no barriers, how much tasks' demands vary
(table 1, private stack), where the work lies (figure 7). What is not is chosen: how long stages take varies as much as
their demands; tasks of a stage take equally long. All but one value was settled by these statistics alone, before any
order was tried. How much tasks take of network and disk was fitted to what simple orders make of the paper's DAGs
(table 7; lab/experiments/graphene/fit.py). Our orders were not run for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import (
    CPU_INDEX,
    DIMENSIONS,
    DISK_READ_INDEX,
    MEMORY_INDEX,
    NETWORK_IN_INDEX,
)
from extender.graph import Dag, Parent
from extender.graph import Stage as DagStage
from lab.sim.workloads.arrivals import PACED
from lab.sim.workloads.parameters import GIB
from lab.sim.workloads.workload import Job, Stage, Workload

VARIATIONS = (0.76, 1.01, 1.69, 1.39)
"""Table 1: CPU, memory, network (read), disk (read)."""
MEANS = (0.12, 0.12, 0.06, 0.06)
"""Of a machine. Of CPU and memory chosen: some eight tasks run on one. Of network and disk fitted."""
CORES, MEMORY_BYTES, DISK, NETWORK = 16, 128 * GIB, 1e9, 1.25e9
"""Of a machine, as in the paper (8.1): two quad-cores with hyperthreads, 128 GB, ten drives, 10 Gbps."""
JOBS, LOAD = 40, 640.0
"""By default; the load is in cores: those of forty machines."""
_MACHINE: Floats = np.array([CORES * 1e3, MEMORY_BYTES, DISK, DISK, NETWORK, NETWORK])
_SMALLER = 10
"""In a workload a stage has so many times fewer tasks, at least one: a run takes seconds instead of minutes."""
_SECONDS, _SECONDS_VARIATION = 20.0, 1.0
_TASKS, _TASKS_SIGMA, _MOST_TASKS = 80.0, 1.2, 1_500


@dataclass(frozen=True, slots=True)
class Drawn:
    """A DAG, and how it was drawn: its depth, whether it is a tree, into how many parts it cuts.

    The depth is that of the paper: edges on the longest chain, 1 for maps and reduces.
    """

    dag: Dag
    depth: int
    tree: bool
    parts: int


def dags(seed: int, *, jobs: int = JOBS, load: float = LOAD, arrivals: str = PACED) -> Workload:
    """Return so many drawn DAGs, as jobs for machines of `dags`' shape (specs.MACHINES).

    PACED: they arrive one by one, in the time in which machines with `load` cores do their work, by the resource of
    which most is asked. Otherwise all come at the start. Edges are one to one where the DAG has them so.
    """
    random = np.random.default_rng(seed)
    made = [Job(f"j{place:03d}", 0.0, _stages(draw(random).dag)) for place in range(jobs)]
    work = sum(stage.tasks * stage.duration * _of_a_machine(stage) for job in made for stage in job.stages)
    seconds = float(np.max(work)) * CORES / load
    arrives = np.cumsum(random.exponential(seconds / jobs, jobs))
    if arrivals == PACED:
        made = [replace(job, arrives_at=float(at)) for job, at in zip(made, arrives - arrives[0], strict=True)]
    return Workload("dags", made, about=f"{jobs} DAGs drawn by the statistics of Graphene 2.3, seed {seed}")


def draw(random: np.random.Generator, means: Sequence[float] = MEANS) -> Drawn:
    """Return a DAG whose tasks take so much of a machine, in the mean over stages."""
    depth = int(np.clip(np.exp(random.normal(np.log(5.5), 1.0)), 0, 40))
    tree, cut = random.random() < 0.26, random.random() < 0.32
    widths = np.clip(np.exp(random.normal(np.log(3.0), 0.7, depth + 1)).astype(int), 1, 12)
    if cut and depth >= 3:
        widths[np.linspace(0, depth, 5).astype(int)[1:4]] = 1
    stages: list[DagStage] = []
    before: list[int] = []
    childless = set[int]()
    for width in widths.tolist():
        now = []
        whole = cut and width == 1
        for _ in range(width):
            # Behind a stage that cuts everything waits, and it waits for everything.
            parents = sorted(childless) if whole else _parents(random, before, tree=tree)
            now.append(len(stages))
            stages.append(_stage(random, stages, parents, means, alone=whole or (cut and len(before) == 1)))
            childless -= set(parents)
        childless |= set(now)
        before = now
    dag = Dag(stages)
    edges = sum(len(stage.parents) for stage in stages)
    return Drawn(dag, depth, edges <= len(stages) - 1, len(dag.parts()))


def _parents(random: np.random.Generator, before: list[int], *, tree: bool) -> list[int]:
    if not before:
        return []
    count = 1 if tree else min(1 + int(random.integers(0, 4)), len(before))
    return sorted(random.choice(before, count, replace=False).tolist())


def _stage(
    random: np.random.Generator, stages: list[DagStage], parents: list[int], means: Sequence[float], *, alone: bool
) -> DagStage:
    """Return a stage; most that follow one stage go on one to one, unless they stand beside a cut (`alone`)."""
    tasks = int(np.clip(np.exp(random.normal(np.log(_TASKS), _TASKS_SIGMA)), 1, _MOST_TASKS))
    one_to_one = len(parents) == 1 and not alone and random.random() < 0.6
    if one_to_one:
        tasks = len(stages[parents[0]].seconds)
    elif parents:
        tasks = max(tasks // 2, 1)  # what reads from the file system is reduced
    seconds = float(np.clip(_skewed(random, _SECONDS, _SECONDS_VARIATION), 1.0, 600.0))
    demand: Floats = np.array([_skewed(random, mean, by) for mean, by in zip(means, VARIATIONS, strict=True)])
    edges = tuple(Parent(f"s{parent}", one_to_one) for parent in parents)
    return DagStage(f"s{len(stages)}", np.full(tasks, seconds), np.clip(demand, 0.005, 0.95), edges)


def _skewed(random: np.random.Generator, mean: float, variation: float) -> float:
    """Return a draw of a lognormal distribution with this mean and coefficient of variation."""
    sigma = np.sqrt(np.log(1 + variation**2))
    return float(np.exp(random.normal(np.log(mean) - sigma**2 / 2, sigma)))


def _stages(dag: Dag) -> list[Stage]:
    rows = {stage.name: row for row, stage in enumerate(dag.stages)}
    made = []
    for stage in dag.stages:
        cpu, memory, network, disk = stage.demand.tolist()
        parts = np.zeros(len(DIMENSIONS))
        parts[[CPU_INDEX, MEMORY_INDEX, NETWORK_IN_INDEX]] = cpu, memory, network
        tasks = -(-len(stage.seconds) // _SMALLER)
        made.append(
            Stage(
                stage.name,
                parts * _MACHINE,
                disk * float(_MACHINE[DISK_READ_INDEX]),
                float(stage.seconds[0]),
                stage.seconds[:tasks],
                tuple(rows[parent.name] for parent in stage.parents),
                one_to_one=tuple(rows[parent.name] for parent in stage.parents if parent.one_to_one),
            )
        )
    return made


def _of_a_machine(stage: Stage) -> Floats:
    """Return what a task takes of a machine, as parts of it [R]."""
    parts: Floats = stage.demand / _MACHINE
    parts[DISK_READ_INDEX] += stage.reading / _MACHINE[DISK_READ_INDEX]
    return parts
