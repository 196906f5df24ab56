"""One pod and a Snapshot in; which nodes may take it, with reasons, and how they rank, out.

Joins `cluster` (what there is) and `policy` (what is good). Pure: the verbs and the benchmarks
call this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.cluster.model import Pod
from extender.cluster.snapshot import Floats, Rows, Snapshot
from extender.policy.alignment import RULES, fullness
from extender.policy.levels import levels


@dataclass(frozen=True, slots=True)
class Placement:
    """How nodes are ranked for a pod."""

    rule: str = "cosine"
    shape_step: float = 0.05


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the filter found, for every node of the snapshot [N].

    `short` [N] is the dimension (an index into `dimensions`) that would be over-allocated, -1 where the pod fits.
    """

    dimensions: Sequence[str]
    short: NDArray[np.intp]

    @property
    def passed(self) -> NDArray[np.bool_]:
        """Where the pod fits [N]."""
        return self.short < 0

    def reasons(self) -> list[str]:
        """Return the text of a refusal for each dimension; no quantity in it: a changed text wakes the pod at once."""
        return [f"insufficient {name}" for name in self.dimensions]

    def refusals(self, rows: Rows) -> Mapping[str, int]:
        """Return how many of these nodes were refused for which dimension."""
        found, counts = np.unique(self.short[rows], return_counts=True)
        return {self.dimensions[d]: int(n) for d, n in zip(found, counts, strict=True) if d >= 0}


def judge(snapshot: Snapshot, pod: Pod, *, in_flight: bool = True) -> Judgement:
    """Return where the pod fits in every dimension that it demands (Tetris, 3.2: only tasks that fit are candidates).

    A dimension that the pod does not demand refuses nobody, however full it is. Of several short dimensions the first
    along the axis is named. With `in_flight` false, as if no pod in flight arrived anywhere.
    """
    layout = snapshot.layout
    demand = layout.vector(pod.demand)
    room = layout.capacity - _load(snapshot, pod)
    if in_flight and snapshot.flights:
        room -= snapshot.in_flight
    over = room < np.where(demand > 0, demand, -np.inf)
    return Judgement(layout.axis, np.where(over.any(axis=1), over.argmax(axis=1), -1))


def rank(snapshot: Snapshot, pod: Pod, rows: Rows, placement: Placement) -> NDArray[np.int64]:
    """Return a level 0..10 for each of these nodes [K], the best 10: by shape first, then the fuller node.

    What is in flight is left out: it is on one node of many, and would only blur which one is full.
    """
    layout = snapshot.layout
    load, capacity = _load(snapshot, pod), layout.capacity
    most = 2 * len(rows) > len(layout.names)
    if not most:
        load, capacity = load[rows], capacity[rows]
    free = capacity - load
    scores = RULES[placement.rule](layout.vector(pod.demand), free, capacity, layout.largest)
    full = fullness(free, capacity, layout.largest)
    if most:  # picking out scores is cheaper than picking out nodes
        scores, full = scores[rows], full[rows]
    return levels(scores, full, step=placement.shape_step)


def _load(snapshot: Snapshot, pod: Pod) -> Floats:
    nominated = snapshot.nominations.load(snapshot.allocated.shape, priority=pod.priority, uid=pod.uid)
    return snapshot.allocated if nominated is None else snapshot.allocated + nominated
