"""The places that one plan has for pods without a gate: handed out one by one, as kube-scheduler asks."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.arrays import Counts, Mask
from extender.cluster.ledger.snapshot import Layout
from extender.control.backlog.task_classes import TaskClass

Key = tuple[int, int, int]


class PlanSlot(NamedTuple):
    """A row of a node, and the UID of the pod that it is for, None where any of the class may have it.

    How many levels that is from the pod's input (-1: no difference), and for how many seconds its job was passed over.
    Row -1 is any of `nodes` [N] (None: of all): `farther` from the input, it may be, than the plan's node was.
    """

    node: int
    uid: str | None = None
    level: int = -1
    passed_over: float = 0.0
    nodes: Mask | None = None
    farther: bool = False

    def on(self, nodes: Mask | None, level: int) -> "PlanSlot":
        """Return the same turn on one of these nodes [N], None: of all, so far from the pod's input."""
        return PlanSlot(-1, self.uid, level, self.passed_over, nodes, farther=level > self.level)


@dataclass(slots=True)
class PlanSlots:
    """What is left of one plan: by class the places, and which pods got which.

    `without` are the names of the classes that it left out, `gangs` those that cannot start whole, `near` those that
    wait for room near their input; at `again_at`, in seconds since the epoch, such a wait ends.
    """

    key: Key
    layout: Layout
    made_at: float
    cost: float
    nodes: dict[TaskClass, list[PlanSlot]]
    gangs: Collection[TaskClass]
    without: Collection[str]
    near: Collection[TaskClass] = ()
    again_at: float = math.inf
    given: dict[str, PlanSlot] = field(default_factory=dict)

    def give(
        self,
        uid: str,
        of: TaskClass,
        fits: Mask,
        levels: Callable[[], Counts | None],
        elsewhere: Callable[[PlanSlot], PlanSlot | None] = lambda _: None,
    ) -> PlanSlot | None:
        """Return the place of one pod of a class, where it `fits` [N]; None where there is none.

        It may be that of another of its class, where it is as near to its own input by `levels` [N]: who comes first
        has it. Where it has a turn, but on nodes that are not among these, `elsewhere` says what becomes of that.
        """
        if uid in self.given:
            place = self.given[uid]
            return place if fits[place.node] else elsewhere(place)
        left = self.nodes.get(of, [])
        mine = [place for place in left if place.uid in (None, uid)]
        found = next((place for place in mine if fits[place.node]), None)
        found = found or self._of_a_mate([it for it in left if it.uid is not None and fits[it.node]], levels)
        taken, answer = (found, found) if found or not mine else (mine[0], elsewhere(mine[0]))
        if taken is not None and answer is not None:
            left.remove(taken)
            self.given[uid] = taken
        return answer

    def waits_nearby(self, uid: str, of: TaskClass) -> bool:
        """Say whether a pod has a place, and it makes a difference to it where."""
        places = [self.given[uid]] if uid in self.given else self.nodes.get(of, [])
        return any(it.uid in (None, uid) and it.level >= 0 for it in places)

    def _of_a_mate(self, places: Collection[PlanSlot], levels: Callable[[], Counts | None]) -> PlanSlot | None:
        far = levels() if places else None
        return next((it for it in places if far is None or far[it.node] <= it.level), None)
