"""Which events pods get: `Held` once for each kind of reason, and `Released` after that.

Events compete with releases for the API server. So a pod gets one only after it has waited for some time, and as long
for the same reason, and all of them come at a bounded rate.
Only this process remembers which events it wrote. After a restart it writes a Held event again under the same name,
which the API server refuses because it exists; a pod released before that gets no Released.
"""

import threading
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog
from extender.control.plan_input.preferred_nodes import words_of
from extender.explain.wait_reasons import Reason

HELD, RELEASED = "Held", "Released"
EVENTS_PER_SECOND = 5.0
_BURST = 25.0
_MOST_KEPT = 100_000


class Events(Protocol):
    """What writes events, in the background (an EventRecorder)."""

    def say(self, pod: Pod, reason: str, message: str, key: str) -> None:
        """Write a Normal event; of one pod, reason and key only one."""

    def warn(self, kind: str, namespace: str, name: str, uid: str, message: str, owner: str = "") -> None:
        """Write a Warning event, once for each owner, else for each object and message."""


class Teller:
    """Writes the events; a pod must have waited for `after_seconds`. Any thread may note releases, one calls `tell`."""

    def __init__(self, events: Events, after_seconds: float, *, per_second: float = EVENTS_PER_SECOND) -> None:
        self._events, self._after, self._per_second = events, after_seconds, per_second
        self._told: dict[str, set[str]] = {}
        self._since: dict[str, tuple[str, float]] = {}
        self._released: deque[tuple[Pod, str]] = deque(maxlen=10_000)
        self._lock = threading.Lock()
        self._may, self._at = min(_BURST, 5 * per_second), -1.0

    def note_release(
        self, pod: Pod, node: str | None, waited_seconds: float, level: str = "", *, idle: bool = False
    ) -> None:
        """Take note of a release; it gets an event if the pod got one that it is held.

        `level` is how near to its input the node is, empty where it makes no difference. With `idle` the pod goes on
        what others reserved there and do not use.
        """
        with self._lock:
            if self._told.pop(pod.uid, None):
                where = f"to {node}" if node else "without a node, for kube-scheduler to find one"
                where += f" ({words_of(level)})" if level else ""
                where += ", on its idle resources" if idle else ""
                self._released.append((pod, f"released {where}, after {waited_seconds:.0f} s"))

    def tell(self, backlog: Backlog, why: Mapping[str, Reason], now: float) -> None:
        """Write the events that are due at `now` (seconds since the epoch), those of the longest waits first."""
        # 1. Earn events at the bounded rate.
        self._may = min(_BURST, self._may + self._per_second * max(now - self._at, 0.0)) if self._at >= 0 else self._may
        looked_at, self._at = self._at if self._at >= 0 else now, now
        # 2. Releases first: nothing else will tell of them.
        while self._may >= 1 and self._released:
            gone, message = self._released.popleft()
            self._say(gone, RELEASED, message, "")
        # 3. Then pods that have waited long enough for one kind of reason of which they got no event yet.
        waiting = [pod for uid in why if (pod := backlog.pod(uid)) is not None]
        held = [pod for pod in waiting if pod.held]
        self._warn(waiting)
        self._note_reasons(held, why, looked_at, now)
        due = [
            pod for pod in held if now - self._since[pod.uid][1] >= self._after and not self._knows(pod, why[pod.uid])
        ]
        for pod in sorted(due, key=lambda pod: (pod.created, pod.namespace, pod.name))[: int(self._may)]:
            reason = why[pod.uid]
            with self._lock:
                self._told.setdefault(pod.uid, set()).add(reason.kind)
            self._say(pod, HELD, reason.text, reason.kind)
        self._forget(backlog)

    def _say(self, pod: Pod, reason: str, message: str, key: str) -> None:
        self._may -= 1
        self._events.say(pod, reason, message, key)

    def _note_reasons(self, held: list[Pod], why: Mapping[str, Reason], looked_at: float, now: float) -> None:
        """Note since when each pod waits for its kind of reason; a new pod since its creation or the last look."""
        before, self._since = self._since, {}
        for pod in held:
            kind = why[pod.uid].kind
            kind_and_since = before.get(pod.uid, (kind, max(pod.created, looked_at)))
            self._since[pod.uid] = kind_and_since if kind_and_since[0] == kind else (kind, now)

    def _warn(self, waiting: list[Pod]) -> None:
        """Warn of broken annotations, and of queues that pods name in vain, once for each owner.

        Its pods come from one template.
        """
        for pod in {pod.owner or pod.uid: pod for pod in reversed(waiting) if pod.warning is not None}.values():
            self._events.warn("Pod", pod.namespace, pod.name, pod.uid, pod.warning or "", pod.owner)

    def _knows(self, pod: Pod, reason: Reason) -> bool:
        return reason.kind in self._told.get(pod.uid, ())

    def _forget(self, backlog: Backlog) -> None:
        """Drop pods that are gone, once there are many."""
        if len(self._told) > _MOST_KEPT:
            with self._lock:
                self._told = {uid: kinds for uid, kinds in self._told.items() if backlog.pod(uid) is not None}
