"""How many pods of a Job may be evicted: those that are opportunistic, and those that are being made so.

Several writers ask at the same time, and what one has written does not show yet: who was let in counts at once.
"""

import threading
from collections.abc import Callable

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog


class Exposure:
    """Counts by owner. Any thread may call any method."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._lock = threading.Lock()
        self._let_in: dict[str, str] = {}

    def evictions_left(self, pod: Pod, left: Callable[[int], int | None]) -> int | None:
        """Return what `left` says of the number of other pods that are exposed; the pod itself is let in where it may.

        None: any number of them may be evicted.
        """
        busy = self._backlog.writes.busy
        with self._lock:
            self._let_in = {uid: owner for uid, owner in self._let_in.items() if busy(uid)}
            being_written = {uid for uid, owner in self._let_in.items() if owner == pod.owner}
            others = (self._backlog.opportunistic_of(pod.owner) | being_written) - {pod.uid}
            now = left(len(others))
            if now is not None and now > 0:
                self._let_in[pod.uid] = pod.owner
            return now

    def leave(self, pod: Pod) -> None:
        """Note that a pod was not made opportunistic."""
        with self._lock:
            self._let_in.pop(pod.uid, None)
