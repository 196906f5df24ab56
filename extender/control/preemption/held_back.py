"""Who was chosen to go and is asked later, as the rates allow: the samples that chose one of them chose them all."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.idle_room.measured_use import MeasuredUse
from extender.control.preemption.choice import Choice


@dataclass(frozen=True, slots=True)
class _Rest:
    choice: Choice
    at: float


class HeldBack:
    """The victims that the rates held back, by node.

    Once the first has gone, the samples before its end count for nothing any more. Without this the others would stay
    for a whole window. It ends where something newer is known of the node (a new choice, or a sample whose window began
    after the last was asked), and where nothing is.
    """

    def __init__(self) -> None:
        self._rests: dict[str, _Rest] = {}

    def note(self, choice: Choice, asked: int, now: float) -> None:
        """Note that only so many of the victims were asked to go."""
        self._rests.pop(choice.node, None)
        if rest := choice.victims[asked:]:
            self._rests[choice.node] = _Rest(replace(choice, victims=rest), now)

    def due(
        self, snapshot: Snapshot, measured: MeasuredUse, found: Sequence[Choice], out: Collection[str]
    ) -> list[Choice]:
        """Return who is still to go, beside those `found` now; not those that are `out` of the question (by UID).

        `measured` is on the rows of the snapshot.
        """
        for choice in found:
            self._rests.pop(choice.node, None)
        due = []
        for node, rest in list(self._rests.items()):
            row = snapshot.layout.rows.get(node)
            victims = [] if row is None or not measured.since[row] < rest.at else _there(snapshot, row, rest, out)
            if victims:
                due.append(replace(rest.choice, victims=victims))
            else:
                del self._rests[node]
        return due


def _there(snapshot: Snapshot, row: int, rest: _Rest, out: Collection[str]) -> list[Pod]:
    """Return those that still are opportunistic there, and are not on their way out."""
    pods, chosen = snapshot.opportunistic, {victim.uid for victim in rest.choice.victims}
    there = (pods.pods[place] for place in np.flatnonzero(pods.node == row).tolist())
    return [pod for pod in there if pod.uid in chosen and pod.uid not in out and not pod.leaving]
