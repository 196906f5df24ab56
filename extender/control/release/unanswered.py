"""Released pods of which kube-scheduler says nothing: it is down, or it never tries them.

It does not try a pod whose ResourceClaim or PodGroup is not there, and says so nowhere. Such pods would take up the
pace of all releases, and keep their room, for ever. So:

1. A pod is *passed by* once another was bound or refused that was released some time after it: kube-scheduler runs, and
   does not try this one. It is not on its way any more, and its shape counts as refused.
2. Where all that are on their way have waited for so long, nobody knows which of the two it is. Then one more pod, of
   another shape, is released to find out.
"""

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.release.sending import Release

_SECONDS = 15.0
"""So long after a pod another must have been released, and been bound or refused."""
_MOST_AT_ONCE = 2.0
"""While nothing is heard, at most so many times as many pods as usual are on their way."""


class Unanswered:
    """What is known of released pods for our schedulers. One thread; times in seconds since the epoch."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._since: dict[str, float] = {}
        self._released: set[str] = set()
        self._heard_of = -math.inf  # when the newest of those was released that were bound or refused

    def note(self, releases: Iterable[Release], now: float) -> None:
        """Take note of pods that are being released."""
        for release in releases:
            self._since.setdefault(release.pod.uid, now)

    def look(self, now: float) -> None:
        """Take note of who is there without a gate or an answer, and who was bound or refused since the last look."""
        backlog = self._backlog
        self._released = {
            pod.uid for pod in backlog.at(PodPhase.PENDING) if not pod.unschedulable and backlog.is_ours(pod)
        }
        for uid in self._since.keys() - self._released:
            if self._has_answer(uid):
                self._heard_of = max(self._heard_of, self._since[uid])
            if not backlog.writes.busy(uid):
                del self._since[uid]
        # The clock may have been set back.
        self._heard_of = min(self._heard_of, now)
        known = self._released | self._since.keys()
        self._since = {uid: min(self._since.get(uid, now), now) for uid in known}

    def passed_by(self) -> list[Pod]:
        """Return the released pods that kube-scheduler does not try."""
        return self._pods(self._heard_of)

    def silent(self, now: float, seconds: float) -> list[Pod]:
        """Return the released pods of which nothing was heard for so many seconds."""
        return self._pods(now, seconds)

    def to_doubt(self, uids: AbstractSet[str], now: float, most: int) -> Sequence[Pod]:
        """Return the pods on their way, if one more may go to find out whether kube-scheduler runs; else none.

        It may where all `uids` on their way are pods of which nothing was heard, and they are few enough for a pace of
        `most`.
        """
        silent = self._pods(now)
        if len(uids) >= _MOST_AT_ONCE * most or not uids <= {pod.uid for pod in silent}:
            return ()
        return silent

    def again_at(self, uids: AbstractSet[str], now: float) -> float:
        """Return when one more may go though all these are on their way; infinite where that is not known."""
        at = max((self._since.get(uid, math.inf) for uid in uids), default=math.inf) + _SECONDS
        return at if at > now else math.inf

    def _pods(self, moment: float, seconds: float = _SECONDS) -> list[Pod]:
        """Return the pods that were released so long before a moment."""
        pods = (self._backlog.pod(uid) for uid in self._released if self._since[uid] + seconds <= moment)
        return [pod for pod in pods if pod is not None]

    def _has_answer(self, uid: str) -> bool:
        """Say whether a pod was bound or refused; of one that is gone nobody knows."""
        position = self._backlog.find(uid)
        if position is None:
            return False
        pod = self._backlog.pod(uid)
        return position[1] is PodPhase.RUNNING or (pod is not None and pod.unschedulable)
