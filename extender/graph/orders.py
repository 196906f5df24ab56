"""Orders that need no search: what others go by, and what a search begins with."""

import numpy as np

from extender.arrays import Floats
from extender.graph.bounds import Measures
from extender.graph.dag import Dag, Machines
from extender.graph.replay import Ranks

BREADTH_FIRST, LONGEST_PATH, LONGEST_WORK, RANDOM = "breadth-first", "longest path", "longest work", "random"


def breadth_first(dag: Dag) -> Ranks:
    """Return the order by how many stages lie before a stage, as Tez goes."""
    depth = np.zeros(len(dag))
    for row in dag.rows.tolist():
        depth[row] = max((depth[edge.row] + 1 for edge in dag.parents[row]), default=0.0)
    return _by_stage(dag, depth)


def longest_path(dag: Dag) -> Ranks:
    """Return the order by the longest path of tasks from a stage to the end: CPSched in the paper."""
    return _by_stage(dag, -path_to_end(dag, dag.longest))


def longest_work(dag: Dag, machines: Machines) -> Ranks:
    """Return the order by the longest path where each stage counts with all its work on these machines."""
    return _by_stage(dag, -path_to_end(dag, Measures(dag, machines).packed))


def at_random(dag: Dag, random: np.random.Generator) -> Ranks:
    """Return a drawn order of the stages."""
    return _by_stage(dag, random.permutation(len(dag)).astype(float))


def path_to_end(dag: Dag, seconds: Floats) -> Floats:
    """Return the longest path from each stage's beginning to the end [S]; a stage takes so many seconds [S]."""
    path = np.zeros(len(dag))
    for row in dag.rows[::-1].tolist():
        path[row] = seconds[row] + max((path[edge.row] for edge in dag.children[row]), default=0.0)
    return path


def _by_stage(dag: Dag, keys: Floats) -> Ranks:
    return [np.full(count, key) for count, key in zip(dag.count.tolist(), keys.tolist(), strict=True)]
