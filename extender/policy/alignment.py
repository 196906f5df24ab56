"""How well a node's free resources suit a pod's demand (Tetris, 3.2 and 5.3.1).

Every rule answers the question "which node for this pod": `[N]` scores, higher is better, each
rule's direction chosen for that question. Tetris asks the opposite, "which task for this machine".

What all rules share:

- Demand and free are divided by `reference`, the largest node's capacity per dimension, so that
  units do not count and, once divided, a node keeps its shape. Divided by its own capacity, every
  empty node would be (1, 1, ...), and a machine full of GPUs would look like one with a single
  GPU. On equal machines, as in the paper, the two are the same. docs/results/placement.md has the figures.
- All dimensions that the node limits take part, also those the pod does not demand: what is
  left over is what tells a GPU node from a CPU node when a CPU pod asks.
- A dimension that the node does not limit (capacity `np.inf`) takes no part there. Free below
  zero (over-allocated) counts as nothing free.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from extender.arrays import Floats, Rows


@dataclass(frozen=True, slots=True)
class Offered:
    """What nodes offer, prepared once for as long as the nodes stay the same; made by `offered`.

    `capacity` [N, R] is zero where the node has none or does not limit it; `limited` [N, R] is 1 where it is limited;
    `weight` [R] is 1 / reference^2; `share` [N, R] is the part of the node's fullness that one unit is; `whole` [N] is
    1 where the node has any dimension at all.
    """

    capacity: Floats
    limited: Floats
    weight: Floats
    share: Floats
    whole: Floats

    def at(self, rows: Rows) -> "Offered":
        """Return what these nodes offer [K]."""
        # `take` is many times as fast here as an index is.
        return Offered(
            capacity=self.capacity.take(rows, axis=0),
            limited=self.limited.take(rows, axis=0),
            weight=self.weight,
            share=self.share.take(rows, axis=0),
            whole=self.whole.take(rows),
        )


class Rule(Protocol):
    """Scores nodes for one pod."""

    def __call__(self, demand: Floats, room: Floats, nodes: Offered) -> Floats:
        """Return a score per node [N], higher is better, from `demand` [R] and what `room` returns [N, R]."""


def offered(capacity: Floats) -> Offered:
    """Return what rules need of the nodes' capacity [N, R], infinite where not limited."""
    limited = np.isfinite(capacity)
    finite = np.where(limited, capacity, 0.0)
    reference = finite.max(axis=0, initial=0.0)
    has = finite > 0
    dimensions = has.sum(axis=1)
    per_unit = np.divide(1.0, finite, out=np.zeros_like(finite), where=has)
    return Offered(
        capacity=finite,
        limited=limited.astype(np.float64),
        weight=np.divide(1.0, reference**2, out=np.zeros_like(reference), where=reference > 0),
        share=per_unit / np.maximum(dimensions, 1)[:, np.newaxis],
        whole=(dimensions > 0).astype(np.float64),
    )


def room(allocated: Floats, nodes: Offered) -> Floats:
    """Return what is free [N, R] under `allocated` [N, R]: nothing where over-allocated, none, or not limited."""
    return np.asarray(np.maximum(nodes.capacity - allocated, 0.0))


def dot(demand: Floats, room: Floats, nodes: Offered) -> Floats:
    """Return the paper's alignment, the sum of demand x free: 0..R, the larger wins (Tetris, 3.2).

    For a given pod it grows with whatever is free, most in the dimensions that the pod needs: of
    nodes of one shape the emptiest wins. It spreads.
    """
    return np.asarray(room @ (demand * nodes.weight))


def cosine(demand: Floats, room: Floats, nodes: Offered) -> Floats:
    """Return the cosine of the angle between demand and free: 0..1, the larger wins.

    The dot product also divided by both lengths, so that shape alone counts and not how empty the
    node is: the pod goes where what is free has its proportions, and other nodes keep theirs. Zero
    where nothing is demanded or nothing is free.
    """
    squares = _demand_squared(demand, nodes) * _room_squared(room, nodes)
    return np.asarray(dot(demand, room, nodes) / np.sqrt(np.where(squares > 0, squares, np.inf)))


def l2_norm_diff(demand: Floats, room: Floats, nodes: Offered) -> Floats:
    """Return minus the sum of (demand - free)^2: -R..0, the smaller difference wins (Tetris, 5.3.1).

    The paper gives no sign. The difference is what would be left over: a small one means a tight
    fit in all dimensions at once. It consolidates.
    """
    return 2 * dot(demand, room, nodes) - _demand_squared(demand, nodes) - _room_squared(room, nodes)


def l2_norm_ratio(demand: Floats, room: Floats, nodes: Offered) -> Floats:
    """Return minus the sum of (demand / free)^2: -R..0 where the pod fits, the smaller ratio wins (Tetris, 5.3.1).

    The paper gives no sign. The dimension that the pod would come nearest to using up rules the
    sum: the smaller it is, the less likely one dimension strands the others. The other sign is best
    fit in disguise, and measured like it. Minus infinity where nothing is free of what is demanded.
    """
    asked = np.flatnonzero(demand)
    free = np.where(nodes.limited[:, asked] > 0, room[:, asked], np.inf)
    ratio = np.divide(demand[asked], free, out=np.full_like(free, np.inf), where=free > 0)
    return np.asarray(-np.einsum("nr,nr->n", ratio, ratio))


RULES: Mapping[str, Rule] = MappingProxyType(
    {"dot": dot, "cosine": cosine, "l2-norm-diff": l2_norm_diff, "l2-norm-ratio": l2_norm_ratio}
)
"""The rules by the name that the settings use."""


def fullness(room: Floats, nodes: Offered) -> Floats:
    """Return the mean allocated fraction over the dimensions that each node has [N]: 0 empty, 1 full.

    A dimension without limit or with capacity zero takes no part. A node that has none counts as
    empty. Of nodes whose free resources have one shape the fuller goes first, so that others stay
    whole for large pods.
    """
    return np.asarray(nodes.whole - np.einsum("nr,nr->n", room, nodes.share))


class TaskRule(Protocol):
    """Scores task classes for one machine: Tetris' own question."""

    def __call__(self, demand: Floats, free: Floats) -> Floats:
        """Return a score per class [C], higher is better.

        `demand` [C, R] and `free` [R] are divided by that machine's capacity, 0 where it has none or does not limit it.
        """


def task_dot(demand: Floats, free: Floats) -> Floats:
    """Return the sum of demand x free (Tetris, 3.2): large tasks, and those that want what is plentiful."""
    score: Floats = demand.dot(free)
    return score


def task_cosine(demand: Floats, free: Floats) -> Floats:
    """Return the cosine of the angle between demand and free: shape alone, not size; 0 where either is nothing."""
    lengths = np.sqrt(np.einsum("cr,cr->c", demand, demand) * (free @ free))
    return np.asarray(np.divide(demand @ free, lengths, out=np.zeros(len(demand)), where=lengths > 0))


def task_l2_norm_diff(demand: Floats, free: Floats) -> Floats:
    """Return minus the sum of (demand - free)^2: the least left over wins (Tetris, 5.3.1; the sign is ours)."""
    left = demand - free
    return np.asarray(-np.einsum("cr,cr->c", left, left))


def task_l2_norm_ratio(demand: Floats, free: Floats) -> Floats:
    """Return the sum of (demand / free)^2: who uses most of what is scarce wins (Tetris, 5.3.1; the sign is ours)."""
    ratio = np.divide(demand, free, out=np.zeros_like(demand), where=free > 0)
    return np.asarray(np.einsum("cr,cr->c", ratio, ratio))


def task_ffd_prod(demand: Floats, free: Floats) -> Floats:
    """Return the product of demand over the dimensions that the machine has left: the largest task wins."""
    return np.asarray(np.prod(demand[:, free > 0], axis=1))


def task_ffd_sum(demand: Floats, free: Floats) -> Floats:  # noqa: ARG001 - one signature for all rules
    """Return the sum of demand: the largest task wins."""
    return np.asarray(demand.sum(axis=1))


TASK_RULES: Mapping[str, TaskRule] = MappingProxyType(
    {
        "dot": task_dot,
        "cosine": task_cosine,
        "l2-norm-diff": task_l2_norm_diff,
        "l2-norm-ratio": task_l2_norm_ratio,
        "ffd-prod": task_ffd_prod,
        "ffd-sum": task_ffd_sum,
    }
)
"""The rules of Tetris' table 8, as it asks them: which task for this machine."""


def _demand_squared(demand: Floats, nodes: Offered) -> Floats:
    """Return demand^2 summed over the dimensions that each node limits [N]."""
    return np.asarray(nodes.limited @ (demand * demand * nodes.weight))


def _room_squared(room: Floats, nodes: Offered) -> Floats:
    return np.asarray((room * room) @ nodes.weight)
