"""How well a node's free resources suit a pod's demand (Tetris, 3.2 and 5.3.1).

Every rule answers the question "which node for this pod": `[N]` scores, higher is better, each
rule's direction chosen for that question. Tetris asks the opposite, "which task for this machine".

What all rules share:

- Demand and free are divided by `reference`, the largest node's capacity per dimension, so that
  units do not count and, once divided, a node keeps its shape. Divided by its own capacity, every
  empty node would be (1, 1, ...), and a machine full of GPUs would look like one with a single
  GPU. On equal machines, as in the paper, the two are the same. docs/placement.md has the figures.
- All dimensions that the node limits take part, also those the pod does not demand: what is
  left over is what tells a GPU node from a CPU node when a CPU pod asks.
- A dimension that the node does not limit (capacity `np.inf`) takes no part there. Free below
  zero (over-allocated) counts as nothing free.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Rule(Protocol):
    """Scores nodes for one pod."""

    def __call__(self, demand: Floats, free: Floats, capacity: Floats, reference: Floats | None = None) -> Floats:
        """Return a score per node [N], higher is better.

        `demand` [R]; `free` [N, R], capacity minus allocated; `capacity` [N, R], infinite where not
        limited; `reference` [R], what `largest` returns for the whole cluster (by default: for the nodes given).
        """


def largest(capacity: Floats) -> Floats:
    """Return the largest finite capacity per dimension [R], zero where no node limits it."""
    return np.asarray(np.where(np.isfinite(capacity), capacity, 0.0).max(axis=0, initial=0.0))


def dot(demand: Floats, free: Floats, capacity: Floats, reference: Floats | None = None) -> Floats:
    """Return the paper's alignment, the sum of demand x free: 0..R, the larger wins (Tetris, 3.2).

    For a given pod it grows with whatever is free, most in the dimensions that the pod needs: of
    nodes of one shape the emptiest wins. It spreads.
    """
    along, _, _ = _products(demand, free, capacity, reference)
    return along


def cosine(demand: Floats, free: Floats, capacity: Floats, reference: Floats | None = None) -> Floats:
    """Return the cosine of the angle between demand and free: 0..1, the larger wins.

    The dot product also divided by both lengths, so that shape alone counts and not how empty the
    node is: the pod goes where what is free has its proportions, and other nodes keep theirs. Zero
    where nothing is demanded or nothing is free.
    """
    along, demand_squared, free_squared = _products(demand, free, capacity, reference)
    lengths = np.sqrt(demand_squared * free_squared)
    return np.divide(along, lengths, out=np.zeros_like(along), where=lengths > 0)


def l2_norm_diff(demand: Floats, free: Floats, capacity: Floats, reference: Floats | None = None) -> Floats:
    """Return minus the sum of (demand - free)^2: -R..0, the smaller difference wins (Tetris, 5.3.1).

    The paper gives no sign. The difference is what would be left over: a small one means a tight
    fit in all dimensions at once. It consolidates.
    """
    along, demand_squared, free_squared = _products(demand, free, capacity, reference)
    return 2 * along - demand_squared - free_squared


def l2_norm_ratio(demand: Floats, free: Floats, capacity: Floats, reference: Floats | None = None) -> Floats:
    """Return minus the sum of (demand / free)^2: -R..0 where the pod fits, the smaller ratio wins (Tetris, 5.3.1).

    The paper gives no sign. The dimension that the pod would come nearest to using up rules the
    sum: the smaller it is, the less likely one dimension strands the others. The other sign is best
    fit in disguise, and measured like it. Ratios have no unit, so `reference` plays no part. Minus
    infinity where nothing is free of what is demanded.
    """
    del reference
    asked = np.flatnonzero(demand)
    room = np.where(np.isfinite(capacity[:, asked]), np.maximum(free[:, asked], 0.0), np.inf)
    ratio = np.divide(demand[asked], room, out=np.full_like(room, np.inf), where=room > 0)
    return np.asarray(-np.einsum("nr,nr->n", ratio, ratio))


RULES: Mapping[str, Rule] = MappingProxyType(
    {"dot": dot, "cosine": cosine, "l2-norm-diff": l2_norm_diff, "l2-norm-ratio": l2_norm_ratio}
)
"""The rules by the name that the settings use."""


def fullness(free: Floats, capacity: Floats, reference: Floats | None = None) -> Floats:
    """Return the mean allocated fraction over the dimensions that each node has [N]: 0 empty, 1 full.

    A dimension without limit or with capacity zero takes no part. A node that has none counts as
    empty. Of nodes whose free resources have one shape the fuller goes first, so that others stay
    whole for large pods. `reference` only saves time: dimensions that no node limits are skipped.
    """
    if reference is not None:
        known = np.flatnonzero(reference > 0)
        free, capacity = free[:, known], capacity[:, known]
    has = (capacity > 0) & np.isfinite(capacity)
    room = np.where(has, free, 0.0)
    np.maximum(room, 0.0, out=room)
    room /= np.where(has, capacity, 1.0)
    each = np.ones(capacity.shape[1])
    dimensions = has @ each
    allocated = dimensions - room @ each
    return np.divide(allocated, dimensions, out=np.zeros_like(allocated), where=dimensions > 0)


def ffd_prod(demand: Floats, capacity: Floats) -> Floats:
    """Return the product of demand / capacity per task class [C]: the larger goes first (Tetris, 5.3.1).

    `demand` [C, R], `capacity` [R] of the machine. Only orders task classes: it does not tell one
    node from another. A class that leaves one dimension of the machine alone gets zero.
    """
    return np.asarray(np.prod(_fractions(demand, capacity), axis=1))


def ffd_sum(demand: Floats, capacity: Floats) -> Floats:
    """Return the sum of demand / capacity per task class [C]: the larger goes first (Tetris, 5.3.1).

    `demand` [C, R], `capacity` [R] of the machine. Only orders task classes: it does not tell one
    node from another.
    """
    return np.asarray(np.sum(_fractions(demand, capacity), axis=1))


def _products(
    demand: Floats, free: Floats, capacity: Floats, reference: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Return demand x free, demand^2 and free^2, each summed over the dimensions that the node limits [N]."""
    reference = largest(capacity) if reference is None else reference
    known = np.flatnonzero(reference > 0)
    limited = np.isfinite(capacity[:, known])
    room = np.where(limited, free[:, known], 0.0)
    np.maximum(room, 0.0, out=room)
    # (d / c) x (f / c) = f x (d / c^2): no array of nodes is divided.
    asked, weight = demand[known], reference[known] ** -2.0
    along = room @ (asked * weight)
    room *= room
    return along, limited @ (asked * asked * weight), room @ weight


def _fractions(demand: Floats, capacity: Floats) -> Floats:
    """Return demand by capacity over the dimensions that the machine has and limits [C, K]."""
    has = (capacity > 0) & np.isfinite(capacity)
    return demand[:, has] / capacity[has]
