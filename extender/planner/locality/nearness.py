"""How near to its input each class would start on each node: levels, and long tasks kept apart (Delay Scheduling).

Level 0 is a node from whose own disk it would read, or that it prefers most; each level of the topology is one more,
and beyond them is anywhere.
"""

from collections.abc import Callable

import numpy as np

from extender.arrays import Counts, Mask, Rows, needs_fit
from extender.cluster.waiting import Blocks, Waiting
from extender.planner.locality.sources import Sources
from extender.planner.prepared import Prepared

_NOWHERE = 2**31


class Nearness:
    """The levels of classes [C] on nodes [N], by where `sources` has their blocks, which changes.

    `chooses` [C]: it makes a difference to the class where it starts. `long_task` seconds make a class that chooses one
    of long tasks (`is_long` [C]); one whose duration nobody knows is one, too.
    """

    def __init__(self, waiting: Waiting, classes: Prepared, sources: Sources, *, long_task: float) -> None:
        nodes = classes.capacity.shape[1]
        topology = waiting.topology
        self._topology = np.empty((0, nodes), dtype=np.intp) if topology is None else topology
        self._classes, self._sources, self._barred = classes, sources, waiting.barred
        self.anywhere = len(self._topology) + 1
        afar = [isinstance(inputs, Blocks) and inputs.afar for inputs in waiting.inputs]
        self._near = classes.blocks & ~np.array(afar, dtype=np.bool_)
        self._prefers = np.zeros(len(afar), dtype=np.bool_)
        self._preferred = np.zeros((0, nodes), dtype=np.int16) if waiting.preferred is None else waiting.preferred
        if waiting.preferred is not None:
            self._prefers = ~classes.blocks & (self._preferred != self._preferred[:, :1]).any(axis=1)
        self.chooses: Mask = self._near | self._prefers
        self.is_long: Mask = ~(waiting.duration < long_task) & self.chooses
        self._long_tasks = _long_tasks(waiting, nodes, long_task)

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is counted from now on."""
        long_tasks = self._long_tasks.copy()

        def undo() -> None:
            self._long_tasks[:] = long_tasks

        return undo

    def count(self, task_class: int, node: int) -> None:
        """Count a task that starts on the node."""
        self._long_tasks[node] += bool(self.is_long[task_class])

    def within(self, task_class: int, node: int, may: int) -> list[Mask]:
        """Return from which nodes a block may come to this one, the nearest first, up to the level `may`."""
        if not self._near[task_class]:
            return []
        upto = self._topology[: max(0, may)]
        sets = [(group == group[node]) & (group[node] >= 0) for group in upto]
        return [*sets, np.ones(self._topology.shape[1], dtype=np.bool_)] if may >= self.anywhere else sets

    def of_start(self, task_class: int, node: int, source: int, *, near: bool) -> int:
        """Return the level of a start: `source` is the node that it reads its block from, if it reads one."""
        if self.is_long[task_class] and self._crowded()[node]:
            return self.anywhere
        if self._prefers[task_class]:
            return int(self._preferred[task_class, node])
        if near or not self._near[task_class]:
            return 0
        return level_between(self._topology, node, source)

    def levels(self, rows: Rows, nodes: Rows, near: Mask) -> Counts:
        """Return the levels of classes on nodes [rows, nodes]; `near` [rows, nodes] says who would read there."""
        at = np.zeros((len(rows), len(nodes)), dtype=np.int64)
        blocks = self._near[rows].nonzero()[0]
        if len(blocks):
            at[blocks] = self._of_blocks(rows[blocks], nodes, near[blocks])
        prefers = self._prefers[rows].nonzero()[0]
        if len(prefers):
            at[prefers] = self._preferred[np.ix_(rows[prefers], nodes)]
        self._keep_apart(at, rows, nodes)
        return at

    def _of_blocks(self, rows: Rows, nodes: Rows, near: Mask) -> Counts:
        at = np.full((len(rows), len(nodes)), self.anywhere, dtype=np.int64)
        for place in range(len(self._topology) - 1, -1, -1):
            at[self._in_groups(rows, nodes, self._topology[place])] = place + 1
        at[near] = 0
        return at

    def _in_groups(self, rows: Rows, nodes: Rows, group: Rows) -> Mask:
        """Return which of these nodes are in a group with one that holds a block [rows, nodes]."""
        mine = group[nodes]
        among = np.isin(group, mine).nonzero()[0] if len(nodes) < len(group) else np.arange(len(group))
        row, node = (self._sources.local(rows[:, np.newaxis], among) > 0).nonzero()
        holds = np.zeros((len(rows), int(group.max(initial=-1)) + 2), dtype=np.bool_)
        holds[row, group[among[node]]] = True
        holds[:, -1] = False  # the last place is for nodes that are in no group
        return holds[:, mine]

    def _keep_apart(self, at: Counts, rows: Rows, nodes: Rows) -> None:
        """Let no node that runs more than the mean number of long tasks count as near for such a class (3.5.1)."""
        long = self.is_long[rows]
        if long.any():
            at[np.ix_(long, self._crowded()[nodes])] = self.anywhere

    def _crowded(self) -> Mask:
        return np.asarray(self._long_tasks > self._long_tasks.mean())

    def existing(self, levels: int) -> Mask:
        """Return at which of the first levels each class has a node that would have room if all were empty [C, K]."""
        existing = np.zeros((len(self.chooses), levels), dtype=np.bool_)
        if not levels:  # nobody waits at any: the usual settings
            return existing
        rows, nodes = self.chooses.nonzero()[0], np.arange(self._classes.capacity.shape[1])
        able = needs_fit(self._classes.capacity.T, self._classes.demand_needs[:, rows].T[:, np.newaxis])
        if self._barred is not None:
            able &= ~self._barred[rows]
        at = np.where(able, self.levels(rows, nodes, self._sources.local_on_all(rows) > 0), _NOWHERE)
        for level in range(levels):
            existing[rows, level] = (at == level).any(axis=1)
        return existing

    def crowded(self, task_class: int) -> Mask:
        """Return which nodes run too many long tasks to count as near for a class [N]."""
        return self._crowded() if self.is_long[task_class] else np.zeros(self._topology.shape[1], dtype=np.bool_)

    def preferred_nodes(self, task_class: int, level: int) -> Mask:
        """Return which nodes are at most at this level of those that a class without blocks prefers [N]."""
        return np.asarray(self._preferred[task_class] <= level)

    def nodes_near(self, copies: Rows, level: int) -> Mask:
        """Return for tasks whose blocks have `copies` [T, K] which nodes are at most at this level [T, N]."""
        nodes, task = self._topology.shape[1], np.arange(len(copies))[:, np.newaxis]
        near = np.zeros((len(copies), nodes + 1), dtype=np.bool_)
        near[task, copies] = True  # the last place is for what is no copy
        for group in self._topology[:level]:
            holds = np.zeros((len(copies), int(group.max(initial=-1)) + 2), dtype=np.bool_)
            holds[task, np.where(copies >= 0, group[copies], -1)] = True
            holds[:, -1] = False
            near[:, :nodes] |= holds[:, group]
        return near[:, :nodes]


def level_between(topology: Rows | None, node: int, source: int) -> int:
    """Return how far a node is from another that it reads from: by the smallest group that has both."""
    if topology is None:
        return 1
    same = (topology[:, node] == topology[:, source]) & (topology[:, node] >= 0)
    return int(same.argmax()) + 1 if same.any() else len(topology) + 1


def _long_tasks(waiting: Waiting, nodes: int, long_task: float) -> Counts:
    """Return how many long tasks run on each node [N]; none where that is not known."""
    running = waiting.running
    if running is None or running.seconds is None:
        return np.zeros(nodes, dtype=np.int64)
    long = ~(running.seconds < long_task)
    return np.bincount(running.node[long], minlength=nodes)
