"""What a predecessor, or a failed write, left undone: nominations to complete, and nominations to clear."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import ONLY
from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.backlog.gangs import partial_gangs
from extender.control.cluster_view import ClusterView
from extender.control.opportunistic.promises import Promises
from extender.control.release.node_room import has_room
from extender.control.release.sending import COMPLETED, Release, Sender
from extender.control.release.unanswered import Unanswered

_MOST_FAILURES = 3
"""After so many releases that failed a nomination is given up, so that its room is free."""

_SILENT_SECONDS = 60.0
"""After so long a released pod of another scheduler loses its room, if that has neither bound nor refused it."""


class PromisesIdleRoom(Protocol):
    """What knows what became of idle room that was promised."""

    def promises(self, pods: Sequence[Pod], snapshot: Snapshot, now: float) -> Promises:
        """Return what became of the room that was promised to these opportunistic pods."""


class LeftBehind:
    """What the release loop tidies up at each step. Without `idle` nobody uses idle room any more."""

    def __init__(
        self, cluster: ClusterView, sender: Sender, unanswered: Unanswered, idle: PromisesIdleRoom | None
    ) -> None:
        self._cluster, self._backlog, self._sender = cluster, cluster.backlog, sender
        self._unanswered, self._idle = unanswered, idle
        self._silent_since: dict[str, float] = {}

    def tidy_up(self, snapshot: Snapshot, flights: set[str], now: float) -> list[Release]:
        """Clear nominations that no longer hold; return releases that a predecessor, or a failed write, left undone."""
        promises = self._promises(snapshot, flights, now)
        nominations = _unfinished(self._backlog, snapshot, flights, self._given_up(now), promises)
        for pod in nominations.to_clear:
            self._sender.clear(pod, now)
        for pod in self._stranded(flights):
            self._sender.restore(pod, now)
        for pod in nominations.to_complete:
            self._backlog.claim(pod.uid, now + self._cluster.assume_seconds)
        return [
            Release(pod, None, COMPLETED, level=self._level_of(pod, snapshot), passed_over=None)
            for pod in nominations.to_complete
        ]

    def _promises(self, snapshot: Snapshot, flights: set[str], now: float) -> Promises:
        """Return what became of the idle room that was promised; where none is used any more all promises are broken.

        A pod without a gate that never is regular keeps its promise: it would get no other.
        """
        promised = [
            pod
            for pod in self._cluster.ledger.nominated()
            if pod.opportunistic and pod.promised == pod.nominated and pod.uid not in flights
        ]
        held = [pod for pod in promised if pod.held]
        if self._idle is None:
            return Promises(broken=frozenset(pod.uid for pod in held))
        return self._idle.promises(
            held + [pod for pod in promised if not (pod.held or pod.choice == ONLY)], snapshot, now
        )

    def _stranded(self, flights: set[str]) -> list[Pod]:
        """Return released opportunistic pods that no node is promised to any more: they become regular again.

        Not one that never is regular, or of which nobody knows what it requested.
        """
        return [
            pod
            for pod in self._backlog.at(PodPhase.PENDING)
            if pod.opportunistic
            and not pod.stays_opportunistic
            and pod.promised is None
            and pod.uid not in flights
            and not self._backlog.writes.busy(pod.uid)
        ]

    def _given_up(self, now: float) -> list[Pod]:
        """Return the nominated pods that are being deleted, passed by, or whose scheduler has been silent for long."""
        nominated = self._cluster.ledger.nominated()
        given_up = {pod.uid for pod in self._unanswered.give_up(now)}
        foreign = [pod for pod in nominated if not (pod.gates or pod.leaving or self._backlog.is_ours(pod))]
        self._silent_since = {pod.uid: min(self._silent_since.get(pod.uid, now), now) for pod in foreign}
        silent = [pod for pod in foreign if now - self._silent_since[pod.uid] >= _SILENT_SECONDS]
        return [pod for pod in nominated if pod.leaving or pod.uid in given_up] + silent

    def _level_of(self, pod: Pod, snapshot: Snapshot) -> str:
        """Return the locality level of the node that a pod is nominated for; empty where it makes no difference."""
        row = snapshot.layout.rows.get(pod.promised or "")
        return "" if row is None else self._cluster.input_builder.preferred_nodes.level_on(pod, snapshot.layout, row)


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """Gated pods to release to the node that they are nominated for; pods whose nomination by us no longer holds."""

    to_complete: Sequence[Pod]
    to_clear: Sequence[Pod]


def _unfinished(
    backlog: Backlog, snapshot: Snapshot, flights: set[str], given_up: Iterable[Pod], promises: Promises
) -> _Unfinished:
    """Return what is to be done about our nominations, by what the watches show and nothing else.

    A gated pod is released where its node still has room. Its nomination is cleared instead where its release has
    failed again and again, where its gang would start in part, and where idle room that was promised to it is there no
    more; while nobody knows (`promises`), it waits. Those of pods that are `given_up` are cleared.
    """
    # 1. Gated pods with our nomination: those whose release fails again and again, and those to try.
    writes = backlog.writes
    nominated = [pod for pod in backlog.at(PodPhase.NOMINATED) if pod.uid not in writes.in_progress]
    hopeless = [pod for pod in nominated if writes.failures(pod.uid) >= _MOST_FAILURES and writes.may_clear(pod.uid)]
    able = [pod for pod in nominated if pod.uid not in promises.unknown and not writes.busy(pod.uid)]
    tried = [pod for pod in able if writes.failures(pod.uid) < _MOST_FAILURES]
    # 2. Complete those whose node still has room, and whose gang starts whole.
    kept = [pod for pod in tried if pod.nominated == pod.promised and pod.uid not in promises.broken]
    fitting = [pod for pod in kept if has_room(backlog, snapshot, pod, pod.promised)]
    partial = partial_gangs(backlog, fitting)
    to_complete = [pod for pod in fitting if pod.identity.group not in partial]
    completed = {pod.uid for pod in to_complete}
    # 3. Clear the others, each once, for however many reasons.
    to_clear = [*hopeless, *(pod for pod in tried if pod.uid not in completed)]
    to_clear += _stale(backlog, snapshot, flights, promises)
    to_clear += [pod for pod in given_up if _nominated_by_us(pod) and not writes.busy(pod.uid)]
    return _Unfinished(to_complete, [*{pod.uid: pod for pod in to_clear}.values()])


def _stale(backlog: Backlog, snapshot: Snapshot, flights: set[str], promises: Promises) -> list[Pod]:
    """Return released pods with our nomination whose node has gone, filled up or been cordoned, or which are refused.

    Filled up is a node also where its idle room is.

    kube-scheduler does not clear the nomination of a refused pod that may not preempt: its room would be kept for ever.
    Where a node is promised too much only as many lose their nomination as leave room for the others: those of gangs
    last, of the others those that were released last first.
    """
    pending = [
        pod
        for pod in backlog.at(PodPhase.PENDING)
        if not backlog.writes.busy(pod.uid) and (pod.unschedulable or pod.uid not in flights) and _nominated_by_us(pod)
    ]
    pending.reverse()
    stale: list[Pod] = []
    given_back: dict[str | None, Floats] = {}
    stays = {pod.uid for pod in pending if not pod.unschedulable and pod.uid not in promises.broken}
    for pod in sorted(pending, key=lambda pod: (-pod.priority, pod.uid in stays, bool(pod.identity.group))):
        more = given_back.get(pod.promised, np.zeros(len(snapshot.layout.axis)))
        if pod.uid not in stays or not has_room(backlog, snapshot, pod, pod.promised, more):
            stale.append(pod)
            given_back[pod.promised] = more + snapshot.layout.vector(pod.counted)
    return stale


def _nominated_by_us(pod: Pod) -> bool:
    """Say whether the pod's nomination is by us; so is one that went with a try that ended in an error."""
    node = pod.awaited if pod.errored and not pod.opportunistic else pod.nominated
    return pod.promised is not None and node == pod.promised
