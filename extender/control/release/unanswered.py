"""Released pods of which kube-scheduler says nothing: it is down, or it never tries them.

It does not try a pod whose ResourceClaim or PodGroup is not there, and says so nowhere. Such pods would take up the
pace of all releases, and keep their room, for ever. So:

1. A pod is *passed by* 15 s after kube-scheduler bound or refused another of no higher priority that was released 15 s
   after it (615 s if it has volumes): kube-scheduler runs, and does not try this one. It is not on its way any more,
   and its shape counts as refused. Not at once: where kube-scheduler or `serve` was down, all that wait are tried
   within ten seconds, and not in the order of their release.
2. Where all that are on their way have waited for so long, nobody knows which of the two it is. Then one more pod, of
   another shape or at least of another class, is released to find out: one of the queue that had the last answer, if
   none of its pods are among them.
3. Where nothing else has room, nobody can find out. So now and then one that has waited for long gives its room up.

A try that ends in an error is no answer, as `serve` may be down. A pod that had one is passed by for others that were
bound only: kube-scheduler may refuse some without asking `serve`.
"""

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.pod_shapes import shape_of
from extender.control.release.sending import Release

_SECONDS = 15.0
"""So long after a pod another must have been released, and so long ago it must have been bound or refused."""
_VOLUME_SECONDS = 615.0
"""The same for pods with volumes: kube-scheduler waits for these for ten minutes, and says nothing meanwhile."""
_MOST_AT_ONCE = 2.0
"""While nothing is heard, at most so many times as many pods as usual are on their way..."""
_RARE_SECONDS = 300.0
"""... and then one more when nothing was heard of anybody for so long."""
_GIVE_UP_SECONDS = 60.0
_LONGEST_STEP_SECONDS = 60.0
"""Who looks after a longer time was asleep, or its clock was set: that time does not count."""


class Unanswered:
    """What is known of released pods for our schedulers. One thread; times in seconds since the epoch.

    `passed_by` are those that kube-scheduler does not try, or tries without coming to an end.
    """

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._since: dict[str, float] = {}
        self._released: dict[str, Pod] = {}
        # By priority, and whether they were bound: when the newest of those was released that had an answer.
        self._heard: dict[tuple[int, bool], float] = {}
        self._overtaken: dict[str, float] = {}
        self._looked_at = self._given_up_at = -math.inf
        self._asks, self._spares_shapes = False, True
        self._answered_queue = ""
        self.passed_by: Sequence[Pod] = ()

    def note(self, releases: Sequence[Release], now: float) -> None:
        """Take note of pods that are being released; of one that was refused before no answer need come.

        Where no pod of another shape could go to find out, the next question is for another class, and so by turns.
        """
        if self._asks and not releases:
            self._spares_shapes = not self._spares_shapes
        for release in releases:
            if release.pod.held:
                self._since.setdefault(release.pod.uid, now)

    def look(self, now: float) -> None:
        """Take note of who is there without a gate or an answer, and who was bound or refused since the last look."""
        backlog, step = self._backlog, now - self._looked_at
        if not 0 <= step <= _LONGEST_STEP_SECONDS and self._looked_at > -math.inf:
            self._since = {uid: since + step for uid, since in self._since.items()}
            self._heard = {answer: at + step for answer, at in self._heard.items()}
            self._overtaken = {uid: since + step for uid, since in self._overtaken.items()}
            self._given_up_at += step
        self._looked_at, self._asks = now, False
        pending = backlog.at(PodPhase.PENDING)
        self._released = {pod.uid: pod for pod in pending if not pod.unschedulable and backlog.is_ours(pod)}
        for uid in self._since.keys() - self._released.keys():
            answered = self._answered(uid)
            if answered is not None:
                answer = (answered.priority, answered.node is not None)
                self._heard[answer] = max(self._heard.get(answer, -math.inf), self._since[uid])
                self._answered_queue = answered.identity.queue
            if not backlog.writes.busy(uid):
                del self._since[uid]
        for uid in self._released:
            self._since.setdefault(uid, now)
        overtaken = [pod for pod in self._released.values() if self._is_overtaken(pod)]
        self._overtaken = {pod.uid: self._overtaken.get(pod.uid, now) for pod in overtaken}
        self.passed_by = [pod for pod in overtaken if now - self._overtaken[pod.uid] >= _SECONDS]

    def give_up(self, now: float) -> list[Pod]:
        """Return those whose room is for others from now on: who was passed by, and at times one that waited for long.

        That one is not of a gang, which could not start whole then. Who stays opportunistic would get no other node.
        """
        gone = list(self.passed_by)
        if now - self._given_up_at >= _GIVE_UP_SECONDS:
            waited = [pod for pod in self._silent(now, _GIVE_UP_SECONDS) if pod.awaited and not pod.identity.group]
            gone += sorted(waited, key=lambda pod: self._since[pod.uid])[:1]
            if waited:
                self._given_up_at = now
        return [pod for pod in gone if not pod.stays_opportunistic]

    def in_doubt(self, uids: AbstractSet[str], now: float, most: int) -> Sequence[TaskClass]:
        """Return the classes that may not send one more pod to find out whether kube-scheduler runs.

        None are returned where nobody may: something was heard of the pods on their way (`uids`), or they are too many
        for a pace of `most`. Else they are the classes of these pods, and all of the same shapes; or those of all
        queues but the one that had the last answer.
        """
        silent = self._silent(now, _SECONDS if len(uids) < _MOST_AT_ONCE * most else _RARE_SECONDS)
        self._asks = uids <= {pod.uid for pod in silent}
        if not self._asks:
            return ()
        if not self._spares_shapes:
            return self.classes_of(silent)
        classes, first = self._backlog.classes(), self._answered_queue
        waiting = {task_class.job.queue for task_class in classes if task_class.pods[PodPhase.READY]}
        if first in waiting - {pod.identity.queue for pod in silent}:
            return [task_class for task_class in classes if task_class.job.queue != first]
        shapes = {shape_of(pod) for pod in silent}
        return [task_class for task_class in classes if shape_of(task_class.template) in shapes]

    def classes_of(self, pods: Iterable[Pod]) -> Sequence[TaskClass]:
        """Return the classes of pods, each once."""
        positions = (self._backlog.find(pod.uid) for pod in pods)
        return [*dict.fromkeys(position[0] for position in positions if position is not None)]

    def late(self, uids: AbstractSet[str], now: float, seconds: float) -> list[str]:
        """Return those of these pods that were released so many seconds ago or more."""
        return [uid for uid in uids if now - self._since.get(uid, now) >= seconds]

    def again_at(self, uids: AbstractSet[str], now: float) -> float:
        """Return when one more may go though all these are on their way; infinite where that is not known."""
        at = max((self._since.get(uid, math.inf) for uid in uids), default=math.inf) + _SECONDS
        return at if at > now else math.inf

    def _is_overtaken(self, pod: Pod) -> bool:
        """Say whether another that was released long after a pod, and should not have gone first, had its answer."""
        since = self._since[pod.uid] + _seconds(pod)
        return any(
            priority <= pod.priority and since <= at and (bound or not pod.errored)
            for (priority, bound), at in self._heard.items()
        )

    def _silent(self, now: float, seconds: float) -> list[Pod]:
        """Return the released pods of which nothing was heard for so many seconds, or as long as volumes take."""
        return [pod for uid, pod in self._released.items() if now - self._since[uid] >= max(seconds, _seconds(pod))]

    def _answered(self, uid: str) -> Pod | None:
        """Return a pod that was bound or refused; of one that is gone nobody knows."""
        position, pod = self._backlog.find(uid), self._backlog.pod(uid)
        if position is None or pod is None:
            return None
        return pod if position[1] is PodPhase.RUNNING or pod.unschedulable else None


def _seconds(pod: Pod) -> float:
    return _VOLUME_SECONDS if pod.claims else _SECONDS
