"""Warning events on pods and nodes, written in the background: a verb never waits for the API server."""

import hashlib
import queue
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from extender.adapters.kube import Refused
from extender.errors import ClusterError

_WAITING = 1_000
_REMEMBERED = 10_000

log = structlog.get_logger()


class Poster(Protocol):
    """What creates objects (an Api)."""

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object."""


class Recorder:
    """Writes each warning once: the event's name follows from what it says, so a second replica finds it there."""

    def __init__(self, api: Poster) -> None:
        self._api = api
        self._queue: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue(_WAITING)
        self._said: dict[str, None] = {}
        self._saying = threading.Lock()

    def warn(self, kind: str, namespace: str, name: str, uid: str, message: str) -> None:
        """Say that an annotation is broken; returns at once. Where too much waits already, a later call says it."""
        digest = hashlib.sha256(f"{uid}{message}".encode()).hexdigest()[:16]
        event = _event(kind, namespace or "default", name, uid, message, digest)
        with self._saying:
            if digest in self._said:
                return
            try:
                self._queue.put_nowait((namespace or "default", event))
            except queue.Full:
                return
            self._said[digest] = None
            if len(self._said) > _REMEMBERED:
                del self._said[next(iter(self._said))]
        log.warning("broken annotation", kind=kind, namespace=namespace, name=name, problem=message)

    def run(self) -> None:
        """Write what was said until `stop`."""
        while (item := self._queue.get()) is not None:
            namespace, event = item
            try:
                self._api.post(f"/api/v1/namespaces/{namespace}/events", event)
            except Refused as refusal:
                if refusal.status != 409:
                    log.warning("event refused", error=str(refusal))
            except ClusterError as error:
                log.warning("event lost", error=str(error))
            except Exception:  # whatever it is: a loop that ended here would lose all later events
                log.exception("event lost")

    def stop(self) -> None:
        """End `run` after what was said so far."""
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return


def _event(kind: str, namespace: str, name: str, uid: str, message: str, digest: str) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}
    if kind != "Node":
        about["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name[:220].rstrip('-.')}.{digest}", "namespace": namespace},
        "involvedObject": about,
        "type": "Warning",
        "reason": "BrokenAnnotation",
        "message": message[:1_000],
        "source": {"component": "dovetail"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
