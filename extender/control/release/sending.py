"""Writing what was decided: nominate, then release; clear nominations. What fails leaves the pod to a later step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog
from extender.errors import ClusterError

NOMINATED, COMPLETED, PREEMPTING, SCALE_UP = "nominated", "completed", "preempting", "scale-up"

_CLEAR_SECONDS = 15.0
"""A pod whose nomination is being cleared is left alone for so long, or until there is news of it."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Release:
    """One pod's release: to the node that the plan chose, or to none, so that kube-scheduler finds its own way.

    `level` is how near to its input that node is, empty where it makes no difference; `passed_over` for how many
    seconds its job was passed over for that, None where that is not known any more.
    """

    pod: Pod
    node: str | None
    how: str
    score: float = 0.0
    level: str = ""
    passed_over: float | None = 0.0


class Writer(Protocol):
    """What writes to pods. Each call raises ClusterError, and changes nothing then, where the pod is another by now."""

    def nominate(self, pod: Pod, node: str) -> None:
        """Set the nominated node, and note that it is ours."""

    def release(self, pod: Pod) -> None:
        """Remove our gate, which must be the only one."""

    def clear(self, pod: Pod) -> None:
        """Remove our nomination."""


class Listener(Protocol):
    """Who is told of what was done (events, metrics)."""

    def note_release(self, turn: Release, node: str | None, waited_seconds: float) -> None:
        """Note a release, to a node or to none."""


@dataclass(slots=True)
class Sender:
    """`run_soon` runs a write, now or later; `leads` says whether we may still write."""

    ledger: Ledger
    backlog: Backlog
    writer: Writer
    listener: Listener
    run_soon: Callable[[Callable[[], None]], object]
    leads: Callable[[], bool]
    flight_time: Callable[[], float]

    def send(self, turn: Release, now: float) -> None:
        """Send a pod on its way: its node counts at once, the writes follow."""
        node = turn.pod.nominated or turn.node  # kube-scheduler goes where it is nominated, by whomever
        claim = self.backlog.writes.claim_on(turn.pod.uid)
        self.ledger.promise(turn.pod, node, self.flight_time(), preempts=turn.how == PREEMPTING)
        if turn.node is not None and turn.pod.nominated is None:
            self._soon(turn.pod, lambda: self._nominate(turn, now, claim))
        else:
            self._soon(turn.pod, lambda: self._release(turn, now, claim))

    def _nominate(self, turn: Release, now: float, claim: float | None) -> None:
        """Nominate, then release, once all others of this step are nominated too.

        Two writes to one pod in a row meet a copy of it in the API server that is older than the first, and are made
        twice there.
        """
        pod, node = turn.pod, turn.node or ""
        if self._written(turn, now, claim, lambda: self.writer.nominate(pod, node)):
            self._soon(pod, lambda: self._release(turn, now, claim))

    def _written(self, turn: Release, now: float, claim: float | None, write: Callable[[], None]) -> bool:
        """Write, if we still lead; where that fails the pod is left alone for a moment.

        Not if its claim is over: the write has waited for so long that the pod is somebody else's turn, or gone.
        """
        pod = turn.pod
        if self._is_over(pod, claim):
            return False
        try:
            self._require_lead()
            write()
        except Exception as error:  # whatever it is: the pod must not stay claimed without a word
            self.backlog.back_off(pod.uid, now)
            if not pod.identity.group:  # the others of its group have gone: its room is kept while it rests
                self.ledger.forget(pod.uid)
            log.warning("release failed", pod=f"{pod.namespace}/{pod.name}", error=str(error) or repr(error))
            return False
        return True

    def _release(self, turn: Release, now: float, claim: float | None) -> None:
        pod = turn.pod
        if not self._written(turn, now, claim, lambda: self.writer.release(pod)):
            return
        waited = max(now - pod.created, 0.0)
        node = turn.node or pod.promised
        self.listener.note_release(turn, node, waited)
        log.info(
            "released",
            pod=f"{pod.namespace}/{pod.name}",
            uid=pod.uid,
            queue=pod.identity.queue,
            job=pod.identity.job,
            node=node,
            how=turn.how,
            score=round(turn.score, 4),
            waited_seconds=round(waited, 3),
            **_near(turn),
        )

    def clear(self, pod: Pod, now: float) -> None:
        """Take our nomination off a pod."""
        until = now + _CLEAR_SECONDS
        self.backlog.writes.claim(pod.uid, until)
        self._soon(pod, lambda: self._write_clear(pod, now, until))

    def _write_clear(self, pod: Pod, now: float, claim: float) -> None:
        if self._is_over(pod, claim):
            return
        try:
            self._require_lead()
            self.writer.clear(pod)
            log.info("nomination cleared", pod=f"{pod.namespace}/{pod.name}", node=pod.promised)
        except Exception as error:  # as above
            self.backlog.back_off(pod.uid, now)
            log.warning("nomination not cleared", pod=f"{pod.namespace}/{pod.name}", error=str(error) or repr(error))

    def _soon(self, pod: Pod, write: Callable[[], None]) -> None:
        """Have a write to a pod run, now or later."""
        writes = self.backlog.writes
        writes.queue(pod.uid)

        def run() -> None:
            writes.begin(pod.uid)
            write()

        self.run_soon(run)

    def _is_over(self, pod: Pod, claim: float | None) -> bool:
        """Say whether a pod is no longer claimed for a write, or was claimed anew for another."""
        over = claim is None or self.backlog.writes.claim_on(pod.uid) != claim
        if over:
            log.info("write dropped", pod=f"{pod.namespace}/{pod.name}", reason="its turn is over")
        return over

    def _require_lead(self) -> None:
        if not self.leads():
            raise ClusterError("the Lease is no longer ours")


def _near(turn: Release) -> dict[str, str | float]:
    """Return what is logged of how near to its input a pod is sent."""
    if not turn.level:
        return {}
    passed = {} if turn.passed_over is None else {"passed_over_seconds": round(turn.passed_over, 3)}
    return {"level": turn.level, **passed}
