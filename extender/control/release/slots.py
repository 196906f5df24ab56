"""How many more pods may be on their way: released, and neither bound nor refused."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from extender.control.backlog.backlog import PodPhase, TaskClass
from extender.control.cluster_view import ClusterView
from extender.control.release.unanswered import Unanswered

SLOTS_PART = 4
"""A queue with less than a quarter of the slots gets so many of its own where others take up all."""

_CROWDED_SECONDS = 1.0
"""Where some queues take up all slots, others get some of their own so often: that takes a plan to its end."""

_LATE_SECONDS = 2.0
"""kube-scheduler mostly binds or refuses a pod in less time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How many pods may be released and not bound yet; after how long a wait nodes are asked for (0: never)."""

    unbound_pods: int = 64
    scale_up_after: float = 0.0


class Slots:
    """How many slots are free, and for whom these are where the pods on their way take up all.

    Where one more pod may go to find out whether kube-scheduler runs, `in_doubt` are the classes that may not send it.
    Where queues without a slot get some of their own, `crowding` are the queues that have taken up all.
    """

    def __init__(self, cluster: ClusterView, unanswered: Unanswered) -> None:
        self.in_doubt: Sequence[TaskClass] = ()
        self.crowding: Collection[str] = ()
        self._cluster, self._backlog, self._unanswered = cluster, cluster.backlog, unanswered
        self._crowded_at = -math.inf

    def free(self, on_their_way: AbstractSet[str], most: int, now: float) -> int:
        """Return how many more may go where `most` are on their way as a rule; 0 or less: none."""
        free, few = most - len(on_their_way), max(most // SLOTS_PART, 1)
        self.in_doubt = self._unanswered.in_doubt(on_their_way, now, most) if free <= 0 else ()
        self.crowding = () if free > 0 or self.in_doubt else self._crowding_queues(on_their_way, most, few, now)
        if self.in_doubt:
            return 1
        return few if self.crowding else free

    def on_their_way(self, flights: set[str]) -> set[str]:
        """Return the pods that were released, or are being so, and are neither bound nor refused nor passed by.

        They count however long ago that was: kube-scheduler may be down. Pods for other schedulers do not count, as we
        do not know whether these run.
        """
        backlog, writes = self._backlog, self._backlog.writes
        pending = backlog.at(PodPhase.PENDING)
        released = {pod.uid for pod in pending if backlog.is_ours(pod)}
        being_written = writes.in_progress.keys() | writes.queued.keys()
        over = self._cluster.passed_by | writes.backoff.keys()
        on_their_way = (flights | being_written | released) - self._cluster.awaiting_evictions - over
        return {uid for uid in on_their_way if not self._was_refused(uid)}

    def _crowding_queues(self, on_their_way: AbstractSet[str], most: int, few: int, now: float) -> Collection[str]:
        """Return the queues that leave no slot to others that wait and have few pods on their way; now and then.

        Pods that kube-scheduler never tries, or that are deleted and made again, would else stop all queues. Where few
        have waited for an answer for two seconds it is not so. Fewer than twice as many as usual are on their way: with
        more, nobody would find out for minutes whether kube-scheduler runs.
        """
        if len(on_their_way) + few >= 2 * most or 0 <= now - self._crowded_at < _CROWDED_SECONDS:
            return ()
        if len(self._unanswered.late(on_their_way, now, _LATE_SECONDS)) < few:
            return ()
        pods = (self._backlog.pod(uid) for uid in on_their_way)
        counts = Counter(pod.identity.queue for pod in pods if pod is not None)
        many = {queue for queue, count in counts.items() if count >= few}
        waiting = {task_class.job.queue for task_class in self._backlog.classes() if task_class.pods[PodPhase.READY]}
        if not waiting - many:
            return ()
        self._crowded_at = now
        return many

    def _was_refused(self, uid: str) -> bool:
        """Say whether a pod has lost its gate and was refused: it has had its part in the pace."""
        pod = self._backlog.pod(uid)
        return pod is not None and pod.unschedulable and not pod.held
