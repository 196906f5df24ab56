"""Which stages of a DAG are troublesome, and what that makes of the others (Graphene, 4.1, figure 13)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.graph.bounds import Measures
from extender.graph.dag import Dag, Edge, Machines

_MOST_VALUES = 6


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
    takes alone (FragScore). The scores are the stage's: its tasks go together.
    """
    seen = set[bytes]()
    inside = np.zeros(len(dag), dtype=bool)
    inside[rows] = True
    long_score, frag_score = scores(dag, machines, rows)
    for long in [*_values(long_score[rows])[::-1], np.inf]:
        for frag in [-np.inf, *_values(frag_score[rows])]:
            chosen = inside & ((long_score >= long) | (frag_score <= frag))
            if not chosen.any():
                continue
            trouble = _closure(dag, rows, chosen)
            key = np.packbits(trouble).tobytes()
            if key not in seen:
                seen.add(key)
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
    found = begins.copy()
    for row in rows.tolist():
        if not found[row]:
            found[row] = any(found[edge.row] for edge in edges[row])
    return found


def _closure(dag: Dag, rows: Rows, chosen: Mask) -> Mask:
    """Return the chosen and all that lies on a path between two of them."""
    return np.asarray(reached(rows, dag.parents, chosen) & reached(rows[::-1], dag.children, chosen))


def _values(scores: Floats, most: int = _MOST_VALUES) -> list[float]:
    """Return the distinct scores, ascending; of many, some that lie evenly."""
    distinct = np.unique(np.round(scores, 9))
    if len(distinct) > most:
        distinct = distinct[np.linspace(0, len(distinct) - 1, most).astype(np.intp)]
    return [float(value) for value in distinct]
