"""The slots that one plan has for pods without a gate: handed out one by one, as kube-scheduler asks."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.arrays import Counts, Mask
from extender.cluster.ledger.snapshot import Layout
from extender.control.backlog.task_classes import TaskClass

Key = tuple[int, int, int]
"""The versions of what a plan was made of: the ledger's, the backlog's, the nodes'."""


class PlanSlot(NamedTuple):
    """A place on a `node` (row), for the pod of this `uid`, or for any of the class where that is None.

    `level` is its locality level (-1: no difference); the job was `passed_over` for so many seconds to start there.
    Node -1 stands for any of `nodes` [N] (None: for all); `farther` says that these are farther from the input than
    the plan's node was.
    """

    node: int
    uid: str | None = None
    level: int = -1
    passed_over: float = 0.0
    nodes: Mask | None = None
    farther: bool = False

    def on(self, nodes: Mask | None, level: int) -> "PlanSlot":
        """Return the same turn on any of these nodes [N] (None: on all) at a locality level."""
        return PlanSlot(-1, self.uid, level, self.passed_over, nodes, farther=level > self.level)


@dataclass(slots=True)
class PlanSlots:
    """What is left of one plan: the slots by class, and which pods were given which.

    `without` are the names of classes that the plan left out; `waiting_gangs` are classes of gangs that cannot start
    whole, `waiting_near` classes that wait for room near their input. At `again_at`, in seconds since the epoch, such
    a wait ends. The plan was begun at `planned_at` (monotonic) and took `plan_seconds`. Callers hold the order's lock.
    """

    key: Key
    layout: Layout
    planned_at: float
    plan_seconds: float
    by_class: dict[TaskClass, list[PlanSlot]]
    waiting_gangs: Collection[TaskClass]
    without: Collection[str]
    waiting_near: Collection[TaskClass] = ()
    again_at: float = math.inf
    given: dict[str, PlanSlot] = field(default_factory=dict)

    def give(
        self,
        uid: str,
        task_class: TaskClass,
        fits: Mask,
        levels: Callable[[], Counts | None],
        elsewhere: Callable[[PlanSlot], PlanSlot | None] = lambda _: None,
    ) -> PlanSlot | None:
        """Return the slot of one pod of a class, where it `fits` [N]; None where there is none.

        The first pod that asks may get the slot of another of its class, where that is as near to its own input by
        `levels` [N]. Where it has a slot, but not on one of these nodes, `elsewhere` says what becomes of that.
        """
        # 1. A pod that asks again keeps its slot.
        if uid in self.given:
            slot = self.given[uid]
            return slot if fits[slot.node] else elsewhere(slot)
        # 2. A slot of its own that fits, or else one of another pod of its class.
        left = self.by_class.get(task_class, [])
        own = [slot for slot in left if slot.uid in (None, uid)]
        taken = next((slot for slot in own if fits[slot.node]), None)
        if taken is None:
            taken = self._of_another([slot for slot in left if slot.uid is not None and fits[slot.node]], levels)
        answer = taken
        # 3. Or its own turn on other nodes.
        if taken is None and own:
            taken, answer = own[0], elsewhere(own[0])
        if taken is not None and answer is not None:
            left.remove(taken)
            self.given[uid] = taken
        return answer

    def waits_nearby(self, uid: str, task_class: TaskClass) -> bool:
        """Say whether a pod has a slot, and it makes a difference to it where it starts."""
        slots = [self.given[uid]] if uid in self.given else self.by_class.get(task_class, [])
        return any(slot.uid in (None, uid) and slot.level >= 0 for slot in slots)

    def _of_another(self, slots: Collection[PlanSlot], levels: Callable[[], Counts | None]) -> PlanSlot | None:
        far = levels() if slots else None
        return next((slot for slot in slots if far is None or far[slot.node] <= slot.level), None)
