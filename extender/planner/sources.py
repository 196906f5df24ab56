"""Where classes read while a plan is made: whose blocks are where, which disks and links can still serve.

Everything is kept with resources and classes in rows and nodes in columns, [R, N] and [K, N].
"""

import numpy as np
from numpy.typing import NDArray

from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Blocks, Inputs, Spread

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

DISK_READ, NETWORK_IN, NETWORK_OUT = (DIMENSIONS.index(name) for name in ("disk-read", "network-in", "network-out"))


class Sources:
    """The inputs of waiting classes [K] against what disks and links have `free` [R, N], which it takes from.

    `own` [K] says which read where they run, `spread` [K] which shuffle; the others read blocks. `local` [K, N] is how
    many of a class's waiting tasks have their block on a node. `kept` [N] bytes per second of each disk (read) and link
    (out) are for shuffles that wait: at most `headroom` of it. `dead` [K] are those found to have no source with room.
    """

    def __init__(
        self, inputs: list[Inputs], reading: Floats, left: Counts, capacity: Floats, free: Floats, *, headroom: float
    ) -> None:
        """Take the nodes' `capacity` [R, N], each class's `reading` [K] in bytes per second and tasks `left` [K]."""
        classes, nodes = len(inputs), free.shape[1]
        self._inputs, self._free = inputs, free
        self._rate = reading.tolist()
        self.own = np.ones(classes, dtype=np.bool_)
        self.spread = np.zeros(classes, dtype=np.bool_)
        self.local = np.zeros((classes, nodes), dtype=np.int64)
        self.dead = np.zeros(classes, dtype=np.bool_)
        shuffles: list[Spread] = []
        for row, read in enumerate(inputs):
            if isinstance(read, Blocks):
                self.local[row] = read.local
                self.own[row] = False
            elif isinstance(read, Spread):
                self.spread[row], self.own[row] = True, False
                shuffles.append(read)
        self.blocks = ~(self.own | self.spread)
        self._rates = np.zeros((len(shuffles), nodes))
        self._rates_row = np.cumsum(self.spread) - 1
        for row, shuffle in enumerate(shuffles):
            self._rates[row, shuffle.nodes] = shuffle.rates
        self._keep(left[self.spread] @ self._rates, capacity, headroom)
        self._waits: dict[int, Mask] = {}

    def _keep(self, wanted: Floats, capacity: Floats, headroom: float) -> None:
        rates = capacity[[DISK_READ, NETWORK_OUT]]
        kept = np.minimum(wanted, headroom * np.where(np.isfinite(rates), rates, 0.0))
        self._kept = np.floor(kept)
        self.kept = self._kept[0]

    def lending(self) -> Floats:
        """Return how fast each node could still be read from elsewhere [N], leaving shuffles their part."""
        free = self._free
        lent: Floats = np.minimum(free[DISK_READ] - self._kept[0], free[NETWORK_OUT] - self._kept[1])
        return lent

    def able(self, rows: Rows) -> Mask:
        """Return which of these classes find room at their sources, read from elsewhere than each node [rows, N]."""
        able = np.zeros((len(rows), self.local.shape[1]), dtype=np.bool_)
        blocks = self.blocks[rows].nonzero()[0]
        if len(blocks):
            of = rows[blocks]
            lent = np.where(self.local[of] > 0, self.lending(), -np.inf).max(axis=1)
            able[blocks] = (lent >= np.take(self._rate, of))[:, np.newaxis]
        shuffles = self.spread[rows].nonzero()[0]
        if len(shuffles):
            rates = self._rates[self._rates_row[rows[shuffles]]]
            can_read = (self._free[DISK_READ] >= rates).all(axis=1) | (rates == 0).all(axis=1)
            blocked = (self._free[NETWORK_OUT] < rates) & (rates > 0)
            # What runs on a source needs nothing of its link: it may be the one that is full.
            able[shuffles] = (blocked.sum(axis=1)[:, np.newaxis] == blocked) & can_read[:, np.newaxis]
        return able

    def take(self, task_class: int, node: int, *, near: bool) -> tuple[int, int] | None:
        """Take what a task reads of its sources, but for what it takes of `node` by its own demand.

        Returns its index in Blocks and the node it reads from (-1 and -1 where it reads no block); None, and nothing
        is taken, where no source has room.
        """
        inputs = self._inputs[task_class]
        if isinstance(inputs, Blocks):
            return self._take_block(inputs, task_class, node, near=near)
        if isinstance(inputs, Spread):
            return (-1, -1) if self._take_spread(task_class, node) else None
        return -1, -1

    def _take_block(self, inputs: Blocks, task_class: int, node: int, *, near: bool) -> tuple[int, int] | None:
        free, source = self._free, node
        if not near:
            rate = self._rate[task_class]
            room = np.where(self.local[task_class] > 0, self.lending(), -np.inf)
            room[node] = -np.inf
            source = int(room.argmax())
            if room[source] < rate:
                return None
            free[DISK_READ, source] -= rate
            free[NETWORK_OUT, source] -= rate
        waits = self._waits.get(task_class)
        if waits is None:
            waits = self._waits[task_class] = inputs.waiting.copy()
        tasks = inputs.at(source)
        task = int(tasks[waits[tasks].argmax()])
        waits[task] = False
        copies = inputs.copies[task]
        self.local[task_class, copies[copies >= 0]] -= 1
        return task, source

    def _take_spread(self, task_class: int, node: int) -> bool:
        """Take a shuffle's rates at every source and its own link; False, and nothing taken, if one has no room."""
        free, rates = self._free, self._rates[self._rates_row[task_class]]
        here = float(rates[node])
        received = self._rate[task_class] - here
        used = rates > 0
        sent = rates.copy()
        sent[node] = 0.0
        if ((free[DISK_READ] < rates) & used).any() or ((free[NETWORK_OUT] < sent) & (sent > 0)).any():
            return False
        if free[NETWORK_IN, node] < received:
            return False
        free[DISK_READ] -= rates
        free[NETWORK_OUT] -= sent
        free[NETWORK_IN, node] -= received
        self._kept -= rates
        np.maximum(self._kept, 0.0, out=self._kept)
        return True
