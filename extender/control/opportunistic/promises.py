"""Whether idle room that was promised is still there: a promise is looked at again before its pod goes.

An opportunistic pod goes to the node that it was promised, and nowhere else (`extender/verdict.py`). So a promise that
is taken back keeps it from a node whose use has risen since.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Floats, fits
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.reading import given
from extender.cluster.resources import DIMENSIONS

IdleRoom = Callable[[Snapshot], Floats | None]
"""The idle room of each node [N, R] by the newest samples; None where nothing is measured."""

BLIND_SECONDS = 30.0
"""While nothing is measured a promise is neither kept nor broken; after so long it is broken."""


@dataclass(frozen=True, slots=True)
class Promises:
    """What became of promises of idle room, by the UID of the pod: `broken`, or `unknown` as nothing is measured."""

    broken: Set[str] = frozenset()
    unknown: Set[str] = frozenset()


class PromiseCheck:
    """Looks at promises by what was measured last. One thread, that of the release loop."""

    def __init__(self, room: IdleRoom) -> None:
        """Take what says the idle `room` [N, R] of a snapshot."""
        self._room = room
        self._blind_since: float | None = None

    def look(self, pods: Sequence[Pod], snapshot: Snapshot, now: float) -> Promises:
        """Return what became of the promises to these opportunistic pods."""
        if not pods:
            self._blind_since = None
            return Promises()
        broken = broken_promises(pods, snapshot, self._room)
        if broken is not None:
            self._blind_since = None
            return Promises(broken)
        self._blind_since = now if self._blind_since is None else self._blind_since
        uids = frozenset(pod.uid for pod in pods)
        return Promises(broken=uids) if now - self._blind_since >= BLIND_SECONDS else Promises(unknown=uids)


def broken_promises(pods: Sequence[Pod], snapshot: Snapshot, room: IdleRoom) -> Set[str] | None:
    """Return the UIDs of those nominated `pods` that the idle room of their nodes does not hold; None: nobody knows.

    Of several on one node those go first whose UID is smaller, so that no more promises are broken than have to be.
    """
    layout, nominations = snapshot.layout, snapshot.nominations
    # 1. The room as if none of it were promised to them.
    uids = {pod.uid for pod in pods}
    is_other = np.array([uid not in uids for uid in nominations.uids], dtype=np.bool_)
    free = room(replace(snapshot, nominations=replace(nominations, given=nominations.given * is_other[:, np.newaxis])))
    if free is None:
        return None
    # 2. Give it to one after the other.
    broken, shared = set[str](), len(DIMENSIONS)
    free = free[:, :shared].copy()
    for pod in sorted(pods, key=lambda pod: pod.uid):
        node = pod.promised or ""
        row = layout.rows.get(node)
        need = None if row is None else layout.vector(given(pod, node, layout.rows).get(node, {}))[:shared]
        if row is None or need is None or not fits(free[row], need):
            broken.add(pod.uid)
        else:
            free[row] -= need
    return broken
