"""What pods hold of each node, kept up as pods come and go and as nodes come and go."""

from collections.abc import Collection, Mapping, Set

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.ledger.flights import charge, charge_given
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.node_holders import NodeHolders
from extender.cluster.model import Pod


class Allocated:
    """The `amounts` [N, R] that `pods` hold by a layout, and what opportunistic ones are `given` beyond them [N, R].

    `by_nodes_own` [N, R] is what those hold that belong to their node.
    The ledger's lock is held by who calls.
    """

    def __init__(self, pods: Mapping[str, Pod], holders: NodeHolders, layout: Layout) -> None:
        """Take the pods by UID and who holds which node: both as the ledger changes them."""
        self._pods, self._holders, self._layout = pods, holders, layout
        self.amounts: Floats = np.zeros(layout.capacity.shape)
        self.given: Floats = np.zeros(layout.capacity.shape)
        self.by_nodes_own: Floats = np.zeros(layout.capacity.shape)
        self._by_priority: dict[int, Floats] = {}

    def charge(self, pod: Pod, sign: float) -> None:
        """Add what a pod takes of the node that it holds, and of those that it reads from; or take it off."""
        charge(self.amounts, self._layout, pod, pod.holds or "", sign)
        if pod.priority not in self._by_priority:
            self._by_priority[pod.priority] = np.zeros(self._layout.capacity.shape)
        charge(self._by_priority[pod.priority], self._layout, pod, pod.holds or "", sign)
        if pod.is_of_node:
            charge(self.by_nodes_own, self._layout, pod, pod.holds or "", sign)
        charge_given(self.given, self._layout, pod, pod.holds or "", sign)

    def forget_unheld(self, priority: int) -> None:
        """Forget a priority where no pod that holds a node has it any more: its book is as large as the cluster."""
        if priority not in self._holders.priorities():
            self._by_priority.pop(priority, None)

    def below(self, priority: int) -> Floats:
        """Return what pods of a lower priority hold [N, R]."""
        books = (book for held, book in self._by_priority.items() if held < priority)
        return sum(books, np.zeros(self._layout.capacity.shape))

    def lay_out(self, layout: Layout) -> tuple[Rows, Rows]:
        """Take another layout; return the rows of the nodes that stay, before and after.

        Where the axis stays, so do the amounts of nodes that stay. Only pods that read from other nodes are counted
        again: what they take depends on which nodes there are.
        """
        old, same_axis = self._layout, self._layout.axis == layout.axis
        # 1. Take off what readers hold, by the old layout.
        readers = self._readers_of(old.rows.keys() ^ layout.rows.keys()) if same_axis else self._holders.readers
        for uid in readers:
            self.charge(self._pods[uid], -1.0)
        # 2. Carry over the rows of the nodes that stay.
        stayed = [name for name in layout.names if name in old.rows]
        before = np.array([old.rows[name] for name in stayed], dtype=np.intp)
        after = np.array([layout.rows[name] for name in stayed], dtype=np.intp)

        def carried(book: Floats) -> Floats:
            moved = np.zeros(layout.capacity.shape)
            if same_axis:
                moved[after] = book[before]
            return moved

        self._layout = layout
        self.amounts, self.given = carried(self.amounts), carried(self.given)
        self.by_nodes_own = carried(self.by_nodes_own)
        self._by_priority = {priority: carried(book) for priority, book in self._by_priority.items()}
        # 3. Count what pods hold of new nodes (of all, on another axis), and then the readers again.
        for name in set(layout.names).difference(stayed if same_axis else ()):
            for uid in set(self._holders.on(name)) - self._holders.readers:
                self.charge(self._pods[uid], 1.0)
        for uid in readers:
            self.charge(self._pods[uid], 1.0)
        return before, after

    def _readers_of(self, nodes: Set[str]) -> Collection[str]:
        """Return the pods that run on one of these nodes or may read from one."""
        pods = ((uid, self._pods[uid]) for uid in self._holders.readers) if nodes else ()
        return [uid for uid, pod in pods if pod.holds in nodes or any(name in nodes for name, _ in pod.inputs)]
