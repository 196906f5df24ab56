"""What a predecessor, or a failed write, left undone: nominations to complete, and nominations to clear."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.backlog.gangs import partial_gangs
from extender.verdict import judge

_MOST_FAILURES = 3
"""After so many releases that failed a nomination is given up, so that its room is free."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Held pods to release to the node that they are nominated for; pods whose nomination by us will not do."""

    to_complete: Sequence[Pod]
    to_clear: Sequence[Pod]


def unfinished(backlog: Backlog, snapshot: Snapshot, flights: set[str], given_up: Iterable[Pod] = ()) -> Unfinished:
    """Return what is to be done about our nominations, by what the watches say and nothing else.

    A held pod goes where its node still has room. Not so one that could not be released again and again, even while it
    rests, nor members of a gang that would start in part. Those of pods that are `given_up` are cleared.
    """
    nominated = [pod for pod in backlog.at(PodPhase.NOMINATED) if pod.uid not in backlog.writes.in_progress]
    hopeless = [pod for pod in nominated if backlog.writes.failures(pod.uid) >= _MOST_FAILURES]
    tried = [
        pod
        for pod in nominated
        if backlog.writes.failures(pod.uid) < _MOST_FAILURES and not backlog.writes.busy(pod.uid)
    ]
    able = [pod for pod in tried if pod.nominated == pod.promised and _fits(backlog, snapshot, pod)]
    partial = partial_gangs(backlog, able)
    complete = [pod for pod in able if pod.identity.group not in partial]
    done = {pod.uid for pod in complete}
    clear = [*hopeless, *(pod for pod in tried if pod.uid not in done), *_stale(backlog, snapshot, flights)]
    clear += [pod for pod in given_up if _is_ours(pod) and not backlog.writes.busy(pod.uid)]
    return Unfinished(complete, clear)


def _stale(backlog: Backlog, snapshot: Snapshot, flights: set[str]) -> list[Pod]:
    """Return released pods with our nomination whose node has gone, filled up or been cordoned.

    And those that kube-scheduler refused: it does not clear them for pods that may not preempt, and the room would be
    kept for ever.
    """
    pending = (
        pod for pod in backlog.at(PodPhase.PENDING) if not backlog.writes.busy(pod.uid) and pod.uid not in flights
    )
    return [pod for pod in pending if _is_ours(pod) and (pod.unschedulable or not _fits(backlog, snapshot, pod))]


def _is_ours(pod: Pod) -> bool:
    """Say whether the pod's nomination is by us."""
    return pod.promised is not None and pod.nominated == pod.promised


def _fits(backlog: Backlog, snapshot: Snapshot, pod: Pod) -> bool:
    node = pod.promised or ""
    row, there = snapshot.layout.rows.get(node), backlog.nodes.get(node)
    if row is None or there is None or not there.allows(pod.constraints):
        return False
    return bool(judge(snapshot, pod).passed[row])
