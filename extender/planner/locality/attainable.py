"""How fast tasks could read their inputs if nothing else ran: no faster than the disks and links that serve them."""

from collections.abc import Iterator, Sequence

import numpy as np

from extender.arrays import Floats, Mask, needs, needs_fit
from extender.cluster.resources import DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
from extender.cluster.waiting import Blocks, Inputs, Shuffle

_RATES = [DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX]
_SAMPLE = 16
"""One of so many nodes, those with the fastest links, can take most inputs; only for the others are all looked at."""


def attainable(
    demand: Floats, reading: Floats, inputs: Sequence[Inputs], barred: Mask | None, capacity: Floats
) -> Iterator[tuple[int, Floats]]:
    """Yield the classes that may read faster than their inputs can come, and how fast their tasks could read at most.

    The first four are those of `cluster.waiting.Waiting`; `capacity` [N, R] is what nodes have. The rates are of each
    task of a class with blocks [T], and of any task of a shuffle [1]; classes that read where they run are left out.
    """
    slowest = capacity[:, _RATES].min(initial=np.inf)
    peak = reading + demand[:, NETWORK_IN_INDEX]
    rows = np.flatnonzero((reading > 0) & (peak > slowest)).tolist()
    if not rows:
        return
    lent = np.append(capacity[:, [DISK_READ_INDEX, NETWORK_OUT_INDEX]].min(axis=1), 0.0)
    links = np.argsort(-capacity[:, NETWORK_IN_INDEX], kind="stable")[:_SAMPLE]
    for row in rows:
        read = inputs[row]
        if read is None:
            continue
        needed = demand[row].copy()
        needed[NETWORK_IN_INDEX] = peak[row]
        fast = needs_fit(capacity[links], needs(needed))
        if barred is not None:
            fast &= ~barred[row, links]
        if fast.any() and _are_lent(read, reading.item(row), lent):
            continue
        usable = needs_fit(capacity, needs(demand[row]))
        if barred is not None:
            usable &= ~barred[row]
        link = (capacity[:, NETWORK_IN_INDEX] - demand[row, NETWORK_IN_INDEX]).max(initial=0.0, where=usable)
        if isinstance(read, Blocks):
            yield row, _of_blocks(read, capacity, usable, link)
        else:
            yield row, np.array([min(reading[row] * _part(read, capacity, usable), link)])


def _are_lent(read: Blocks | Shuffle, reading: float, lent: Floats) -> bool:
    """Say whether what is read comes as fast as it is wanted by what nodes can lend [N + 1]; the last has nothing."""
    if isinstance(read, Blocks):
        return bool((lent[read.copies].max(axis=1, initial=0.0) >= reading).all())
    return bool((lent[read.nodes] >= read.rates).all())


def _of_blocks(blocks: Blocks, capacity: Floats, usable: Mask, link: float) -> Floats:
    """Return how fast each task could read its block [T]: on a `usable` [N] node that has it, or over a `link`."""
    disk = capacity[:, DISK_READ_INDEX]
    there = np.append(np.where(usable, disk, 0.0), 0.0)  # the last is for copies that are not there
    lent = np.append(np.minimum(disk, capacity[:, NETWORK_OUT_INDEX]), 0.0)
    near, far = (rates[blocks.copies].max(axis=1, initial=0.0) for rates in (there, lent))
    return np.asarray(np.maximum(near, np.minimum(far, link)))


def _part(shuffle: Shuffle, capacity: Floats, usable: Mask) -> float:
    """Return which part of what a shuffle reads its sources could serve.

    It may run on the source with the slowest link, and reads what is there by the disk alone.
    """
    rates, serving = shuffle.rates, capacity[shuffle.nodes][:, [DISK_READ_INDEX, NETWORK_OUT_INDEX]].T
    disk, sent = np.divide(serving, rates, out=np.full(serving.shape, np.inf), where=rates > 0)
    slowest = int(sent.argmin())
    if usable[shuffle.nodes[slowest]]:
        sent[slowest] = np.inf
    return float(min(disk.min(), sent.min()))
