"""One pod beside the plan: what is free for it, where it may go, and how near to its input that is."""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, fits
from extender.cluster.model import Pod
from extender.control.backlog.backlog import TaskClass
from extender.explain.planned_order import PlannedOrder
from extender.verdict import demand_on, room_for


@dataclass(frozen=True, slots=True)
class Case:
    """One held or released pod beside the plan.

    `task_class` is None and `row` -1 where the plan does not know the pod. `allowed` [N] says which nodes it may go to,
    `free` [N, R] what is free for it there, `demand` [R] what it needs.
    """

    order: PlannedOrder
    pod: Pod
    task_class: TaskClass | None
    row: int
    allowed: Mask
    free: Floats
    demand: Floats

    @property
    def short(self) -> Floats:
        """How much nodes have too little of what it demands [N, R], 0 where enough."""
        return np.where(self.demand > 0, np.maximum(self.demand - self.free, 0.0), 0.0)

    @property
    def large_enough(self) -> Mask:
        """Which nodes would hold it if they were empty, but for the pods of DaemonSets and static ones [N]."""
        return fits(self.order.snapshot.empty, self.demand)

    @property
    def levels(self) -> Counts | None:
        """How far each node is from its input or preferred nodes [N]; None where that makes no difference.

        The node that a pod runs on counts as near its input even if it has been cordoned since.
        """
        preferred = self.order.input_builder.preferred_nodes
        levels_of = preferred.of_pod if self.pod.node else preferred.as_planned
        return levels_of(self.pod, self.order.snapshot.layout)

    def near(self, level: int) -> Mask:
        """Return which nodes that it could use are at most at a level [N]."""
        levels, usable = self.levels, self.allowed & self.large_enough
        return usable if levels is None else usable & (levels <= level)


def case_of(order: PlannedOrder, pod: Pod) -> Case:
    """Return a pod's case, with what the order knows of its volumes."""
    pod = order.backlog.pod(pod.uid) or pod
    position = order.backlog.find(pod.uid)
    task_class = position[0] if position is not None else None
    row = order.plan_input.row(task_class, pod.uid) if task_class is not None else None
    layout = order.snapshot.layout
    return Case(
        order=order,
        pod=pod,
        task_class=task_class,
        row=-1 if row is None else row,
        allowed=order.input_builder.allowed_nodes.allowed(pod, layout),
        free=room_for(order.snapshot, pod),
        demand=demand_on(layout, pod),
    )
