"""Where final outputs are copied to, and what the copies take: disk and network of other machines.

HDFS writes a final output through a pipeline (HDFS architecture guide, "Replication Pipelining"): the task writes to
its own machine, which sends the same bytes to the second machine as it writes them, and that one to the third. So the
stream takes network-out of each machine but the last, and network-in and disk-write of each but the first, and the
slowest of them sets its pace.

Symbols: N machines, A tasks, K copies on other machines, R dimensions. A machine N stands for none.
"""

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.resources import DISK_WRITE_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
from lab.sim.workloads.stages import StageTable
from lab.sim.workloads.workload import Machines

_WRITE, _IN, _OUT = DISK_WRITE_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
_ON_TWO_RACKS = 2


class OutputCopies:
    """Which machines hold the copies of each task's output, drawn at the beginning: whatever the policy, the same draw.

    Each is another machine than those before it. Where there are racks, as HDFS does with two copies elsewhere: the
    first on another rack than the task's, the second on that same rack (none if it has no other machine). Only machines
    with a disk and a network count.
    """

    def __init__(self, table: StageTable, machines: Machines, random: np.random.Generator) -> None:
        self._nodes = len(machines.capacity)
        self._holders = machines.output_holders
        self._copied = table.copied
        self.count = table.output_copies - 1 if table.copied.any() else 0
        self._drawn = random.random((self.count, len(table.durations) if self.count else 0))
        self._racks: Rows | None = None
        if machines.racks is not None and self.count == _ON_TWO_RACKS and len(np.unique(machines.racks)) > 1:
            self._racks = machines.racks
            self._holders = self._holders[np.argsort(machines.racks[self._holders], kind="stable")]

    def of(self, stage: Rows, task: Rows, node: Rows) -> Rows:
        """Return the machines [K, A] that tasks of these stages copy their output to from their nodes, N for none."""
        copies = np.full((self.count, len(task)), self._nodes, dtype=np.intp)
        tasks = np.flatnonzero(self._copied[stage])
        if not self.count or not len(tasks):
            return copies
        drawn, first = self._drawn[:, task[tasks]], node[tasks]
        racks = self._racks
        copies[:, tasks] = self._anywhere(drawn, first) if racks is None else self._on_two_racks(racks, drawn, first)
        return copies

    def _anywhere(self, drawn: Floats, node: Rows) -> Rows:
        place = np.full(self._nodes, len(self._holders), dtype=np.intp)
        place[self._holders] = np.arange(len(self._holders))
        taken = place[node][np.newaxis]  # at each turn: the places that a task has its output on already
        for row in drawn:
            left = len(self._holders) - (taken < len(self._holders)).sum(axis=0)
            taken = np.vstack((taken, _skipping(_pick(row, left), taken)))
        return self._holders[taken[1:]]

    def _on_two_racks(self, racks: Rows, drawn: Floats, node: Rows) -> Rows:
        holders = self._holders
        begin, end = (np.searchsorted(racks[holders], racks, side=side) for side in ("left", "right"))
        own = end[node] - begin[node]
        # 1. The first copy skips the task's rack; on a cluster whose only disks are there, it has none.
        others = len(holders) - own
        first = _pick(drawn[0], others)
        first += np.where(first >= begin[node], own, 0)
        first_node = np.where(others > 0, holders[np.minimum(first, len(holders) - 1)], self._nodes)
        # 2. The second is on the rack of the first, and skips it.
        rack = np.minimum(first_node, self._nodes - 1)
        left = end[rack] - begin[rack] - 1
        second = begin[rack] + _pick(drawn[1], left)
        second += second >= first
        second_node = np.where((others > 0) & (left > 0), holders[np.minimum(second, len(holders) - 1)], self._nodes)
        return np.vstack((first_node, second_node))


def add_copies(total: Floats, node: Rows, copies: Rows, written: Floats, sign: float = 1.0) -> None:
    """Add what the copies of outputs take to `total` [N, R]: tasks [A] write `written` [A] bytes a second on `node`."""
    nodes = len(total)
    sender = node
    for receiver in copies:
        amounts = np.where(receiver < nodes, written, 0.0) * sign
        received = np.bincount(receiver, weights=amounts, minlength=nodes + 1)[:nodes]
        total[:, _WRITE] += received
        total[:, _IN] += received
        total[:, _OUT] += np.bincount(np.minimum(sender, nodes), weights=amounts, minlength=nodes + 1)[:nodes]
        sender = receiver


def add_on_all_nodes(whole: Floats, copies: Rows, nodes: int, written: Floats) -> None:
    """Add what the copies take of all nodes together to `whole` [R, A]."""
    whole[[_WRITE, _IN, _OUT]] += (copies < nodes).sum(axis=0) * written


def copying_rate(part: Floats, node: Rows, copies: Rows) -> Floats:
    """Return how fast the copies go [A], 1 being the peak; `part` [N + 1, R] as in contention.term_rates."""
    rate = np.ones(len(node))
    tasks = np.flatnonzero((copies < len(part) - 1).any(axis=0))  # few have a copy: outputs that are final
    if not len(tasks):
        return rate
    sender, slowest = node.take(tasks), np.ones(len(tasks))
    receiving, sending = np.minimum(part[:, _WRITE], part[:, _IN]), part[:, _OUT].copy()
    for receiver in copies.take(tasks, axis=1):
        np.minimum(slowest, receiving.take(receiver), out=slowest)
        np.minimum(slowest, sending.take(sender), out=slowest, where=receiver < len(part) - 1)
        sender = receiver
    rate[tasks] = slowest
    return rate


def _pick(drawn: Floats, count: Rows) -> Rows:
    """Return a place below `count` [A] for each number drawn from [0, 1); 0 where there is none."""
    return np.maximum(np.minimum((drawn * count).astype(np.intp), count - 1), 0)


def _skipping(place: Rows, taken: Rows) -> Rows:
    """Return the places [A] counted without those that are `taken` [., A]."""
    for other in np.sort(taken, axis=0):
        place = place + (place >= other)
    return place
