"""Whom to evict of an overloaded node: as few opportunistic pods as bring it back, the least work lost first."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.usage import Usage
from extender.control.idle_room.room import measured_of
from extender.policy.shares import dominant_shares, parts
from extender.policy.slack import smallest_set


@dataclass(frozen=True, slots=True)
class PreemptionChoice:
    """A node, what it has too little of by resource, and who is to go.

    It is overloaded, or a regular pod such as `room_for` fits there without them, or they are `starved` there. `over`
    begins with what is shortest, as a part of what the node offers.
    """

    node: str
    over: Mapping[str, float]
    victims: Sequence[Pod]
    room_for: Pod | None = None
    starved: bool = False


def choices(
    snapshot: Snapshot, over: Floats, usage: Usage, now: float, *, going: Collection[str], spared: Collection[str]
) -> list[PreemptionChoice]:
    """Return whom to evict of the nodes that are over their limits [N, R] by so much, the most overloaded first.

    Those that are `going` already (by UID) count as gone, those `spared` may not be asked now. Where all others
    together do not suffice, all that use what is short go: regular pods come first.
    """
    pods, layout = snapshot.opportunistic, snapshot.layout
    chosen_of: dict[int, PreemptionChoice] = {}
    for row in np.flatnonzero(over.any(axis=1)).tolist():
        if layout.names[row] in usage.problems:  # nobody goes by what was measured wrongly
            continue
        places = np.flatnonzero(pods.node == row)
        use = measured_of([pods.pods[place] for place in places.tolist()], usage, layout)
        gone = np.array(
            [pods.pods[place].leaving or pods.uids[place] in going for place in places.tolist()], dtype=bool
        )
        left = np.maximum(over[row] - use[gone].sum(axis=0), 0.0)
        may_go = ~gone & np.array([pods.uids[place] not in spared for place in places.tolist()], dtype=bool)
        chosen = smallest_set(left, use, work_lost(snapshot, places, now), may_go)
        if chosen is None:
            chosen = np.flatnonzero(may_go & (use[:, left > 0] > 0).any(axis=1))
        if len(chosen):
            victims = [pods.pods[place] for place in places[chosen].tolist()]
            chosen_of[row] = PreemptionChoice(layout.names[row], shortages(layout, row, left), victims)
    return [chosen_of[row] for row in sorted(chosen_of, key=lambda row: -parts(over[row], layout.capacity[row]).max())]


def shortages(layout: Layout, row: int, short: Floats) -> dict[str, float]:
    """Return by how much a node is `short` [R] of what, the worst first, as a part of what it offers."""
    order = np.lexsort((np.arange(len(short)), -parts(short, layout.capacity[row])))
    return {layout.axis[column]: short.item(column) for column in order.tolist() if short[column] > 0}


def work_lost(snapshot: Snapshot, there: Rows, now: float) -> Floats:
    """Return the work that each of these pods would lose [P]: its dominant share times the seconds that it ran."""
    pods = snapshot.opportunistic
    seconds = np.where(np.isfinite(pods.started[there]), np.maximum(now - pods.started[there], 0.0), 0.0)
    return np.asarray(seconds * dominant_shares(pods.demand[there], snapshot.layout.total))
