"""How many pods of a Job may be evicted: those that are opportunistic, and those that are being made so.

Several writers ask at the same time, and what one has written does not show yet: who was let in counts at once.
"""

import threading
import time
from collections.abc import Callable, Set

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog

_Owner = tuple[str, str]
"""A namespace and a UID: pods of other namespaces may say that its pods' owner is theirs, too."""

_COUNTED_SECONDS = 60.0
"""A Job's status counts a pod that has failed some time after the pod has left: it counts here until then."""


class Exposure:
    """Counts by owner. Any thread may call any method."""

    def __init__(self, backlog: Backlog, clock: Callable[[], float] = time.monotonic) -> None:
        self._backlog, self._clock = backlog, clock
        self._lock = threading.Lock()
        self._let_in: dict[str, _Owner] = {}
        self._seen: dict[str, tuple[_Owner, float]] = {}

    def evictions_left(self, pod: Pod, left: Callable[[int], int | None]) -> int | None:
        """Return what `left` says of the number of other pods that are exposed; the pod itself is let in where it may.

        None: any number of them may be evicted.
        """
        busy, owner = self._backlog.writes.busy, (pod.namespace, pod.owner)
        with self._lock:
            self._let_in = {uid: owned_by for uid, owned_by in self._let_in.items() if busy(uid)}
            being_written = {uid for uid, owned_by in self._let_in.items() if owned_by == owner}
            others = self._with_those_gone(owner, self._backlog.opportunistic_of(*owner) | being_written)
            now = left(len(others - {pod.uid}))
            if now is not None and now > 0:
                self._let_in[pod.uid] = owner
            return now

    def leave(self, pod: Pod) -> None:
        """Note that a pod was not made opportunistic."""
        with self._lock:
            self._let_in.pop(pod.uid, None)
            self._seen.pop(pod.uid, None)

    def _with_those_gone(self, owner: _Owner, exposed: Set[str]) -> set[str]:
        """Return these pods of an owner, by UID, and those that were among them a moment ago, and are gone or ended."""
        now = self._clock()
        self._seen = {uid: seen for uid, seen in self._seen.items() if now - seen[1] <= _COUNTED_SECONDS}
        self._seen |= dict.fromkeys(exposed, (owner, now))
        gone = (uid for uid, (owned_by, _) in self._seen.items() if owned_by == owner and not self._backlog.pod(uid))
        return {*exposed, *gone}
