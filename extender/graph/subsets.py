"""Which stages of a DAG are troublesome, and what that makes of the others (Graphene, 4.1, figure 13)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.graph.bounds import Measures
from extender.graph.dag import Dag, Edge, Machines

_MOST_TROUBLE = 0.75
"""Of the tasks."""


@dataclass(frozen=True, slots=True)
class Subsets:
    """The troublesome stages, their ancestors, their descendants, and the rest; each stage is in one [S each]."""

    trouble: Mask
    parents: Mask
    children: Mask
    siblings: Mask


def candidates(dag: Dag, machines: Machines, rows: Rows) -> Iterator[Subsets]:
    """Yield the divisions of these stages by each pair of thresholds that makes a difference, each set once.

    A stage is troublesome if it is long against the longest (LongScore), or its work is little against the time that it
    takes alone (FragScore). The scores are the stage's: its tasks go together. Each score that there is serves as a
    threshold, those that lie evenly first, so that whoever stops early has seen some of each kind. A set with nearly
    all tasks is left out: around it nothing could be placed with care.
    """
    seen_chosen, seen = set[bytes](), set[bytes]()
    inside = np.zeros(len(dag), dtype=bool)
    inside[rows] = True
    most = _MOST_TROUBLE * dag.count[rows].sum()
    long_score, frag_score = (score.round(9) for score in scores(dag, machines, rows))
    for long, frag in _pairs([np.inf, *_distinct(long_score[rows])[::-1]], [-np.inf, *_distinct(frag_score[rows])]):
        chosen = inside & ((long_score >= long) | (frag_score <= frag))
        if not chosen.any() or _known(chosen, seen_chosen):
            continue
        trouble = closure(dag, rows, chosen)
        if not _known(trouble, seen) and dag.count[trouble].sum() <= most:
            yield divide(dag, rows, trouble)


def divide(dag: Dag, rows: Rows, trouble: Mask) -> Subsets:
    """Return the division of these stages by a closed set of troublesome ones."""
    inside = np.zeros(len(dag), dtype=bool)
    inside[rows] = True
    parents = reached(rows[::-1], dag.children, trouble) & inside & ~trouble
    children = reached(rows, dag.parents, trouble) & inside & ~trouble
    return Subsets(trouble, parents, children, inside & ~(trouble | parents | children))


def scores(dag: Dag, machines: Machines, rows: Rows) -> tuple[Floats, Floats]:
    """Return LongScore and FragScore [S] of the stages, by the longest task of these rows."""
    measures = Measures(dag, machines)
    long_score = dag.longest / dag.longest[rows].max()
    alone = measures.packed
    work = measures.work.max(axis=1, initial=0.0)
    return long_score, work / alone


def reached(rows: Rows, edges: Sequence[Sequence[Edge]], begins: Mask) -> Mask:
    """Return the stages from which one of `begins` is reached by these edges [S], in the order of rows."""
    marked = begins.copy()
    for row in rows.tolist():
        if not marked[row]:
            marked[row] = any(marked[edge.row] for edge in edges[row])
    return marked


def closure(dag: Dag, rows: Rows, chosen: Mask) -> Mask:
    """Return the chosen and all that lies on a path between two of them."""
    return np.asarray(reached(rows, dag.parents, chosen) & reached(rows[::-1], dag.children, chosen))


def _known(stages: Mask, seen: set[bytes]) -> bool:
    """Return whether the set was seen before, and remember it."""
    key = np.packbits(stages).tobytes()
    if key in seen:
        return True
    seen.add(key)
    return False


def _distinct(scores: Floats) -> list[float]:
    """Return the distinct scores, ascending."""
    return [float(value) for value in np.unique(scores)]


def _pairs(longs: Sequence[float], frags: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield all pairs: both ends of each list first, then what halves them, and so on."""
    done = 0
    for step in _halvings(max(len(longs), len(frags))):
        for first in range(0, len(longs), step):
            for second in range(0, len(frags), step):
                if not done or first % done or second % done:
                    yield longs[first], frags[second]
        done = step


def _halvings(size: int) -> Iterator[int]:
    """Yield powers of two from above a third of the size down to 1."""
    step = 1 << max(size.bit_length() - 2, 0)
    while step:
        yield step
        step >>= 1
