"""What simple orders make of one DAG, and what the paper's table 7 says of them (Graphene, 8.3)."""

from collections.abc import Mapping, Sequence

import numpy as np

from extender.arrays import Floats
from extender.graph import Dag, Machines, bounds_of, orders
from extender.graph.replay import replay
from lab.experiments.graphene import overbooking
from lab.sim.workloads.dags import VARIATIONS

QUARTERS = (25, 50, 75, 90)
PAPER: Mapping[str, Sequence[float]] = {
    "random, CPU and memory": (-2, 0, 1, 4),
    "longest path, CPU and memory": (-2, 0, 2, 1),
    orders.LONGEST_PATH: (1, 4, 13, 16),
    "longest path, overbooked": (2, 9, 24, 31),
    orders.TETRIS: (0, 7, 29, 42),
    "Tetris, overbooked": (0, 11, 33, 49),
    orders.STRIP_PART: (0, 1, 12, 27),
    orders.COFFMAN_GRAHAM: (0, 1, 12, 26),
}
"""Percent less than breadth-first at the quarters. Of random the paper does not say what is counted."""
_MOST_MACHINES = 40


def share(dag: Dag, load: float) -> Machines:
    """Return machines on which all work takes so many times as long as the longest path."""
    one = bounds_of(dag, Machines(1, np.ones(len(VARIATIONS))))
    return Machines(int(np.clip(round(one.t_work / one.cp_len / load), 1, _MOST_MACHINES)), np.ones(len(VARIATIONS)))


def within(dag: Dag, machines: Machines, seed: int) -> dict[str, float]:
    """Return the span of each simple order that takes no more of a machine than it has."""
    made = {name: orders.baseline(name, dag, np.random.default_rng(seed)) for name in orders.BASELINES}
    return {name: replay(dag, machines, ranks).span for name, ranks in made.items()}


def beyond(dag: Dag, machines: Machines, seed: int) -> dict[str, float]:
    """Return the span of each that takes more of network and disk."""
    return {name: overbooking.span(dag, machines, rule, seed) for name, rule in overbooking.RULES.items()}


def less(span: Floats, base: Floats) -> Floats:
    """Return by how many percent a span is less than that of the base, of each DAG [D]."""
    return np.asarray(100 * (1 - span / base))


def rows(spans: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return table 7: by how much each order's spans [D] are less than Tez', at the quarters [4]."""
    base = spans[overbooking.TEZ]
    return {name: np.percentile(less(span, base), QUARTERS) for name, span in spans.items()}


def with_paper(gains: Floats, paper: Sequence[float] | None) -> list[str]:
    """Return a row of the table as people read it: each cell, with the paper's in brackets where it has one."""
    if paper is None:
        return [f"{gain:.1f}" for gain in gains]
    return [f"{gain:.1f} ({known:g})" for gain, known in zip(gains, paper, strict=True)]
