"""What classes score on a node: alignment less a part of remaining work, and who comes before all others."""

import numpy as np

from extender.arrays import Floats
from extender.cluster.waiting import Waiting
from extender.planner.fairness.precedence import before_others
from extender.planner.prepared import Prepared
from extender.planner.tuning import Policy
from extender.planner.visit import Visit
from extender.policy.alignment import TASK_RULES
from extender.policy.barrier import last_before_barrier
from extender.policy.locality import penalised


class Scores:
    """The scores of classes [C] on nodes that have `free` [R, N], as it changes.

    `work` [C] is the remaining work of each one's job, `last` [C] are the last of their stage, and `before` [C] puts
    classes above others.
    """

    def __init__(self, policy: Policy, waiting: Waiting, classes: Prepared, free: Floats) -> None:
        self._policy, self._classes, self._free = policy, classes, free
        self._rule = TASK_RULES[policy.rule]
        self.work = waiting.jobs.work[waiting.job]
        self.last = last_before_barrier(waiting.finished, barrier=policy.barrier)
        self.before = before_others(policy, waiting, self.last)
        self._some_before = bool(np.count_nonzero(self.before))
        self._counts = np.where(self.last, 0.0, self.work) if policy.packing else self.work

    def of(self, visit: Visit) -> tuple[Floats, Floats]:
        """Return the scores, and the alignments in them: alignment - eps x remaining work (Tetris, 3.3.2).

        eps = m x mean(alignment) / mean(work), over the classes that fitted when the node was looked at.
        """
        aligned = self._aligned(visit)
        if visit.pull is None:
            visit.pull = self._pull(visit, aligned)
        return (aligned - visit.pull if self._policy.packing else -visit.pull), aligned

    def _aligned(self, visit: Visit) -> Floats:
        free = self._free[:, visit.node]
        if self._classes.unlimited:
            free = np.where(visit.per_unit > 0, free, 0.0)
        aligned = self._rule(visit.takes, np.maximum(free * visit.per_unit, 0.0))
        return aligned if visit.factor is None else penalised(aligned, visit.factor)

    def _pull(self, visit: Visit, aligned: Floats) -> Floats:
        """Return what is taken off the alignment: eps x remaining work, and what puts some before others.

        Without packing it is the part of all remaining work, which is all that counts then; with it, that of the last
        of a stage does not count.
        """
        policy, rows = self._policy, visit.rows
        whole = float(self.work[rows].sum())
        weight = policy.srtf * float(np.abs(aligned).sum()) if policy.packing else 1.0
        pull = (weight / whole if whole > 0 else 0.0) * self._counts[rows]
        return pull - self.before[rows] if self._some_before else pull
