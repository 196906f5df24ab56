"""One pod beside the plan: what is free for it, where it may go, and how near to its input that is."""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask
from extender.cluster.model import Pod
from extender.control.backlog.backlog import PodPhase, TaskClass
from extender.explain.planned_order import PlannedOrder
from extender.verdict import demand_on, room_for


@dataclass(frozen=True, slots=True)
class Case:
    """One held or released pod beside the plan: its class, its row in the plan (-1: none), where it may go and what is
    free for it [N, R].
    """  # noqa: D205 - one sentence

    view: PlannedOrder
    pod: Pod
    of: TaskClass | None
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
        """Which nodes would hold it if they were empty [N]."""
        return np.asarray(((self.view.snapshot.layout.capacity >= self.demand) | (self.demand <= 0)).all(axis=1))

    @property
    def levels(self) -> Counts | None:
        """How far each node is from where it would rather be [N]; None where that makes no difference.

        Where it runs its node has its input still, though it was cordoned since.
        """
        places = self.view.input_builder.places
        of = places.of_pod if self.pod.node else places.as_planned
        return of(self.pod, self.view.snapshot.layout)

    def near(self, level: int) -> Mask:
        """Return which nodes that it could use are at most at a level [N]."""
        levels, usable = self.levels, self.allowed & self.large_enough
        return usable if levels is None else usable & (levels <= level)


def case_of(found: PlannedOrder, pod: Pod) -> Case:
    """Return a pod's case, with what the order knows of its volumes."""
    pod = found.backlog.pod(pod.uid) or pod
    of = _class_of(found, pod)
    row = found.made.row(of, pod.uid) if of is not None else None
    layout = found.snapshot.layout
    allowed = found.input_builder.allowed(pod, layout)
    return Case(
        found, pod, of, -1 if row is None else row, allowed, room_for(found.snapshot, pod), demand_on(layout, pod)
    )


def _class_of(found: PlannedOrder, pod: Pod) -> TaskClass | None:
    for of in found.backlog.classes():
        if of.job.queue == pod.identity.queue and any(pod.uid in of.pods[stage] for stage in PodPhase):
            return of
    return None
