"""How fast tasks run on machines that they share. Pure: arrays go in.

A task has up to three terms, each with work of its own: computing, writing, and reading its input (Tetris, equation 5).
An over-allocated resource is shared in proportion to demand: every task gets the same part of its demand.
Memory, and what is beyond the six dimensions, is never shared. Symbols: N machines, P tasks, C classes that read from
many machines, R dimensions: the six, then others.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import (
    CPU_INDEX,
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    IO_DIMENSIONS,
    MEMORY,
    NETWORK_IN_INDEX,
    NETWORK_OUT_INDEX,
)
from extender.policy.degradation import goodput

RATES: Mask = np.array([name in IO_DIMENSIONS for name in DIMENSIONS])
RATES.setflags(write=False)
"""The dimensions that are disk and network."""

DISKS: Mask = np.isin(np.arange(len(DIMENSIONS)), [DISK_READ_INDEX, DISK_WRITE_INDEX])
DISKS.setflags(write=False)
"""The dimensions that are disk."""

_RECEIVING: Mask = np.arange(len(DIMENSIONS)) == NETWORK_IN_INDEX

SHARED: Mask = np.array([name != MEMORY for name in DIMENSIONS])
SHARED.setflags(write=False)
"""The dimensions that slow tasks down where they are over-allocated."""

Number = TypeVar("Number", np.bool_, np.float64)

_CHUNK = 16
TERMS = ("computing", "writing", "reading")
_CPU, _READ, _WRITE, _IN, _OUT = CPU_INDEX, DISK_READ_INDEX, DISK_WRITE_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
TERM_COLUMNS = np.zeros((len(TERMS), len(DIMENSIONS)))
"""Which dimensions of its machine each term takes [3, R]: 1 or 0."""
TERM_COLUMNS[[0, 1, 2, 2, 2], [_CPU, _WRITE, _READ, _IN, _OUT]] = 1.0
TERM_COLUMNS.setflags(write=False)


def wide(columns: NDArray[Number], width: int) -> NDArray[Number]:
    """Return an array [..., 6] with columns of zeros, or False, up to `width` [..., width]."""
    if columns.shape[-1] == width:
        return columns
    more = [(0, 0)] * (columns.ndim - 1) + [(0, width - columns.shape[-1])]
    return np.pad(columns, more)


def efficiency(load: Floats, loss: float = 1.0) -> Floats:
    """Return which part of a disk or network is left of what contention wastes [..., 6], at a `load` [..., 6].

    As in `degradation.goodput`; `loss` is how much of it counts. CPU and memory waste nothing, and no link to its
    senders: incast is many who send to one, and it is in front of the receiver that the switch drops what they send.
    """
    return goodput(load, disks=DISKS, links=_RECEIVING, loss=loss)


def carried(demand: Floats, capacity: Floats, *, loss: float = 0.0) -> Floats:
    """Return how much of their demand disks, links and CPU carry, each by itself [N, R]; `loss` as in `efficiency`.

    Of memory, and what is beyond the six dimensions, all that is demanded.
    """
    return demand * factors(demand, capacity, loss=loss)


def factors(demand: Floats, capacity: Floats, *, loss: float = 0.0, shared: Mask = SHARED) -> Floats:
    """Return which part of its demand every task gets, in [0, 1] by dimension; both arrays [..., R].

    1 where demand fits, where a dimension is not `shared`, and where nothing is demanded. `loss` is how much of what
    contention wastes counts (`efficiency`); with some, a disk that is nearly full is over-allocated too.
    """
    over = (demand > capacity) & wide(shared, capacity.shape[-1])
    part: Floats = np.divide(capacity, demand, out=np.ones(over.shape), where=over)
    if loss > 0:
        width = len(DIMENSIONS)
        capacity, demand = capacity[..., :width], demand[..., :width]
        offered = RATES & (capacity > 0)
        load = np.divide(demand, capacity, out=np.zeros(offered.shape), where=offered)
        left = np.divide(efficiency(load, loss), load, out=np.ones(load.shape), where=load > 0)
        np.minimum(part[..., :width], left, out=part[..., :width])
    return part


def spread_part(rates: Floats, row: Rows, machine: Rows, part: Floats) -> Floats:
    """Return the rate [P] at which the sources of tasks let them read, for tasks that read from many machines each.

    A task reads its `row` [P] of `rates` [., N] from the machines. The slowest source counts: the least `part` [N, R]
    of disk-read at any source, and of network-out at any source but the task's own `machine` [P]. The task's own
    network-in is not counted here.
    """
    # 1. The slowest disk and the slowest link of each distinct row.
    used = np.flatnonzero(np.bincount(row))
    place_of = np.empty(len(rates), dtype=np.intp)
    place_of[used] = np.arange(len(used))
    place = place_of[row]
    _, disk = _least(rates, used, part[:, _READ])
    worst, out = _least(rates, used, part[:, _OUT])
    rate = np.minimum(disk, out)[place]
    # 2. A task whose slowest link is that of its own machine does not use it; the slowest of the others counts.
    own = np.flatnonzero((worst[place] == machine) & (out < 1.0)[place])
    if len(own):
        remote_rates = rates[row[own]]
        remote_rates[np.arange(len(own)), machine[own]] = 0.0
        elsewhere = _least(remote_rates, np.arange(len(own)), part[:, _OUT])[1]
        rate[own] = np.minimum(disk[place[own]], elsewhere)
    return rate


def _least(rates: Floats, row: Rows, part: Floats) -> tuple[Rows, Floats]:
    """Return the source of each row of `rates` with the least `part`, and that part; 1 where every source gives all.

    The search begins at the machine with the least part and goes on in chunks: as a rule one of the first is a source.
    At each turn, no row in `missing` reads from a machine that was searched before.
    """
    worst, least = np.zeros(len(row), dtype=np.intp), np.ones(len(row))
    scarce = np.flatnonzero(part < 1.0)
    scarce = scarce[np.argsort(part[scarce], kind="stable")]
    missing, chunk = np.arange(len(row)), _CHUNK
    while len(scarce) and len(missing):
        reads = rates[row[missing, None], scarce[:chunk]] > 0
        first = scarce[reads.argmax(axis=1)]
        has_source = reads.any(axis=1)
        worst[missing[has_source]], least[missing[has_source]] = first[has_source], part[first[has_source]]
        missing, scarce, chunk = missing[~has_source], scarce[chunk:], 4 * chunk
    return worst, least


def term_rates(
    part: Floats, machine: Rows, source: Rows, demand: Floats, spread: tuple[Rows, Floats] | None = None
) -> Floats:
    """Return how fast each term of each task progresses [3, P], 1 being its peak.

    `part` [N + 1, R] is that of `factors`, with a last row of ones. `machine` [P] is the task's own; `source` [P] the
    machine whose disk is read, N for none or many. `demand` [R, P] is what the task takes of its own machine: with
    network-in it reads over the network, with network-out it also sends. `spread`: the tasks that read from many
    machines, and the rates of their sources. The rate of a term that a task lacks has no meaning.
    """
    rates = np.ones((len(TERMS), len(machine)))
    scarce = np.asarray((part < 1.0).any(axis=0)).tolist()
    columns = part.T.copy()  # `take` from a row is several times as fast as looking up both indices
    if scarce[_CPU]:
        rates[0] = columns[_CPU].take(machine)
    if scarce[_WRITE]:
        rates[1] = columns[_WRITE].take(machine)
    reading = rates[2]
    if scarce[_READ]:
        reading[:] = columns[_READ].take(source)
    if scarce[_IN]:
        np.minimum(reading, columns[_IN].take(machine), out=reading, where=demand[_IN] > 0)
    if scarce[_OUT]:
        np.minimum(reading, columns[_OUT].take(source), out=reading, where=source != machine)
        np.minimum(reading, columns[_OUT].take(machine), out=reading, where=demand[_OUT] > 0)
    if spread is not None:
        reading[spread[0]] = np.minimum(reading[spread[0]], spread[1])
    return rates
