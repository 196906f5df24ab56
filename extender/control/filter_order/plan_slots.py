"""The slots that one plan has for pods without a gate: handed out one by one, as kube-scheduler asks."""

import math
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from extender.arrays import Counts, Mask
from extender.cluster.ledger.layout import Layout
from extender.cluster.resources import Amounts
from extender.control.backlog.task_classes import TaskClass

PlanVersion = tuple[int, int, int]
"""The versions of what a plan was made of: the ledger's, the backlog's, the nodes'."""

SPARE_PART = 0.5
"""This part of what is spare surely has room for what needs so much, in spite of what is left over on each node."""


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


class ClassSlots:
    """The slots of one class in the plan's order, and which of them are left."""

    def __init__(self, slots: Sequence[PlanSlot]) -> None:
        self._slots = slots
        self._nodes = np.array([slot.node for slot in slots], dtype=np.intp)
        self._open = np.array([slot.uid is None for slot in slots], dtype=np.bool_)
        self._left = np.ones(len(slots), dtype=np.bool_)
        self._named = {slot.uid: place for place, slot in enumerate(slots) if slot.uid is not None}

    def __getitem__(self, place: int) -> PlanSlot:
        """Return the slot at a place."""
        return self._slots[place]

    def first(self, uid: str, fits: Mask | None = None) -> int | None:
        """Return the place of a pod's own slot, else of the first for any pod; only where the pod `fits` [N]."""
        named = self._named.get(uid)
        if named is not None and self._left[named] and (fits is None or fits[self._nodes[named]]):
            return named
        places = self._left & self._open
        return _first(places if fits is None else places & fits[self._nodes])

    def of_another(self, fits: Mask, levels: Callable[[], Counts | None]) -> int | None:
        """Return the place of another pod's slot that `fits` [N], as near to this pod's input by its `levels` [N]."""
        places = (self._left & ~self._open & fits[self._nodes]).nonzero()[0].tolist()
        far = levels() if places else None
        return next((place for place in places if far is None or far[self[place].node] <= self[place].level), None)

    def take(self, place: int) -> PlanSlot:
        """Take a slot away, and return it."""
        self._left[place] = False
        return self._slots[place]


@dataclass(slots=True)
class PlanSlots:
    """What is left of one plan: the slots by class, and which pods were given which.

    The plan was made of what `key` names, for the `waiting` pods by UID, `without` the classes of these names.
    `leaves` are the classes of which it leaves pods waiting; `leaves_hopeful`: one of them would fit on an empty node.
    If it `is_cut` it has placed as many as it may, and says nothing of whether there is room for more.
    `waiting_gangs` are classes of gangs that cannot start whole, `waiting_near` classes that wait for room near their
    input. On `reserved` nodes [N] room is kept for some of them (None: on none). `spare` is what the plan leaves free
    on all nodes together; `arrived` is what `Backlog.arrived` was before it. At `again_at`, in seconds since the epoch,
    a wait ends. It was begun at `planned_at` (monotonic) and took `plan_seconds`. Callers hold the order's lock.
    """

    key: PlanVersion
    layout: Layout
    planned_at: float
    spare: Amounts
    arrived: Amounts
    plan_seconds: float = 0.0
    by_class: dict[TaskClass, list[PlanSlot]] = field(default_factory=dict)
    waiting: Set[str] = frozenset()
    without: Collection[str] = ()
    leaves: Collection[TaskClass] = ()
    leaves_hopeful: bool = False
    is_cut: bool = False
    waiting_gangs: Collection[TaskClass] = ()
    waiting_near: Collection[TaskClass] = ()
    reserved: Mask | None = None
    again_at: float = math.inf
    given: dict[str, PlanSlot] = field(default_factory=dict)
    _asked: dict[TaskClass, ClassSlots] = field(default_factory=dict)

    def is_over(self, arrived: Amounts) -> bool:
        """Say whether it left nobody waiting, but `arrived` has since grown by more than a part of what was spare."""
        return not self.leaves_hopeful and any(
            more > SPARE_PART * self.spare.get(name, math.inf)
            for name, amount in arrived.items()
            if (more := amount - self.arrived.get(name, 0.0)) > 0
        )

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
        slots = self._of(task_class)
        place = slots.first(uid, fits)
        if place is None:
            place = slots.of_another(fits, levels)
        answer = None if place is None else slots[place]
        # 3. Or its own turn on other nodes.
        if place is None:
            place = slots.first(uid)
            answer = None if place is None else elsewhere(slots[place])
        if place is not None and answer is not None:
            self.given[uid] = slots.take(place)
        return answer

    def note_passed(self, uid: str, task_class: TaskClass, node: str | None) -> None:
        """Take a slot away for a pod that passed while the plan was made: its own, on its node, or any."""
        if uid in self.given or uid not in self.waiting:
            return
        slots, row = self._of(task_class), self.layout.rows.get(node or "", -1)
        own_node = np.arange(len(self.layout.names)) == row
        place = slots.first(uid, own_node)
        place = slots.first(uid) if place is None else place
        if place is not None:
            self.given[uid] = slots.take(place)

    def waits_nearby(self, uid: str, task_class: TaskClass) -> bool:
        """Say whether a pod has a slot, and it makes a difference to it where it starts."""
        if uid in self.given:
            return self.given[uid].level >= 0
        slots = self._of(task_class)
        place = slots.first(uid)
        return place is not None and slots[place].level >= 0

    def _of(self, task_class: TaskClass) -> ClassSlots:
        slots = self._asked.get(task_class)
        if slots is None:
            slots = self._asked[task_class] = ClassSlots(self.by_class.get(task_class, []))
        return slots


def _first(places: Mask) -> int | None:
    place = int(places.argmax()) if len(places) else 0
    return place if len(places) and places[place] else None
