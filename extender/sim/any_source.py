"""Where tasks read that do not run beside their block, if nobody looks at disks and links: as HDFS's clients choose."""

from dataclasses import dataclass, replace

import numpy as np

from extender.cluster.snapshot import Snapshot
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
                copies = inputs.copies[int(chosen.task[row])]
                copies = copies[copies >= 0]
                if waiting.topology is not None:
                    beside = copies[waiting.topology[0, copies] == waiting.topology[0, chosen.node[row]]]
                    copies = beside if len(beside) else copies
                source[row] = copies[random.integers(len(copies))]
        return replace(plan, assignments=replace(chosen, source=np.asarray(source)))
