"""Where tasks read that do not run beside their block, if nobody looks at disks and links: as HDFS's clients choose."""

from dataclasses import dataclass, replace

import numpy as np

from extender.cluster.snapshot import Rows, Snapshot
from extender.cluster.waiting import Blocks, Waiting
from extender.planner import Plan, Scheduler
from extender.sim.baselines import drawing


@dataclass(frozen=True, slots=True)
class AnySource:
    """Lets `inner` plan, and lets what reads from elsewhere read from a copy in its rack, else any, drawn by `seed`."""

    inner: Scheduler
    seed: int = 0

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        plan = self.inner.plan(snapshot, waiting, now)
        chosen, random = plan.assignments, drawing(self.seed, now)
        source = chosen.source.copy()
        for row in ((source >= 0) & (source != chosen.node)).nonzero()[0].tolist():
            inputs = waiting.inputs[int(chosen.task_class[row])]
            if isinstance(inputs, Blocks):
                racks = None if waiting.topology is None else waiting.topology[0]
                source[row] = any_copy(inputs.copies[int(chosen.task[row])], int(chosen.node[row]), racks, random)
        return replace(plan, assignments=replace(chosen, source=np.asarray(source)))


def any_copy(copies: Rows, node: int, racks: Rows | None, random: np.random.Generator) -> int:
    """Return from which of these nodes (-1 for none) a task on `node`, which is none of them, reads its block."""
    copies = copies[copies >= 0]
    if racks is not None:
        beside = copies[racks[copies] == racks[node]]
        copies = beside if len(beside) else copies
    return int(copies[random.integers(len(copies))])
