"""Who waits for room, by what a plan leaves: somebody who could start if room came free."""

from collections.abc import Callable
from functools import cache

from extender.cluster.pods.opportunistic import ONLY
from extender.control.holding.decision import Holding
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.plan_input.empty_nodes import EmptyNodes
from extender.control.release.planned import Planned
from extender.planner import Places, most_if_empty


class RoomWanted:
    """Tells `holding` after each plan whether somebody waits for room. One thread.

    These do not count:

    - pods that would fit on no node with nothing but the pods of DaemonSets and static pods on it;
    - gangs for which the empty cluster is too small;
    - pods that are never regular.

    Gangs of which pods are missing, and classes that kube-scheduler refuses, have no rows in a plan.
    """

    def __init__(
        self, allowed_nodes: AllowedNodes, holding: Holding, changed: Callable[[], None] = lambda: None
    ) -> None:
        """Take what is called when `holding` has changed."""
        self._empty_nodes, self._holding, self._changed = EmptyNodes(allowed_nodes), holding, changed

    def note(self, planned: Planned | None, now: float) -> None:
        """Take note of a plan that came to its end; None: there was nothing to plan, or room for all."""
        before = self._holding.held
        self._holding.note(somebody_waits=planned is not None and self._left_waiting(planned), now=now)
        if self._holding.held != before:
            self._changed()

    def note_cut(self, now: float) -> None:
        """Take note of a plan that ended with the last slot: nobody knows whom it would have left."""
        self._holding.keep(now)

    def _left_waiting(self, planned: Planned) -> bool:
        snapshot, classes = planned.snapshot, planned.plan_input.classes
        left = planned.left().nonzero()[0].tolist()
        wanting = (row for row in left if classes[row].template.choice != ONLY)
        places: Places = {}
        could_start = cache(lambda gang: _could_start(planned, gang, places))
        return any(
            self._empty_nodes.places(classes[row].template, snapshot) > 0 and could_start(planned.gang_of(row))
            for row in wanting
        )


def _could_start(planned: Planned, gang: int, places: Places) -> bool:
    """Say whether a gang could start if the pods of each shape had the empty cluster alone; -1 stands for no gang."""
    waiting = planned.plan_input.waiting
    if gang < 0 or waiting.gang is None or waiting.gang_least is None:
        return True
    most = most_if_empty(waiting, (waiting.gang == gang).nonzero()[0], planned.snapshot.empty, places)
    return most >= waiting.gang_least.item(gang)
