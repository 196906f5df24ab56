"""The places that one plan has for pods without a gate: handed out one by one, as kube-scheduler asks."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.cluster.snapshot import Layout
from extender.control.classes import TaskClass

Key = tuple[int, int, int]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

_FAR = 2**31


class Place(NamedTuple):
    """A row of a node, -1 for any, and the UID of the pod that it is for, None where any of the class may have it.

    How many levels that is from the pod's input (-1: no difference), and for how many seconds its job was passed over.
    """

    node: int
    uid: str | None = None
    level: int = -1
    passed_over: float = 0.0

    @property
    def anywhere(self) -> "Place":
        """Return the same turn, on whichever node kube-scheduler finds."""
        return Place(-1, self.uid, _FAR if self.level >= 0 else -1, self.passed_over)


@dataclass(slots=True)
class PlanPlaces:
    """What is left of one plan: by class the places, and which pods got which.

    `without` are the names of the classes that it left out, `gangs` those that cannot start whole, `near` those that
    wait for room near their input; at `again_at`, in seconds since the epoch, such a wait ends.
    """

    key: Key
    layout: Layout
    made_at: float
    cost: float
    nodes: dict[TaskClass, list[Place]]
    gangs: Collection[TaskClass]
    without: Collection[str]
    near: Collection[TaskClass] = ()
    again_at: float = math.inf
    given: dict[str, Place] = field(default_factory=dict)

    def give(
        self, uid: str, of: TaskClass, fits: Mask, levels: Callable[[], Counts | None], *, anywhere: bool
    ) -> Place | None:
        """Return the place of one pod of a class, where it `fits` [N]; None where there is none.

        It may be that of another of its class, where it is as near to its own input by `levels` [N]: who comes first
        has it. With `anywhere` it is on no node where it has a turn, but on nodes that are not among these.
        """
        if uid in self.given:
            place = self.given[uid]
            return place if place.node < 0 or fits[place.node] else (place.anywhere if anywhere else None)
        left = self.nodes.get(of, [])
        mine = [place for place in left if place.uid in (None, uid)]
        found = next((place for place in mine if fits[place.node]), None)
        found = found or self._of_a_mate([it for it in left if it.uid is not None and fits[it.node]], levels)
        if found is not None:
            left.remove(found)
            self.given[uid] = found
        elif mine and anywhere:
            left.remove(mine[0])
            self.given[uid] = mine[0].anywhere
        return self.given.get(uid)

    def _of_a_mate(self, places: Collection[Place], levels: Callable[[], Counts | None]) -> Place | None:
        far = levels() if places else None
        return next((it for it in places if far is None or far[it.node] <= it.level), None)
