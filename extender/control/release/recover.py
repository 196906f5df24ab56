"""What a predecessor, or a failed write, left undone: nominations to complete, and nominations to clear."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.backlog.gangs import partial_gangs
from extender.control.opportunistic.promises import Promises
from extender.verdict import judge

_MOST_FAILURES = 3
"""After so many releases that failed a nomination is given up, so that its room is free."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Gated pods to release to the node that they are nominated for; pods whose nomination by us no longer holds."""

    to_complete: Sequence[Pod]
    to_clear: Sequence[Pod]


def unfinished(
    backlog: Backlog, snapshot: Snapshot, flights: set[str], given_up: Iterable[Pod], promises: Promises
) -> Unfinished:
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
    fitting = [pod for pod in kept if _fits(backlog, snapshot, pod)]
    partial = partial_gangs(backlog, fitting)
    to_complete = [pod for pod in fitting if pod.identity.group not in partial]
    completed = {pod.uid for pod in to_complete}
    # 3. Clear the others.
    to_clear = [*hopeless, *(pod for pod in tried if pod.uid not in completed)]
    to_clear += _stale(backlog, snapshot, flights, promises)
    to_clear += [pod for pod in given_up if _nominated_by_us(pod) and not writes.busy(pod.uid)]
    return Unfinished(to_complete, to_clear)


def _stale(backlog: Backlog, snapshot: Snapshot, flights: set[str], promises: Promises) -> list[Pod]:
    """Return released pods with our nomination whose node has gone, filled up or been cordoned, or which are refused.

    Filled up is a node also where its idle room is.

    kube-scheduler does not clear the nomination of a refused pod that may not preempt: its room would be kept for ever.
    """
    pending = (
        pod
        for pod in backlog.at(PodPhase.PENDING)
        if not backlog.writes.busy(pod.uid) and (pod.unschedulable or pod.uid not in flights)
    )
    return [
        pod
        for pod in pending
        if _nominated_by_us(pod)
        and (pod.unschedulable or pod.uid in promises.broken or not _fits(backlog, snapshot, pod))
    ]


def _nominated_by_us(pod: Pod) -> bool:
    """Say whether the pod's nomination is by us."""
    return pod.promised is not None and pod.nominated == pod.promised


def _fits(backlog: Backlog, snapshot: Snapshot, pod: Pod) -> bool:
    node = pod.promised or ""
    row, known_node = snapshot.layout.rows.get(node), backlog.nodes.get(node)
    if row is None or known_node is None or not known_node.allows(pod.constraints):
        return False
    return bool(judge(snapshot, pod).passed[row])
