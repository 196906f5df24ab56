"""What a plan needs of nodes and classes that stays as it is from plan to plan."""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows, needs
from extender.cluster.ledger.layout import Layout
from extender.cluster.resources import DIMENSIONS, DISK_READ_INDEX, NETWORK_IN_INDEX
from extender.cluster.waiting import Blocks, Shuffle, Waiting
from extender.planner.locality.attainable import attainable


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of nodes: `of_node` [N] is each one's; `weight` [R, S] is 1 / what such a node has, times its size.

    A node's size is the mean of its parts of all that there is.
    """

    of_node: Rows
    weight: Floats

    def misfit(self, demand: Floats) -> Floats:
        """Return how badly each shape suits tasks that demand this [R]: the largest part of a node, times its size [S].

        So a node of twice as much of everything suits as well; one of twice as much of what they need little of suits
        worse.
        """
        return np.asarray((demand[:, np.newaxis] * self.weight).max(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Nodes [N] and classes [C], resources [R] in rows where nodes are in columns.

    `per_unit` [R, N] is 1 / capacity, 0 where there is none or no limit, or where it says nothing of how well a pod
    suits a node (`Layout.packed`); `alignment_scale` [R, N] is what alignment multiplies by (`scale_of`). `unlimited`
    says whether any has no limit. `special` [N] says how many more devices (extended resources) a node has than the
    mean node: 0 for no more, 1 for twice as many, 2 for four times. `shapes` are those of the nodes, None where all
    have the same.
    `here` [C, R] is what a task takes of its node where it reads there, `away` [C, R] where it reads from elsewhere;
    `*_needs` say the same with minus infinity for nothing, so that nothing always fits, and `ways_needs` [2 C, R] both,
    one after the other; `whole` [C, R] is what it takes of the cluster. `total` [R] is all that nodes have, as shares
    are of it. `asked` are the resources that anyone demands besides reading. `own` [C] read where they run, `blocks`
    [C] and `shuffles` [C] what they are named for; a shuffle's rates [S, N] are at `rates_row` of its class.
    `unreadable` [C] says of which classes no task could read its block as fast as it declares.
    """

    waiting: Waiting
    layout: Layout
    capacity: Floats
    per_unit: Floats
    alignment_scale: Floats
    special: Floats
    shapes: Shapes | None
    unlimited: bool
    total: Floats
    whole: Floats
    here: Floats
    away: Floats
    here_needs: Floats
    away_needs: Floats
    ways_needs: Floats
    demand_needs: Floats
    asked: list[int]
    reading: list[float]
    unreadable: Mask
    own: Mask
    blocks: Mask
    shuffles: Mask
    block_rows: list[int]
    rates: Floats
    rate_needs: Floats
    rates_row: list[int]

    def suits(self, waiting: Waiting, layout: Layout) -> bool:
        """Whether it was made of the same arrays: those who plan again and again may hand over the same objects."""
        before = self.waiting
        return (
            layout is self.layout
            and waiting.demand is before.demand
            and waiting.reading is before.reading
            and ((waiting.inputs is before.inputs and waiting.barred is before.barred) or self._reads_alike(waiting))
        )

    def _reads_alike(self, waiting: Waiting) -> bool:
        """Whether what is prepared is the same for these inputs: which blocks they are does not matter by itself."""
        pairs = zip(waiting.inputs, self.waiting.inputs, strict=True)
        alike = all(now is then or (isinstance(now, Blocks) and isinstance(then, Blocks)) for now, then in pairs)
        return alike and np.array_equal(_unreadable(waiting, self.layout), self.unreadable)


def prepared(waiting: Waiting, layout: Layout, before: Prepared | None = None) -> Prepared:
    """Return what a plan needs of these; what is of nodes alone is taken from `before` where they are the same."""
    capacity = np.ascontiguousarray(layout.capacity.T)
    limited = np.isfinite(capacity)
    packed = np.isfinite(layout.packed.T) & (capacity > 0)
    per_unit = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=packed)
    demand, reading = waiting.demand, waiting.reading
    here, away = demand.copy(), demand.copy()
    here[:, DISK_READ_INDEX] += reading
    away[:, NETWORK_IN_INDEX] += reading
    given = [(row, inputs) for row, inputs in enumerate(waiting.inputs) if inputs is not None]
    blocks = np.zeros(len(demand), dtype=np.bool_)
    blocks[[row for row, inputs in given if isinstance(inputs, Blocks)]] = True
    packed_capacity = np.where(packed, capacity, 0.0)
    here_needs, away_needs = needs(here), needs(away)
    spread_over = [(row, inputs) for row, inputs in given if isinstance(inputs, Shuffle)]
    shuffles = np.zeros(len(blocks), dtype=np.bool_)
    shuffles[[row for row, _ in spread_over]] = True
    rates = np.zeros((len(spread_over), capacity.shape[1]))
    for place, (_, inputs) in enumerate(spread_over):
        rates[place, inputs.nodes] = inputs.rates
    same_nodes = before is not None and before.layout is layout
    shapes = before.shapes if before is not None and same_nodes else _shapes(packed_capacity, per_unit)
    scale = before.alignment_scale if before is not None and same_nodes else scale_of(capacity, packed)
    return Prepared(
        waiting=waiting,
        layout=layout,
        capacity=capacity,
        per_unit=per_unit,
        alignment_scale=scale,
        special=_special(packed_capacity[len(DIMENSIONS) :]),
        shapes=shapes,
        unlimited=not limited.all(),
        total=layout.total,
        whole=np.where(shuffles[:, np.newaxis], away, here),
        here=here,
        away=away,
        here_needs=here_needs,
        away_needs=away_needs,
        ways_needs=np.concatenate((here_needs, away_needs)),
        demand_needs=np.ascontiguousarray(needs(demand).T),
        asked=np.flatnonzero((demand > 0).any(axis=0)).tolist(),
        reading=reading.tolist(),
        unreadable=_unreadable(waiting, layout),
        own=~(blocks | shuffles),
        blocks=blocks,
        shuffles=shuffles,
        block_rows=np.flatnonzero(blocks).tolist(),
        rates=rates,
        rate_needs=needs(rates),
        rates_row=(np.cumsum(shuffles) - 1).tolist(),
    )


def scale_of(capacity: Floats, packed: Mask) -> Floats:
    """Return by what demand and free amounts are multiplied to compare tasks on a node [R, N], 0 where not `packed`.

    It is 1 / (what the mean node has x the node's size). A node's size is the geometric mean of what it has, as parts
    of what the mean node has. So a node keeps its shape, and only its size does not count.

    Why not divide by the node's own capacity: then every empty node would be (1, 1, ...), and a node with much CPU and
    little memory would first take tasks that need much memory, as they would be large there. On nodes of one shape the
    two are the same. Nodes with devices are divided by their own capacity: what they have most of is for tasks that
    need the devices.
    """
    own = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=packed)
    base = packed[: len(DIMENSIONS)]
    amounts = np.where(base, capacity[: len(DIMENSIONS)], 0.0)
    mean = amounts.sum(axis=1, keepdims=True) / np.maximum(np.count_nonzero(base, axis=1), 1)[:, np.newaxis]
    ratio = np.divide(amounts, mean, out=np.ones_like(amounts), where=base)
    size = np.exp(np.log(ratio).sum(axis=0) / np.maximum(np.count_nonzero(base, axis=0), 1))
    scale = own.copy()
    scale[: len(DIMENSIONS)] = np.divide(1.0, mean * size, out=np.zeros_like(amounts), where=base)
    return np.where((own[len(DIMENSIONS) :] > 0).any(axis=0), own, scale)


_STEPS = 4
"""Nodes whose amounts differ by less than a step, of so many in which an amount doubles, have one shape."""


def _shapes(capacity: Floats, per_unit: Floats) -> Shapes | None:
    """Return the shapes of nodes by what they have [R, N]; None where all have the same."""
    has = capacity > 0
    steps = np.where(has, np.round(_STEPS * np.log2(np.where(has, capacity, 1.0))), -np.inf)
    _, first, of_node = np.unique(steps.T, axis=0, return_index=True, return_inverse=True)
    if len(first) < 2:
        return None
    total = capacity.sum(axis=1, keepdims=True)
    offered = total[:, 0] > 0
    size = (capacity[offered][:, first] / total[offered]).mean(axis=0)
    return Shapes(of_node.ravel().astype(np.intp), per_unit[:, first] * size)


def _special(devices: Floats) -> Floats:
    """Return how many more devices [D, N] each node has than the mean node: the binary logarithm of the ratio [N].

    Of several kinds the one counts of which it has most beyond the mean.
    """
    mean = devices.sum(axis=1, keepdims=True) / max(devices.shape[1], 1)
    ratios = np.divide(devices, mean, out=np.ones_like(devices), where=mean > 0)
    return np.asarray(np.log2(ratios.max(axis=0, initial=1.0)))


def _unreadable(waiting: Waiting, layout: Layout) -> Mask:
    """Return of which classes no task could read its block as fast as it declares, were all nodes empty [C]."""
    unreadable = np.zeros(len(waiting.count), dtype=np.bool_)
    arrays = waiting.demand, waiting.reading, waiting.inputs, waiting.barred
    for row, rates in attainable(*arrays, layout.capacity):
        if isinstance(waiting.inputs[row], Blocks):
            unreadable[row] = rates.max(initial=0.0) < waiting.reading[row]
    return unreadable
