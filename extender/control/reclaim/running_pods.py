"""The running pods that may be evicted, as arrays: P pods, those of one node side by side."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.reading import reading, taken
from extender.control.reclaim.backlog_copy import ClassShape, PodsOnNodes


class RunningPods:
    """What each pod is promised (`demand` [P, R]) and takes of its own node (`holds` [P, R]), and whose it is.

    `node` [P] is the row of its node, `queue` [P] that of its queue, `here` [P] whether it is still to be counted.
    `nodes` [M] are the nodes that have any of these pods; the `counts` [M] pods of each begin at `starts` [M].
    """

    def __init__(
        self, crews: Sequence[tuple[PodsOnNodes, int, ClassShape]], priorities: Sequence[int], snapshot: Snapshot
    ) -> None:
        """Take the pods of classes that may go, the row of each class's queue, and the priority of each class."""
        # 1. Gather the pods, class by class.
        self._crews = [crew for crew, *_ in crews]
        counts = np.array([len(crew.may_go) for crew in self._crews], dtype=np.intp)
        self._ends = counts.cumsum()
        node = np.concatenate([np.zeros(0, dtype=np.intp), *(crew.node for crew in self._crews)])
        # 2. Put those of one node side by side.
        self._order = order = np.argsort(node, kind="stable")
        self.node, self.here = node[order], np.ones(len(order), dtype=np.bool_)
        self.queue = np.repeat(np.array([row for _, row, _ in crews], dtype=np.intp), counts)[order]
        demand = np.array([kind.demand for *_, kind in crews]).reshape(len(crews), len(snapshot.layout.axis))
        self.demand = np.repeat(demand, counts, axis=0)[order]
        self.priority = np.repeat(np.array(priorities, dtype=np.int64), counts)[order]
        self.started = np.concatenate([np.zeros(0), *(crew.started for crew in self._crews)])[order]
        self.nodes, self.starts = np.unique(self.node, return_index=True)
        self.counts = np.diff(np.append(self.starts, len(order)))
        self._by_age = _ranks(np.lexsort((order, -self.started)))
        # 3. What a pod reads over the network it takes of other nodes than its own.
        self.holds = self.demand.copy()
        self._taken_elsewhere = self._remote_reads(snapshot)

    def pod(self, index: int) -> Pod:
        """Return a pod."""
        row = int(self._order[index])
        crew = int(np.searchsorted(self._ends, row, side="right"))
        return self._crews[crew].may_go[row - int(self._ends[crew])]  # counted from the end

    def worth(self, excess: Floats) -> Counts:
        """Return what orders the pods by their worth [P], no two alike; `excess` [Q] is that of their queues.

        Worth least are pods of the lowest priority, among these those of the queues furthest above their share, among
        these the most recently started.
        """
        queue_rank = np.unique(-excess[self.queue], return_inverse=True)[1]
        priority_rank = np.unique(self.priority, return_inverse=True)[1]
        ranks = priority_rank * (queue_rank.max(initial=0) + 1) + queue_rank
        return np.asarray(ranks * len(self.node) + self._by_age)

    def sums(self, amounts: Floats, nodes: int) -> Floats:
        """Return what the pods of each node have together [N, ...]; `amounts` [P, ...]."""
        sums = np.zeros((nodes, *amounts.shape[1:]))
        if len(self.nodes) and sums.size:
            sums[self.nodes] = np.add.reduceat(amounts, self.starts, axis=0)
        return sums

    def lent(self, sources: Rows) -> Floats:
        """Return what each pod takes of these nodes, on none of which it runs [P, S, R]."""
        lent = np.zeros((len(self.node), len(sources), self.holds.shape[1]))
        for column, row in enumerate(sources.tolist()):
            for index, amount in self._taken_elsewhere.get(row, ()):
                lent[index, column] = amount
        return lent

    def _remote_reads(self, snapshot: Snapshot) -> dict[int, list[tuple[int, Floats]]]:
        """Return what is read over the network of each node, and by which pods; take it out of what these hold."""
        layout = snapshot.layout
        by_node: dict[int, list[tuple[int, Floats]]] = {}
        crew_reads = [any(map(reading, crew.may_go[:1])) for crew in self._crews]
        reads = np.repeat(np.array(crew_reads, dtype=np.bool_), np.diff(self._ends, prepend=0))
        for index in np.flatnonzero(reads[self._order]).tolist() if reads.any() else ():
            pod = self.pod(index)
            own, *others = taken(pod, pod.node or "", layout.rows).items()
            self.holds[index] = layout.vector(own[1])
            for name, amounts in others:
                by_node.setdefault(layout.rows[name], []).append((index, layout.vector(amounts)))
        return by_node


def _ranks(order: Rows) -> Rows:
    """Return the rank of each in an order."""
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks
