"""Orders that need no search: what others go by, and what a search begins with."""

import heapq

import numpy as np

from extender.arrays import Floats
from extender.graph.bounds import Measures
from extender.graph.dag import Dag, Machines
from extender.graph.replay import Ranks

BREADTH_FIRST, LONGEST_PATH, LONGEST_WORK, RANDOM = "breadth-first", "longest path", "longest work", "random"
SHRINKING_WORK = "shrinking work"
STRIP_PART, COFFMAN_GRAHAM, TETRIS = "StripPart", "Coffman-Graham", "Tetris"
BASELINES = (LONGEST_PATH, BREADTH_FIRST, RANDOM, TETRIS, STRIP_PART, COFFMAN_GRAHAM)


def baseline(name: str, dag: Dag, random: np.random.Generator) -> Ranks | None:
    """Return one of the orders that the paper compares with; None is Tetris, which goes by alignment."""
    match name:
        case "longest path":
            return longest_path(dag)
        case "breadth-first":
            return breadth_first(dag)
        case "StripPart":
            return strip_part(dag)
        case "Coffman-Graham":
            return coffman_graham(dag)
        case "random":
            return at_random(dag, random)
    return None


def breadth_first(dag: Dag) -> Ranks:
    """Return the order by how many stages lie before a stage, as Tez goes."""
    return _by_stage(dag, _depth(dag))


def longest_path(dag: Dag) -> Ranks:
    """Return the order by the longest path of tasks from a stage to the end: CPSched in the paper."""
    return _by_stage(dag, -path_to_end(dag, dag.longest))


def longest_work(dag: Dag, machines: Machines) -> Ranks:
    """Return the order by the longest path where each stage counts with all its work on these machines."""
    return _by_stage(dag, -path_to_end(dag, Measures(dag, machines).packed))


def shrinking_work(dag: Dag, machines: Machines) -> Ranks:
    """Return the order by the same path from each task on: what is left of its stage counts with what is behind.

    So stages that go beside each other are mixed, and machines get tasks of each.
    """
    packed = Measures(dag, machines).packed
    paths = path_to_end(dag, packed)
    return [
        -path + whole * np.arange(count) / count
        for path, whole, count in zip(paths.tolist(), packed.tolist(), dag.count.tolist(), strict=True)
    ]


def strip_part(dag: Dag) -> Ranks:
    """Return the order by levels, the longest tasks of a level first (StripPart in the paper).

    The original waits between levels; a replay does not, so it is no slower than that but for rare accidents.
    """
    first = np.lexsort((-dag.longest, _depth(dag)))
    place = np.empty(len(dag))
    place[first] = np.arange(len(dag))
    return _by_stage(dag, place)


def coffman_graham(dag: Dag) -> Ranks:
    """Return the order by Coffman and Graham's labels of the stages, the highest first.

    Labels are given from the end: next comes a stage all of whose children have one, whose children's labels, the
    highest first, are the least as words are compared.
    """
    label = [0] * len(dag)
    missing = [len(edges) for edges in dag.children]
    ready: list[tuple[list[int], int]] = [([], row) for row, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    for number in range(len(dag)):
        _, row = heapq.heappop(ready)
        label[row] = number
        for edge in dag.parents[row]:
            missing[edge.row] -= 1
            if not missing[edge.row]:
                labels = sorted((label[child.row] for child in dag.children[edge.row]), reverse=True)
                heapq.heappush(ready, (labels, edge.row))
    return _by_stage(dag, -np.array(label, dtype=float))


def at_random(dag: Dag, random: np.random.Generator) -> Ranks:
    """Return a drawn order of the stages."""
    return _by_stage(dag, random.permutation(len(dag)).astype(float))


def path_to_end(dag: Dag, seconds: Floats) -> Floats:
    """Return the longest path from each stage's beginning to the end [S]; a stage takes so many seconds [S]."""
    path = np.zeros(len(dag))
    for row in dag.rows[::-1].tolist():
        path[row] = seconds[row] + max((path[edge.row] for edge in dag.children[row]), default=0.0)
    return path


def _depth(dag: Dag) -> Floats:
    """Return how many stages lie before each stage, along the longest chain [S]."""
    depth = np.zeros(len(dag))
    for row in dag.rows.tolist():
        depth[row] = max((depth[edge.row] + 1 for edge in dag.parents[row]), default=0.0)
    return depth


def _by_stage(dag: Dag, keys: Floats) -> Ranks:
    return [np.full(count, key) for count, key in zip(dag.count.tolist(), keys.tolist(), strict=True)]
