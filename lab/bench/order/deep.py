"""Deep backlogs for `bench order`: fifty DAG jobs on ten slots, with many more classes than slots.

Three families, so that no rule is tuned to one. All demands are one core: only the order can differ.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from extender.cluster.resources import CPU_INDEX, DIMENSIONS
from lab.sim.workloads.workload import Job, Machines, Stage, Workload

CORE = 1000.0
_CPU = CPU_INDEX
_MEAN_SECONDS = 15.0


def slots(count: int, cores: int = 1) -> Machines:
    """Return so many machines of so many cores, and nothing else that limits anybody."""
    capacity = np.full((count, len(DIMENSIONS)), np.inf)
    capacity[:, _CPU] = cores * CORE
    return Machines(f"{count} machines of {cores} cores", capacity)


def stage(name: str, durations: np.ndarray, parents: tuple[int, ...] = ()) -> Stage:
    """Return tasks of one core that read nothing; the scheduler expects their mean."""
    demand = np.zeros(len(DIMENSIONS))
    demand[_CPU] = CORE
    return Stage(name, demand, 0.0, float(durations.mean()), durations, parents)


def layered(name: str, draw: np.random.Generator) -> Job:
    """Return a DAG of 4 to 12 stages of 1 to 6 tasks; each stage waits for one or two of the three before it."""
    stages: list[Stage] = []
    for index in range(int(draw.integers(4, 13))):
        before = range(max(0, index - 3), index)
        count = min(len(before), int(draw.integers(1, 3)))
        parents = tuple(sorted(draw.choice(list(before), count, replace=False).tolist())) if count else ()
        seconds = draw.exponential(_MEAN_SECONDS, int(draw.integers(1, 7))) + 1.0
        stages.append(stage(f"s{index}", seconds, parents))
    return Job(name, float(draw.uniform(0, 60)), stages)


def workflow(name: str, draw: np.random.Generator) -> Job:
    """Return a scientific workflow whose tasks are each a class: split, parallel chains of unlike steps, merge."""
    width, length = int(draw.integers(3, 16)), int(draw.integers(1, 4))
    stages, ends = [stage("split", draw.exponential(_MEAN_SECONDS, 1) + 1.0)], []
    for lane in range(width):
        parent = 0
        for step in range(length):
            stages.append(stage(f"l{lane}-{step}", draw.exponential(_MEAN_SECONDS, 1) + 1.0, (parent,)))
            parent = len(stages) - 1
        ends.append(parent)
    stages.append(stage("merge", draw.exponential(_MEAN_SECONDS, 1) + 1.0, tuple(ends)))
    return Job(name, float(draw.uniform(0, 60)), stages)


def heavy(name: str, draw: np.random.Generator) -> Job:
    """Return map and reduce, once to three times over, whose sizes and durations have heavy tails."""
    stages: list[Stage] = []
    for turn in range(int(draw.integers(1, 4))):
        parents = (len(stages) - 1,) if stages else ()
        maps = min(int(draw.pareto(1.2) * 4) + 1, 60)
        seconds = np.minimum(draw.pareto(1.5, maps) * 6.0 + 1.0, 300.0)
        stages.append(stage(f"map{turn}", seconds, parents))
        reduces = max(1, maps // 4)
        stages.append(stage(f"reduce{turn}", draw.exponential(_MEAN_SECONDS, reduces) + 1.0, (len(stages) - 1,)))
    return Job(name, float(draw.uniform(0, 60)), stages)


FAMILIES: Mapping[str, Callable[[str, np.random.Generator], Job]] = MappingProxyType(
    {"layered": layered, "workflow": workflow, "heavy": heavy}
)


def deep(family: str, seed: int, jobs: int = 50) -> Workload:
    """Return so many jobs of a family that arrive within a minute."""
    draw = np.random.default_rng([seed, *map(ord, family)])
    drawn = [FAMILIES[family](f"job{index:03}", draw) for index in range(jobs)]
    return Workload(f"deep.{family}", sorted(drawn, key=lambda job: job.arrives_at))
