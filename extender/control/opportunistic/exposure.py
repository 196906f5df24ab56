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
        self._let_in: dict[str, set[str]] = {}

    def evictions_left(self, pod: Pod, left: Callable[[int], int | None]) -> int | None:
        """Return what `left` says of the number of other pods that are exposed; the pod itself is let in where it may.

        None: any number of them may be evicted.
        """
        with self._lock:
            being_written = {uid for uid in self._let_in.get(pod.owner, ()) if self._backlog.writes.busy(uid)}
            others = (self._backlog.opportunistic_of(pod.owner) | being_written) - {pod.uid}
            now = left(len(others))
            if now is not None and now > 0:
                being_written.add(pod.uid)
            self._let_in[pod.owner] = being_written
            if not being_written:
                del self._let_in[pod.owner]
            return now

    def leave(self, pod: Pod) -> None:
        """Note that a pod was not made opportunistic."""
        with self._lock:
            self._let_in.get(pod.owner, set()).discard(pod.uid)
