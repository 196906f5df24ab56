"""What nodes use besides their pods, for plans to leave room for: daemons outside the cluster, copies, ingestion.

Tetris, 4.1: tasks are not the only ones that use a machine. Only what was measured counts, and nothing where it was
not.
"""

from collections.abc import Callable, Mapping

import numpy as np

from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.resources import Amounts
from extender.cluster.usage import Usage
from extender.control.idle_room.measured_use import measured_load_besides_pods


class LoadBesidesPods:
    """Has the ledger count it as allocated. One thread calls `step`; any may read `by_node`, of those with a load."""

    def __init__(self, ledger: Ledger, usage: Callable[[], Usage]) -> None:
        """Take what says the use now."""
        self._ledger, self._usage = ledger, usage
        self._seen: tuple[Layout, Usage] | None = None
        self.by_node: Mapping[str, Amounts] = {}

    def step(self, layout: Layout) -> None:
        """Tell the ledger, where there was another look at the use, or nodes have changed."""
        usage = self._usage()
        if self._seen is not None and self._seen[0] is layout and self._seen[1] is usage:
            return
        self._seen = (layout, usage)
        load = measured_load_besides_pods(layout, usage)
        self.by_node = {
            layout.names[row]: {layout.axis[column]: float(load[row, column]) for column in load[row].nonzero()[0]}
            for row in np.flatnonzero(load.any(axis=1)).tolist()
        }
        self._ledger.note_load(self.by_node)
