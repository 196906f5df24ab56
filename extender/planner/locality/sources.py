"""Where classes read while a plan is made: whose blocks are where, which disks and links can still serve."""

from collections.abc import Callable, Sequence

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.resources import DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
from extender.cluster.waiting import Blocks, Inputs
from extender.planner.prepared import Prepared

_ANY_NUMBER = 2**40
_SERVING = [DISK_READ_INDEX, NETWORK_OUT_INDEX]
_LITTLE = 0.01
"""Who takes at most this part of a link reads from it however full it is."""


class Sources:
    """The inputs of classes [C] against what disks and links have `free` [R, N], which it takes from.

    `local` says how many of a class's waiting tasks can read on a node: those whose block is there, all of a class that
    reads where it runs, none of a shuffle. `kept` [2, N] bytes per second of each disk (read) and link (out) are
    for shuffles that wait: at most `headroom` of it.

    A shuffle takes little of each of many nodes, so the fullest of these would hold it up. It may start while at most
    the part `excess` is promised of each link beyond what it has; links of which it takes at most a hundredth do not
    count. While not `keeping`, what is kept does not count, and a shuffle reads from its sources however full they are:
    on a busy cluster one of them is always full, and no room can be reserved for it on all.
    """

    def __init__(
        self, classes: Prepared, inputs: Sequence[Inputs], left: Counts, free: Floats, *, headroom: float, excess: float
    ) -> None:
        """Take how many of each class's tasks are `left` [C]."""
        self._classes, self._inputs, self._free = classes, inputs, free
        # A row for those that read where they run, one for shuffles, and one for each class that reads blocks.
        self._local = np.zeros((2 + len(classes.block_rows), free.shape[1]), dtype=np.int64)
        self._local[0] = _ANY_NUMBER
        self._local_row = np.where(classes.own, 0, 1)
        for place, row in enumerate(classes.block_rows, 2):
            self._local[place] = inputs[row].local  # type: ignore[union-attr] # these rows are Blocks
            self._local_row[row] = place
        self._headroom = headroom
        rates = classes.capacity[_SERVING]
        links = np.where(np.isfinite(rates[1]), rates[1], 0.0)
        little = classes.rates <= _LITTLE * links
        self._link_needs = np.where(little, -np.inf, classes.rate_needs - excess * links)
        self.keep_for(left)
        self.keeping = True
        self._waits: dict[int, Mask] = {}

    def keep_for(self, left: Counts) -> None:
        """Keep the headroom for the shuffles among what is `left` [C]."""
        classes, rates = self._classes, self._classes.capacity[_SERVING]
        wanted = left[classes.shuffles] @ classes.rates
        self.kept = np.floor(np.minimum(wanted, self._headroom * np.where(np.isfinite(rates), rates, 0.0)))

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is taken from now on, but for what is `free`."""
        local, kept = self._local[2:].copy(), self.kept.copy()
        waits = {row: tasks.copy() for row, tasks in self._waits.items()}

        def undo() -> None:
            self._local[2:], self.kept[:] = local, kept
            self._waits = {row: tasks.copy() for row, tasks in waits.items()}

        return undo

    def local(self, rows: Rows, nodes: Rows | int) -> Counts:
        """Return how many tasks of these classes can read on these nodes; one, or of shapes that go together."""
        return np.asarray(self._local[self._local_row[rows], nodes])

    def has_local(self, task_class: int, node: int) -> bool:
        """Say whether a task of the class can read on the node."""
        return self._local.item(self._local_row.item(task_class), node) > 0

    def local_on_all(self, rows: Rows) -> Counts:
        """Return how many tasks of these classes can read on each node [rows, N]."""
        return self._local.take(self._local_row[rows], axis=0)

    def left(self, task_class: int, inputs: Blocks) -> Mask:
        """Return which tasks of a class that reads blocks still wait [T]."""
        return self._waits.get(task_class, inputs.waiting)

    def lending(self) -> Floats:
        """Return how fast each node could still be read from elsewhere [N], leaving shuffles their part.

        Never below 0: who reads at no rate that is known can always read.
        """
        free, kept = self._free, self.kept
        if not self.keeping:
            return np.asarray(np.maximum(np.minimum(free[DISK_READ_INDEX], free[NETWORK_OUT_INDEX]), 0.0))
        lent = np.minimum(free[DISK_READ_INDEX] - kept[0], free[NETWORK_OUT_INDEX] - kept[1])
        return np.asarray(np.maximum(lent, 0.0))

    def able(self, rows: Rows, nodes: Rows) -> Mask:
        """Return which of these classes find room at their sources if they run on each of these nodes [rows, nodes]."""
        classes = self._classes
        able = np.zeros((len(rows), len(nodes)), dtype=np.bool_)
        blocks = classes.blocks[rows].nonzero()[0]
        if len(blocks):
            readers = rows[blocks]
            lend = self.lending() >= classes.waiting.reading[readers, np.newaxis]
            able[blocks] = ((self.local_on_all(readers) > 0) & lend).any(axis=1, keepdims=True)
        shuffles = classes.shuffles[rows].nonzero()[0]
        if len(shuffles):
            full_disks, blocked = self._full(np.take(classes.rates_row, rows[shuffles]))
            can_read = ~np.logical_or.reduce(full_disks, axis=1)
            # What runs on a source needs nothing of its link: it may be the one that is full.
            able[shuffles] = (blocked.sum(axis=1)[:, np.newaxis] == blocked[:, nodes]) & can_read[:, np.newaxis]
            if DISK_READ_INDEX in classes.asked:  # its own part and what it demands besides are of one disk
                own = classes.rates[np.take(classes.rates_row, rows[shuffles])][:, nodes]
                demanded = classes.away[rows[shuffles], DISK_READ_INDEX]
                able[shuffles] &= self._for_shuffles()[DISK_READ_INDEX, nodes] >= own + demanded[:, np.newaxis]
        return able

    def nobody_can(self, task_class: int) -> bool:
        """Whether the class finds no room at its sources, whichever node it runs on."""
        classes = self._classes
        if classes.blocks[task_class]:
            lent = np.where(self._local[self._local_row[task_class]] > 0, self.lending(), -np.inf)
            return bool(lent.max(initial=-np.inf) < classes.reading[task_class])
        if not classes.shuffles[task_class]:
            return False
        full_disks, blocked = self._full(classes.rates_row[task_class])
        return bool(np.count_nonzero(full_disks) or np.count_nonzero(blocked) > 1)

    def only_at(self, rows: Rows) -> Rows:
        """Return the one node where these shuffles could still run [k]: its link is the only one that is full for them.

        -1 where no link is full, or where nobody can run anywhere: a disk is full, or more than one link.
        """
        full_disks, blocked = self._full(np.take(self._classes.rates_row, rows))
        only = (blocked.sum(axis=1) == 1) & ~full_disks.any(axis=1)
        return np.where(only, blocked.argmax(axis=1), -1)

    def _for_shuffles(self) -> Floats:
        """Return what nodes have for shuffles that read there [R, N]; to be read at once."""
        return self._free if self.keeping else self._classes.capacity

    def _full(self, rates_rows: Rows | list[int] | int) -> tuple[Mask, Mask]:
        """Return which disks and which links have no room for these shuffles, [k, N] each, or [N] for one of them."""
        room, needs = self._for_shuffles(), self._classes.rate_needs[rates_rows]
        of_links = self._link_needs[rates_rows] if self.keeping else needs
        return np.asarray(room[DISK_READ_INDEX] < needs), np.asarray(room[NETWORK_OUT_INDEX] < of_links)

    def take(self, task_class: int, node: int, *, near: bool, within: Sequence[Mask] = ()) -> tuple[int, int] | None:
        """Take what a task that fits on `node` reads of its sources, but for what it takes there by its own demand.

        A block comes from the first of `within` (sets of nodes [N]) that has a source with room, from anywhere without.
        Returns its index in Blocks and the node it reads from (-1 and -1 where it reads no block); None, and nothing
        is taken, where no source has room.
        """
        inputs = self._inputs[task_class]
        if inputs is None:
            return -1, -1
        if isinstance(inputs, Blocks):
            return self._take_block(inputs, task_class, node, near=near, within=within)
        return (-1, -1) if self._take_spread(task_class, node) else None

    def _take_block(
        self, inputs: Blocks, task_class: int, node: int, *, near: bool, within: Sequence[Mask]
    ) -> tuple[int, int] | None:
        free, local, source = self._free, self._local[self._local_row[task_class]], node
        waits = self._waits.get(task_class)
        if waits is None:
            waits = self._waits[task_class] = inputs.waiting.copy()
        able = waits
        if not near:
            rate = self._classes.reading[task_class]
            local_tasks = inputs.at(node)
            copies = inputs.copies[local_tasks[waits[local_tasks]]]
            able = waits.copy()
            able[local_tasks] = False  # whose block is on the node reads it there or not at all
            elsewhere = local - np.bincount(copies[copies >= 0], minlength=inputs.nodes)
            room = np.where(elsewhere > 0, self.lending(), -np.inf)
            for nodes in within:
                among = np.where(nodes, room, -np.inf)
                if among.max() >= rate or nodes is within[-1]:
                    room = among
                    break
            source = int(room.argmax())
            if room[source] < rate:
                return None
            free[DISK_READ_INDEX, source] -= rate
            free[NETWORK_OUT_INDEX, source] -= rate
        tasks = inputs.at(source)
        task = int(tasks[able[tasks].argmax()])
        waits[task] = False
        for copy in inputs.copies[task].tolist():
            if copy >= 0:
                local[copy] -= 1
        return task, source

    def _take_spread(self, task_class: int, node: int) -> bool:
        """Take a shuffle's rates at every source and its own link; False, and nothing taken, if a source is full."""
        classes, row = self._classes, self._classes.rates_row[task_class]
        rates = classes.rates[row]
        here = rates.item(node)
        elsewhere = classes.reading[task_class] - here
        beside = here + classes.away.item(task_class, DISK_READ_INDEX)
        if self._for_shuffles().item(DISK_READ_INDEX, node) < beside:
            return False
        full_disks, blocked = self._full(row)
        if np.count_nonzero(blocked) > blocked.item(node) or np.count_nonzero(full_disks):
            return False
        self._free[DISK_READ_INDEX] -= rates
        self._free[NETWORK_OUT_INDEX] -= rates
        self._free[NETWORK_OUT_INDEX, node] += here
        self._free[NETWORK_IN_INDEX, node] -= elsewhere
        self.kept -= rates
        np.maximum(self.kept, 0.0, out=self.kept)
        return True
