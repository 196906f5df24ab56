"""Who waits for room, by what a plan leaves: somebody who could start if room came free."""

from collections.abc import Callable

from extender.cluster.ledger.snapshot import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import ONLY
from extender.control.holding.decision import Holding
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.release.planned import Planned


class RoomWanted:
    """Tells `holding` after each plan whether somebody waits for room. One thread.

    Not those who fit on no node even when that is empty, nor those who want only what others do not use. A plan has no
    rows for gangs of which pods are missing, nor for classes that kube-scheduler refuses for reasons of its own.
    """

    def __init__(
        self, allowed_nodes: AllowedNodes, holding: Holding, changed: Callable[[], None] = lambda: None
    ) -> None:
        """Take what is called when `holding` has changed."""
        self._allowed_nodes, self._holding, self._changed = allowed_nodes, holding, changed
        self._layout: Layout | None = None
        self._hopeless: dict[tuple[object, ...], bool] = {}

    def note(self, planned: Planned | None, now: float) -> None:
        """Take note of a plan that came to its end; None: there was room for all that it looked at."""
        before = self._holding.held
        self._holding.note(somebody_waits=planned is not None and self._left_waiting(planned), now=now)
        if self._holding.held != before:
            self._changed()

    def _left_waiting(self, planned: Planned) -> bool:
        layout, classes = planned.snapshot.layout, planned.plan_input.classes
        if self._layout is not layout:
            self._layout, self._hopeless = layout, {}
        left = (classes[row].template for row in planned.left().nonzero()[0].tolist())
        return any(not self._is_hopeless(pod, layout) for pod in left if pod.choice != ONLY)

    def _is_hopeless(self, pod: Pod, layout: Layout) -> bool:
        """Say whether a pod fits on no node that it may use, even when that is empty."""
        key = (tuple(sorted(pod.demand.items())), pod.constraints)
        if key not in self._hopeless:
            self._hopeless[key] = not self._allowed_nodes.usable(pod, layout).any()
        return self._hopeless[key]
