"""DAGs like those of Graphene's section 2.3, drawn: the paper publishes their statistics, not the DAGs.

What is published and counts here: depth (median 5, a quarter above 10), trees (40 %), DAGs that cut into four parts or
more (24 %), tens of stages and thousands of tasks at the median, most edges no barriers, how much tasks' demands vary
(table 1, private stack). What is not is chosen: how long stages take varies as much as their demands; tasks of a stage
take equally long. The values were settled by these statistics alone, before any order was tried on them.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.graph import Dag, Machines, Parent, Stage, bounds_of

VARIATIONS = (0.76, 1.01, 1.69, 1.39)
"""Table 1: CPU, memory, network (read), disk (read)."""
_MEANS = (0.12, 0.12, 0.05, 0.05)
"""Of a machine; chosen: some eight tasks run on one."""
_MOST_MACHINES = 40
_SECONDS, _SECONDS_VARIATION = 20.0, 1.0
_TASKS, _TASKS_SIGMA, _MOST_TASKS = 80.0, 1.2, 1_500


@dataclass(frozen=True, slots=True)
class Drawn:
    """A DAG, and how it was drawn: its depth in stages, whether it is a tree, into how many parts it cuts."""

    dag: Dag
    depth: int
    tree: bool
    parts: int


def draw(random: np.random.Generator) -> Drawn:
    """Return a DAG."""
    depth = int(np.clip(np.exp(random.normal(np.log(5.3), 1.0)), 1, 40))
    tree, cut = random.random() < 0.1, random.random() < 0.42
    widths = np.clip(np.exp(random.normal(np.log(3.4), 0.7, depth)).astype(int), 1, 12)
    if cut and depth >= 4:
        widths[np.linspace(0, depth - 1, 5).astype(int)[1:4]] = 1
    stages: list[Stage] = []
    before: list[int] = []
    childless = set[int]()
    for width in widths.tolist():
        now = []
        whole = cut and width == 1
        for _ in range(width):
            # Behind a stage that cuts everything waits, and it waits for everything.
            parents = sorted(childless) if whole else _parents(random, before, tree=tree)
            now.append(len(stages))
            stages.append(_stage(random, stages, parents, alone=whole or (cut and len(before) == 1)))
            childless -= set(parents)
        childless |= set(now)
        before = now
    dag = Dag(stages)
    edges = sum(len(stage.parents) for stage in stages)
    return Drawn(dag, depth, edges <= len(stages) - 1, len(dag.parts()))


def share(dag: Dag, load: float) -> Machines:
    """Return machines on which all work takes so many times as long as the longest path."""
    one = bounds_of(dag, Machines(1, np.ones(len(VARIATIONS))))
    return Machines(int(np.clip(round(one.t_work / one.cp_len / load), 1, _MOST_MACHINES)), np.ones(len(VARIATIONS)))


def _parents(random: np.random.Generator, before: list[int], *, tree: bool) -> list[int]:
    if not before:
        return []
    count = 1 if tree else min(1 + int(random.integers(0, 4)), len(before))
    return sorted(random.choice(before, count, replace=False).tolist())


def _stage(random: np.random.Generator, stages: list[Stage], parents: list[int], *, alone: bool) -> Stage:
    """Return a stage; most that follow one stage go on one to one, unless they stand beside a cut (`alone`)."""
    tasks = int(np.clip(np.exp(random.normal(np.log(_TASKS), _TASKS_SIGMA)), 1, _MOST_TASKS))
    one_to_one = len(parents) == 1 and not alone and random.random() < 0.6
    if one_to_one:
        tasks = len(stages[parents[0]].seconds)
    elif parents:
        tasks = max(tasks // 2, 1)  # what reads from the file system is reduced
    seconds = float(np.clip(_skewed(random, _SECONDS, _SECONDS_VARIATION), 1.0, 600.0))
    demand: Floats = np.array([_skewed(random, mean, by) for mean, by in zip(_MEANS, VARIATIONS, strict=True)])
    edges = tuple(Parent(f"s{parent}", one_to_one) for parent in parents)
    return Stage(f"s{len(stages)}", np.full(tasks, seconds), np.clip(demand, 0.005, 0.95), edges)


def _skewed(random: np.random.Generator, mean: float, variation: float) -> float:
    """Return a draw of a lognormal distribution with this mean and coefficient of variation."""
    sigma = np.sqrt(np.log(1 + variation**2))
    return float(np.exp(random.normal(np.log(mean) - sigma**2 / 2, sigma)))
