"""Writes what was decided: nominate, then release; clear nominations. What fails is left to a later step."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from extender.cluster.model import Pod
from extender.cluster.pods.reading import taken
from extender.cluster.resources import MEMORY_INDEX
from extender.control.cluster_view import ClusterView
from extender.control.opportunistic.resizing import is_lasting
from extender.control.release.node_room import has_room
from extender.control.release.write_order import WriteOrder
from extender.errors import ClusterError

NOMINATED, COMPLETED, PREEMPTING, SCALE_UP = "nominated", "completed", "preempting", "scale-up"
OPPORTUNISTIC, ROOM_FOR_ALL = "opportunistic", "room-for-all"

_CLEAR_SECONDS = 15.0
"""A pod whose nomination is being cleared is left alone for so long, or until the watch shows a change of it."""

_TAKEN_SECONDS = 1.0
"""A pod whose room others took before its gate was gone is left alone for so long: by then its nomination shows."""

_OUTDATED = (404, 409)
"""What the API server says of a pod that is gone or has changed: nobody has to do anything about that."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Release:
    """One pod's release: to the node that the plan chose, or to none, where kube-scheduler chooses.

    `level` is the locality level of that node, empty where it makes no difference. `passed_over` is for how many
    seconds the pod's job was passed over to start there, None where that is no longer known.
    """

    pod: Pod
    node: str | None
    how: str
    score: float = 0.0
    level: str = ""
    passed_over: float | None = 0.0

    @property
    def destination(self) -> str | None:
        """The node to which the pod goes: kube-scheduler goes where it is nominated, by whomever."""
        return self.pod.nominated or self.node


class Writer(Protocol):
    """What writes to pods. Each call raises ClusterError, and changes nothing then, where the pod is another by now."""

    def nominate(self, pod: Pod, node: str) -> None:
        """Set the nominated node, and note that it is ours."""

    def release(self, pod: Pod) -> None:
        """Remove our gate, which must be the only one."""

    def clear(self, pod: Pod) -> None:
        """Remove our nomination."""


class ReleaseListener(Protocol):
    """Who is told of what was done (events, metrics)."""

    def note_release(self, release: Release, node: str | None, waited_seconds: float) -> None:
        """Note a release, to a node or to none."""


class DemotionResizes(Protocol):
    """What changes a pod's requests; each call returns its resource version then. Raises ClusterError."""

    def demote(self, pod: Pod, memory_bytes: int) -> int:
        """Make a waiting pod opportunistic; `memory_bytes` is the limit for one that has none."""

    def restore(self, pod: Pod) -> int:
        """Bring a pod's requests back."""


class Sender:
    """Sends pods on their way. `send` and `clear` are for the loop's thread; the writes run in any.

    A write is made only while we lead, and while the pod is still claimed for it.
    """

    def __init__(
        self, cluster: ClusterView, writer: Writer, listener: ReleaseListener, resizes: DemotionResizes
    ) -> None:
        self._cluster, self._writer, self._listener, self._resizes = cluster, writer, listener, resizes
        self._backlog, self._writes = cluster.backlog, cluster.backlog.writes
        self._order = WriteOrder()

    def send(self, releases: Sequence[Release], now: float) -> None:
        """Send pods on their way: their nodes count at once, the writes follow.

        No write begins before all are known: of a gang nobody goes before all that the plan nominates are nominated.
        """
        for begin in [self._first_write(release, now) for release in releases]:
            self._cluster.run_soon(begin)

    def _first_write(self, release: Release, now: float) -> Callable[[], None]:
        """Count a pod on its node; return what makes its first write."""
        claim = self._writes.claim_on(release.pod.uid)
        pod, node = self._as_sent(release), release.destination
        self._cluster.ledger.promise(pod, node, self._cluster.flight_time(), preempts=release.how == PREEMPTING)
        if release.pod.opportunistic is not pod.opportunistic:
            return self._queued(release.pod, lambda: self._resize(release, now, claim))
        if release.node is not None and release.pod.nominated is None:
            return self._nomination(release, now, claim)
        return self._queued(release.pod, lambda: self._release(release, now, claim))

    def _as_sent(self, release: Release) -> Pod:
        """Return the pod as it is to run: opportunistic or regular. A completed release leaves it as it is.

        So stays an opportunistic one that cannot become regular: nobody knows what it requested, or it never did.
        """
        pod = release.pod
        if release.how == COMPLETED or pod.stays_opportunistic:
            return pod
        return replace(release.pod, opportunistic=release.how == OPPORTUNISTIC)

    def _resize(self, release: Release, now: float, claim: float | None) -> None:
        """Change what a pod requests before it goes: to nothing, or back to what it was when it was held."""
        pod, version = release.pod, 0

        def write() -> None:
            nonlocal version
            if release.how == OPPORTUNISTIC:
                version = self._resizes.demote(pod, self._memory_of(release.node))
            else:
                version = self._resizes.restore(pod)

        if self._written(release, now, claim, write, demotes=release.how == OPPORTUNISTIC):
            if release.how == OPPORTUNISTIC:
                self._backlog.note_turn(pod.uid, now)
            changed = replace(release, pod=replace(pod, resource_version=version))
            if release.node is not None and pod.nominated is None:
                self._cluster.run_soon(self._nomination(changed, now, claim))
            else:
                self._soon(pod, lambda: self._release(changed, now, claim))

    def _memory_of(self, node: str | None) -> int:
        """Return the memory that a node offers."""
        layout = self._cluster.snapshot().layout
        row = layout.rows.get(node or "")
        return int(layout.capacity[row, MEMORY_INDEX]) if row is not None else 0

    def restore(self, pod: Pod, now: float) -> None:
        """Bring the requests of a pod back that is not on its way: it is regular from then on."""
        self._claim_and_write(pod, now, self._resizes.restore, "requests brought back")

    def _nominate(self, release: Release, now: float, claim: float | None) -> None:
        """Nominate, then queue the release; one that was released before has no gate to lose."""
        pod, node = release.pod, release.node or ""
        if not self._written(release, now, claim, lambda: self._writer.nominate(pod, node)):
            return
        if pod.held:
            self._release_soon(release, now, claim)
        else:
            log.info("nominated anew", pod=pod.full_name, uid=pod.uid, node=node)

    def _written(
        self, release: Release, now: float, claim: float | None, write: Callable[[], None], *, demotes: bool = False
    ) -> bool:
        """Write, if it is not too late; say whether that went well. A pod whose write fails is left alone for a moment.

        But not one that may not be made opportunistic, where that is what the write does: it waits as before.
        """
        pod, begun = release.pod, time.monotonic()
        if self._drops_late(pod, claim):
            return False
        try:
            write()
        except Exception as error:  # whatever it is: the pod must not stay claimed without a word
            if demotes and is_lasting(error):
                self._backlog.put_back(pod.uid)
                self._cluster.ledger.forget(pod.uid)
                log.info("not made opportunistic", pod=pod.full_name, reason=str(error) or repr(error))
                return False
            self._note_failure(pod, now, begun)
            if not pod.identity.group:  # of a gang the others have gone: its room is kept for it
                self._cluster.ledger.forget(pod.uid)
            _log_failure("release failed", pod, error)
            return False
        return True

    def _release(self, release: Release, now: float, claim: float | None) -> None:
        pod = release.pod
        if self._drops_late(pod, claim):
            return
        if self._has_lost_its_room(release):
            self._keep_gate(release, now)
            return
        if not self._written(release, now, claim, lambda: self._writer.release(pod)):
            return
        waited = max(now - pod.created, 0.0)
        node = release.destination
        self._listener.note_release(release, node, waited)
        log.info(
            "released",
            pod=pod.full_name,
            uid=pod.uid,
            queue=pod.identity.queue,
            job=pod.identity.job,
            node=node,
            how=release.how,
            score=round(release.score, 4),
            waited_seconds=round(waited, 3),
            **_locality_of(release),
        )

    def _has_lost_its_room(self, release: Release) -> bool:
        """Say whether others took the room of a release since the plan: then kube-scheduler would refuse the pod.

        A pod of a gang goes where the others have gone, and one that others have nominated goes, as nobody would clear
        that.
        """
        pod, node = self._as_sent(release), release.destination
        if node is None or pod.identity.group or pod.nominated not in (None, pod.promised):
            return False
        snapshot = self._cluster.snapshot()
        own = taken(pod, node, snapshot.layout.rows)[node] if self._cluster.ledger.flies(pod.uid) else {}
        return not has_room(self._backlog, snapshot, pod, node, snapshot.layout.vector(own))

    def _keep_gate(self, release: Release, now: float) -> None:
        """Leave a pod held that has lost its room; a later step clears its nomination."""
        pod = release.pod
        self._backlog.claim(pod.uid, now + _TAKEN_SECONDS)
        self._cluster.ledger.forget(pod.uid)
        log.info("not released", pod=pod.full_name, node=release.destination, reason="its room has gone")

    def clear(self, pod: Pod, now: float) -> None:
        """Take our nomination off a pod."""
        self._claim_and_write(pod, now, self._writer.clear, "nomination cleared")

    def _claim_and_write(self, pod: Pod, now: float, write: Callable[[Pod], object], message: str) -> None:
        """Have a pod written to that is not on its way; `message` says in the log what was done."""
        until = now + _CLEAR_SECONDS
        self._writes.claim(pod.uid, until)
        self._soon(pod, lambda: self._write(pod, now, until, write, message))

    def _write(self, pod: Pod, now: float, claim: float, write: Callable[[Pod], object], message: str) -> None:
        if self._drops_late(pod, claim):
            return
        begun = time.monotonic()
        try:
            write(pod)
            log.info(message, pod=pod.full_name, node=pod.promised)
        except Exception as error:  # as above
            self._note_failure(pod, now, begun)
            self._writes.note_failed_clear(pod.uid)
            _log_failure(f"failed: {message}", pod, error)

    def _note_failure(self, pod: Pod, now: float, begun: float) -> None:
        """Leave a pod alone for a while from the failure on: a slow API server answers seconds after `now`."""
        self._backlog.back_off(pod.uid, now + round(time.monotonic() - begun, 1))

    def _nomination(self, release: Release, now: float, claim: float | None) -> Callable[[], None]:
        """Put a nomination in the order of writes; return what makes the next of these."""
        self._order.add_nomination(self._queued(release.pod, lambda: self._nominate(release, now, claim)))
        return self._order.next

    def _release_soon(self, release: Release, now: float, claim: float | None) -> None:
        """Have a nominated pod released; of a gang nobody is before all that the plan nominates are nominated."""
        write = self._queued(release.pod, lambda: self._release(release, now, claim))
        self._order.add_release(write, whole=bool(release.pod.identity.group))
        self._cluster.run_soon(self._order.next)

    def _soon(self, pod: Pod, write: Callable[[], None]) -> None:
        """Have a write to a pod run, now or later."""
        self._cluster.run_soon(self._queued(pod, write))

    def _queued(self, pod: Pod, write: Callable[[], None]) -> Callable[[], None]:
        """Note that a write to a pod waits to begin; return what makes it."""
        self._writes.queue(pod.uid)

        def run() -> None:
            self._writes.begin(pod.uid)
            write()

        return run

    def _drops_late(self, pod: Pod, claim: float | None) -> bool:
        """Drop a write that comes too late: its pod is not claimed for it any more, or we do not lead; say so.

        Where we do not lead that is no failure of the pod: if we lead again, it goes at once.
        """
        if claim is None or self._writes.claim_on(pod.uid) != claim:
            log.info("write dropped", pod=pod.full_name, reason="its turn is over")
            return True
        if self._cluster.leads():
            return False
        self._backlog.put_back(pod.uid)
        if not pod.identity.group:  # as where a write fails
            self._cluster.ledger.forget(pod.uid)
        log.info("write dropped", pod=pod.full_name, reason="the Lease is no longer ours")
        return True


def _log_failure(message: str, pod: Pod, error: Exception) -> None:
    """Log a write that failed, as a warning unless the pod is gone or another by now."""
    is_outdated = isinstance(error, ClusterError) and error.status in _OUTDATED
    (log.info if is_outdated else log.warning)(message, pod=pod.full_name, error=str(error) or repr(error))


def _locality_of(release: Release) -> dict[str, str | float]:
    """Return what is logged of the locality of a release."""
    if not release.level:
        return {}
    passed = {} if release.passed_over is None else {"passed_over_seconds": round(release.passed_over, 3)}
    return {"level": release.level, **passed}
