"""Events on pods and nodes, written in the background: neither a verb nor a loop waits for the API server."""

import hashlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from extender.adapters.kube.api import Refused
from extender.cluster.model import Pod
from extender.errors import ClusterError

_WAITING = 1_000
_REMEMBERED = 10_000
_WARNINGS_PER_SECOND = 1.0
_MOST_WARNINGS_AT_ONCE = 10.0
_TRIES = 12
_LONGEST_PAUSE_SECONDS = 10.0
"""An event that does not reach the API server is written again after 1, 2, 4 ... s: in all it waits for a minute and a
half, as Kubernetes' own components let theirs wait for two."""

log = structlog.get_logger()


class Poster(Protocol):
    """What creates objects (an Api)."""

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object."""


@dataclass(frozen=True, slots=True)
class About:
    """The object that an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str


class EventRecorder:
    """Writes each event once: its name follows from what it is about, so a second replica finds it there.

    Warnings are about what users wrote, so their number has no bound; their rate has, in each namespace by itself, so
    that no tenant silences another. `warned` is told the kind of object of each.
    """

    def __init__(
        self,
        api: Poster,
        *,
        warned: Callable[[str], None] = lambda _kind: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._warned = warned
        self._clock = clock
        self._allowances: dict[str, tuple[float, float]] = {}  # how many warnings are allowed, and when that was so
        self._queue: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue(_WAITING)
        self._said: dict[str, None] = {}
        self._saying = threading.Lock()
        self._stopped = threading.Event()

    def warn(self, kind: str, namespace: str, name: str, uid: str, message: str, owner: str = "") -> None:
        """Say that an annotation is broken, once for each `owner` (a UID), else for each object and message.

        Returns at once. Where the rate is used up, or too many events wait, a later call writes it.
        """
        if not self._may_warn(namespace):
            return
        about = About(kind, namespace or "default", name, uid)
        if self._put(about, "Warning", "BrokenAnnotation", message, owner or f"{uid}{message}"):
            self._count_warning(namespace)
            self._warned(kind)
            log.warning("broken annotation", kind=kind, namespace=namespace, name=name, problem=message)

    def say(self, pod: Pod, reason: str, message: str, key: str) -> None:
        """Say what became of a pod: one event for each reason and key, whatever the message. Returns at once."""
        about = About("Pod", pod.namespace, pod.name, pod.uid)
        self._put(about, "Normal", reason, message, f"{pod.uid}/{reason}/{key}")

    def warn_of_lease(self, namespace: str, name: str, reason: str, message: str, key: str) -> None:
        """Warn of the whole installation, by its Lease: one event for each reason and key. Returns at once."""
        self._put(About("Lease", namespace, name, ""), "Warning", reason, message, f"{name}/{reason}/{key}")

    def _may_warn(self, namespace: str) -> bool:
        """Say whether the rate allows another warning about this namespace."""
        with self._saying:
            return self._allowed(namespace, self._clock()) >= 1

    def _count_warning(self, namespace: str) -> None:
        """Count a warning; of too many namespaces the one that was warned of longest ago has its whole allowance."""
        with self._saying:
            now = self._clock()
            left = self._allowed(namespace, now) - 1
            self._allowances.pop(namespace, None)
            self._allowances[namespace] = left, now
            if len(self._allowances) > _REMEMBERED:
                del self._allowances[next(iter(self._allowances))]

    def _allowed(self, namespace: str, now: float) -> float:
        left, since = self._allowances.get(namespace, (_MOST_WARNINGS_AT_ONCE, now))
        return min(_MOST_WARNINGS_AT_ONCE, left + _WARNINGS_PER_SECOND * max(now - since, 0.0))

    def _put(self, about: About, sort: str, reason: str, message: str, key: str) -> bool:
        """Have an event written; False where it was already, or too much waits."""
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        event = event_of(about, sort, reason, message, digest)
        with self._saying:
            if digest in self._said:
                return False
            try:
                self._queue.put_nowait((about.namespace, event))
            except queue.Full:
                return False
            self._said[digest] = None
            if len(self._said) > _REMEMBERED:
                del self._said[next(iter(self._said))]
        return True

    def run(self) -> None:
        """Write what was said until `stop`. A namespace that refuses events is logged once, until it takes one."""
        refusing: deque[str] = deque(maxlen=_WAITING)
        while (item := self._queue.get()) is not None:
            namespace, event = item
            try:
                self._post(namespace, event)
            except Refused as refusal:
                if refusal.status != 409 and namespace not in refusing:
                    refusing.append(namespace)
                    log.warning("event refused", namespace=namespace, error=str(refusal))
            except ClusterError as error:
                log.warning("event lost", error=str(error))
            except Exception:  # whatever it is: a loop that ended here would lose all later events
                log.exception("event lost")
            else:
                if namespace in refusing:
                    refusing.remove(namespace)

    def _post(self, namespace: str, event: Mapping[str, Any]) -> None:
        """Write an event, more than once where the API server is out of reach. Raises ClusterError at last."""
        for tries in range(_TRIES):
            try:
                self._api.post(f"/api/v1/namespaces/{namespace}/events", event)
            except Refused:
                raise
            except ClusterError:
                if tries == _TRIES - 1 or self._stopped.wait(min(2.0**tries, _LONGEST_PAUSE_SECONDS)):
                    raise
            else:
                return

    def stop(self) -> None:
        """End `run` after what was said so far, each tried once."""
        self._stopped.set()
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return


def event_of(about: About, sort: str, reason: str, message: str, digest: str = "") -> dict[str, Any]:
    """Return an event; its name ends in the digest, without one in what the API server makes up."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    version = "coordination.k8s.io/v1" if about.kind == "Lease" else "v1"
    involved = {"apiVersion": version, "kind": about.kind, "name": about.name, "uid": about.uid}
    if about.kind != "Node":
        involved["namespace"] = about.namespace
    name = f"{about.name[:220].rstrip('-.')}.{digest}"
    named = {"name" if digest else "generateName": name}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {**named, "namespace": about.namespace},
        "involvedObject": involved,
        "type": sort,
        "reason": reason,
        "message": message[:1_000],
        "source": {"component": "dovetail"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
