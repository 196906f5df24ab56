"""What a waiting pod needs to start on a node: room there, and somewhere to read its input from.

On a node that holds its input it reads there; on any other it takes network-in, and what it reads of the holders. A
plan asks for one usable holder that has the whole rate free: that is where the pod may start (`nodes`). The ledger
counts the rate evenly on all holders, so evictions must leave room for each part too (`met`).
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows, fits
from extender.cluster.ledger.layout import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.reading import lent, reading, sources
from extender.cluster.resources import DISK_READ, NETWORK_OUT
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.verdict import demand_on


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """What a pod takes of each node if it runs there [N, R], and of the `sources` [S] if it runs on none of them.

    `parts` [S, R] is what counts on each, `reads` [R] what one of the `usable` [S] must have.
    """

    takes: Floats
    sources: Rows
    parts: Floats
    reads: Floats
    usable: Mask

    def met(self, here: Floats, there: Floats, rows: Rows) -> Mask:
        """Return on which of these nodes [H] it can run and nobody is crowded out.

        `here` [H, R] is what they have, `there` [H, S, R] what its sources would have.
        """
        return np.asarray(fits(here, self.takes[rows]) & (np.isin(rows, self.sources) | self.is_lent(there)))

    def is_lent(self, there: Floats) -> Mask:
        """Return where it can read from elsewhere and nobody is crowded out [...]; `there` [..., S, R] as above."""
        return np.asarray(fits(there, self.parts).all(axis=-1) & self._is_lent_by_one(there))

    def nodes(self, free: Floats) -> Mask:
        """Return on which nodes a plan would let it run [N]; `free` [N, R]."""
        able = fits(free, self.takes)
        if not self._is_lent_by_one(free[self.sources]):
            able &= np.isin(np.arange(len(able)), self.sources)
        return able

    def _is_lent_by_one(self, there: Floats) -> Mask:
        if not self.usable.any():
            return np.ones(there.shape[:-2], dtype=np.bool_)
        return np.asarray(fits(there[..., self.usable, :], self.reads).any(axis=-1))


def need_of(pod: Pod, layout: Layout, nodes: AllowedNodes) -> Need:
    """Return what a pod needs of the nodes of a layout."""
    holders = sources(pod, layout.rows)
    rows, rate = np.array([layout.rows[name] for name in holders], dtype=np.intp), reading(pod)
    parts = [layout.vector(amounts) for amounts in lent(pod, holders).values()]
    return Need(
        takes=np.broadcast_to(demand_on(layout, pod), layout.capacity.shape),
        sources=rows,
        parts=np.array(parts).reshape(len(holders), len(layout.axis)),
        reads=layout.vector({DISK_READ: rate, NETWORK_OUT: rate}),
        usable=nodes.usable(pod, layout)[rows],
    )
