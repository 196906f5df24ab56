"""How long stages take at least that must run inside windows: behind a head, before a tail (our bound).

A head is how long after the beginning any task of a stage can begin at the earliest; a tail, how long before the end
any of its tasks ends at the latest. What must run between a head and a tail takes as long as machines need for it:

- Machines are not one pool. Demands are put through functions under which whatever fits on a machine together still
  counts 1 at most (dual feasible functions; Fekete and Schepers 2001): a task of more than half of a machine counts
  whole.
- Time is not fluid either. Of so many moments, spread evenly over the window, a long task covers some, wherever it
  lies; and at each moment no more runs than machines hold.
- A task too long to lie outside a window has a part inside, wherever it runs: as much as if it began at its head, or
  ended at its tail (energetic reasoning; Baptiste, Le Pape and Nuijten 1999).
- Before a stage can begin all that it waits for has run: so heads and tails are themselves bounds of a smaller DAG.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Rows
from extender.graph.dag import Dag, Edge, Machines

_MOST_MOMENTS = 8
_MOST_HEADS = 16
_MOST_LENGTHS = 8
_MOST_STAGES = 150
"""In larger DAGs heads and tails follow from paths alone."""
_STEPS = 21
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Ways:
    """The stages seen from one side: `head` [S], and when all of each stage can have ended at the earliest [S]."""

    head: Floats
    finish: Floats


class Windows:
    """What must run when, in one DAG on one share of machines."""

    def __init__(self, dag: Dag, machines: Machines, packed: Floats) -> None:
        """Take how long each stage takes alone [S]."""
        self._dag, self._machines, self._packed = dag, machines, packed
        self._weights = _weights(dag, machines)
        self._work = self._weights * dag.total[:, np.newaxis] / machines.count
        self._lengths = [_lengths(stage.seconds) for stage in dag.stages]

    def bound(self, rows: Rows) -> tuple[float, Floats]:
        """Return how long these stages of one part take at least, and their tails [len(rows)]."""
        dag = self._dag
        if len(rows) == 1 and dag.longest[rows] == dag.shortest[rows]:
            return self._packed[rows].item(), np.zeros(1)  # equal tasks alone take just that
        forwards = self._ways(rows, dag.parents)
        backwards = self._ways(rows[::-1], dag.children)
        inside = set(rows.tolist())
        best = float((forwards.head + self._packed + backwards.head)[rows].max())
        best = max(best, float(forwards.finish[rows].max()), float(backwards.finish[rows].max()))
        for row in rows.tolist():
            for edge in dag.children[row]:
                if edge.row in inside and not edge.one_to_one:
                    best = max(best, forwards.finish.item(row) + backwards.finish.item(edge.row))
        head, tail = forwards.head[rows], backwards.head[rows]
        if len(rows) > 1:
            best = max(best, _between(self._work[rows], head, tail))
        return self._with_moments(rows, head, tail, best), tail

    def _ways(self, rows: Rows, before: Sequence[Sequence[Edge]]) -> Ways:
        """Return heads and finishes along these edges, stages that come before others first."""
        dag, packed, deep = self._dag, self._packed, len(rows) <= _MOST_STAGES
        head, finish = np.zeros(len(dag)), np.zeros(len(dag))
        places, ancestors = {row: place for place, row in enumerate(rows.tolist())}, dict[int, set[int]]()
        for row in places:
            edges = [edge for edge in before[row] if edge.row in places]
            whole = [edge.row for edge in edges if not edge.one_to_one]
            ones = [edge.row for edge in edges if edge.one_to_one]
            ancestors[row] = (
                set().union(*(ancestors[edge.row] for edge in edges), (edge.row for edge in edges)) if deep else set()
            )
            waits = [finish.item(parent) for parent in whole]
            waits += [head.item(parent) + dag.shortest.item(parent) for parent in ones]
            head[row] = max(waits, default=0.0)
            if deep and len(whole) > 1:
                every = set(whole).union(*(ancestors[parent] for parent in whole))
                head[row] = max(head.item(row), self._until(sorted(every, key=places.__getitem__), head, before))
            ends = [head.item(row) + packed.item(row)]
            ends += [finish.item(parent) + dag.shortest.item(row) for parent in ones]
            finish[row] = max(ends)
            if deep and edges:
                until = [*sorted(ancestors[row], key=places.__getitem__), row]
                finish[row] = max(finish.item(row), self._until(until, head, before))
        return Ways(head, finish)

    def _until(self, stages: Sequence[int], head: Floats, before: Sequence[Sequence[Edge]]) -> float:
        """Return when all of these stages can have ended at the earliest; those that come before others are first."""
        dag, packed = self._dag, self._packed
        tail = dict.fromkeys(stages, 0.0)
        for row in reversed(stages):
            for edge in before[row]:
                if edge.row in tail:
                    least = dag.shortest.item(row) if edge.one_to_one else packed.item(row)
                    tail[edge.row] = max(tail[edge.row], tail[row] + least)
        return _between(self._work[stages], head[stages], np.array(list(tail.values())))

    def _with_moments(self, rows: Rows, head: Floats, tail: Floats, known: float) -> float:
        """Return the longest time in which they cannot be done for certain, `known` or more."""
        test = _Moments(
            [self._lengths[row] for row in rows.tolist()], self._weights[rows], head, tail, self._machines.count
        )
        if test.fits(known * (1 + 1e-4)):
            return known
        low, high = known, 2 * known
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if test.fits(middle) else (middle, high)
        return low


class _Moments:
    """Whether stages can be done in some time: how much of their tasks lies in each window at least.

    And how many of evenly spread moments they cover there. `_inside` [windows, tasks]: seconds of each task.
    """

    def __init__(
        self, lengths: Sequence[tuple[Floats, Floats]], weights: Floats, head: Floats, tail: Floats, machines: int
    ) -> None:
        """Take lengths and counts of the tasks of each stage, their weights [S, V], heads and tails [S]."""
        sizes = [len(seconds) for seconds, _ in lengths]
        seconds = np.concatenate([seconds for seconds, _ in lengths]) * (1 - _ROUNDING)
        counts = np.concatenate([count for _, count in lengths])
        self._weights = np.repeat(weights, sizes, axis=0) * counts[:, np.newaxis] / machines
        heads, tails = (side.ravel() for side in np.meshgrid(_some(head), _some(tail), indexing="ij"))
        self._outside = heads + tails
        early = heads[:, np.newaxis] - np.repeat(head, sizes)
        late = tails[:, np.newaxis] - np.repeat(tail, sizes)
        self._inside = np.maximum(seconds - np.maximum(np.maximum(early, late), 0.0), 0.0)

    def fits(self, seconds: float) -> bool:
        """Return whether it is not ruled out that all is done in so many seconds."""
        # A window that ends before it begins counts as one moment: a task that must reach into it covers all of it.
        window = np.maximum(seconds - self._outside, 1e-200)
        inside = np.minimum(self._inside, window[:, np.newaxis] * (1 - _ROUNDING))
        if (inside @ self._weights > window[:, np.newaxis] * (1 + 1e-6)).any():
            return False
        for moments in range(1, _MOST_MOMENTS + 1):
            covered = np.ceil(inside * ((moments + 1) / window)[:, np.newaxis]) - 1
            load = np.maximum(covered, 0.0) @ self._weights
            if (load > moments * (1 + 1e-6)).any():
                return False
        return True


def _between(work: Floats, head: Floats, tail: Floats) -> float:
    """Return the most that follows from work [S, V] that cannot begin before heads [S] and has tails behind it [S]."""
    by_tail = np.argsort(-tail, kind="stable")
    work, head, tail = work[by_tail], head[by_tail], tail[by_tail]
    best = 0.0
    for threshold in _some(head).tolist():
        inside = head >= threshold
        sums = np.cumsum(work[inside], axis=0).max(axis=1, initial=0.0)
        best = max(best, threshold + float((sums + tail[inside]).max()))
    return best


def _some(values: Floats) -> Floats:
    """Return the distinct values, ascending; of very many some, and always the least."""
    distinct = np.unique(values)
    if len(distinct) > _MOST_HEADS:
        distinct = distinct[np.linspace(0, len(distinct) - 1, _MOST_HEADS).astype(np.intp)]
    return distinct


def _lengths(seconds: Floats) -> tuple[Floats, Floats]:
    """Return lengths of tasks, and of how many; of very many different ones the shortest of each group."""
    distinct, counts = np.unique(seconds, return_counts=True)
    if len(distinct) > _MOST_LENGTHS:
        groups = np.array_split(np.sort(seconds), _MOST_LENGTHS)
        distinct, counts = np.array([group[0] for group in groups]), np.array([len(group) for group in groups])
    return distinct, counts.astype(float)


def _weights(dag: Dag, machines: Machines) -> Floats:
    """Return how much of a machine a task of each stage counts [S, V]: what fits together counts 1 at most."""
    capacity = machines.capacity * (1 + 2 * _ROUNDING)  # as much fits as by a replay
    parts = np.divide(dag.demand, capacity, out=np.zeros_like(dag.demand), where=capacity > 0)
    steps = sorted({*range(1, 7), *(int(1 / part) for part in np.unique(parts.max(axis=1)) if part >= 1 / 40)})
    columns = [parts, *(np.floor(parts * (step + 1)) / step for step in steps[:16])]
    for column in parts.T:
        for small in _some(column[(column > 0) & (column <= 0.5)])[:_MOST_HEADS].tolist():
            counted = np.where(column > 1 - small, 1.0, np.where(column >= small, column, 0.0))
            columns.append(counted[:, np.newaxis])
    every = np.unique(np.hstack(columns), axis=1)
    useful = [
        not ((every >= every[:, [place]]).all(axis=0) & (every > every[:, [place]]).any(axis=0)).any()
        for place in range(every.shape[1])
    ]
    return np.ascontiguousarray(every[:, useful])
