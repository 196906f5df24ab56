"""Whether all pods that wait surely find room, so that no plan is needed to say whose turn it is.

Most clusters have room most of the time, and a plan over a burst for which there is room says what is known before.
"""

from collections import defaultdict

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.gangs import group_of
from extender.control.backlog.task_classes import PodPhase, TaskClass
from extender.control.filter_order.plan_slots import SPARE_PART


def free_in_all(snapshot: Snapshot) -> Floats:
    """Return what is free on all nodes together [R]."""
    total: Floats = np.maximum(snapshot.free(), 0.0).sum(axis=0)
    return total


def calm_demand(backlog: Backlog, snapshot: Snapshot) -> Floats | None:
    """Return what the pods without a gate need that wait [R]; None where somebody may have to wait for others.

    Somebody may have to wait where a pod is held or was refused, where a gang is to start whole, where it matters on
    which node a pod starts, or where all together need more than `SPARE_PART` of what is free.
    """
    amounts: defaultdict[str, float] = defaultdict(float)
    with backlog.lock:
        if backlog.uids_at(PodPhase.READY):
            return None
        for task_class in backlog.classes():
            ungated = task_class.pods[PodPhase.UNGATED]
            if not ungated:
                continue
            if is_particular(task_class) or any(pod.unschedulable for pod in ungated.values()):
                return None
            for name, amount in task_class.template.demand.items():
                amounts[name] += amount * len(ungated)
    demand = snapshot.layout.vector(amounts)
    return demand if (demand <= SPARE_PART * free_in_all(snapshot)).all() else None


def is_particular(task_class: TaskClass) -> bool:
    """Say whether it matters where pods of a class start, or with whom."""
    template = task_class.template
    return bool(template.inputs or template.prefers or template.constraints.volumes or group_of(task_class))
