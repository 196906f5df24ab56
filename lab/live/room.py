"""The machine room: follows pods through the API and ends each when its work is done, as a kubelet would.

KWOK brings a bound pod to Running. From then on it works at the speed that its machine allows, which the machinery
knows; when its work is done, its status is set to Succeeded.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Protocol, Self

from kubernetes.client import ApiClient

from extender.adapters.kube.api import Api
from extender.adapters.kube.watching import Watch, pods
from extender.cluster.events import Event
from lab.controlplane import rest
from lab.errors import ControlPlaneError

_SYNC_SECONDS = 30
_ENDING_THREADS = 4
_LONGEST_WAIT_SECONDS = 0.5


class Machinery(Protocol):
    """The simulated machines, as one thread drives them; times are of the monotonic clock."""

    @property
    def next_at(self) -> float:
        """When something happens by itself, if nothing else does; infinite if never."""

    def take(self, event: Event, now: float) -> None:
        """Take in what the API server shows."""

    def done(self, now: float) -> Sequence[str]:
        """Return the names of the pods whose work is done by now, each once."""


class MachineRoom:
    """A context manager: while it is entered, pods that run come to an end."""

    def __init__(self, client: ApiClient, machinery: Machinery) -> None:
        self._client = client
        self._machinery = machinery
        self._events: SimpleQueue[tuple[Event, float]] = SimpleQueue()
        self._watch = Watch(Api(client), pods(), lambda event: self._events.put((event, time.monotonic())))
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._ending = ThreadPoolExecutor(_ENDING_THREADS, "ending")
        self._threads = [
            threading.Thread(target=self._watch.run, name="watch", daemon=True),
            threading.Thread(target=self._run, name="machines", daemon=True),
        ]

    def __enter__(self) -> Self:
        """Start to follow pods."""
        for thread in self._threads:
            thread.start()
        if not self._watch.synced.wait(_SYNC_SECONDS):
            self._stop()
            raise ControlPlaneError(f"the API server has not listed pods after {_SYNC_SECONDS} s")
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Stop following; pods that still run stay as they are."""
        self._stop()

    def check(self) -> None:
        """Raise what went wrong in the background."""
        if self._failure is not None:
            raise ControlPlaneError(f"the simulated machines failed: {self._failure!r}") from self._failure

    def _stop(self) -> None:
        self._stopped.set()
        self._watch.stop()
        self._ending.shutdown(cancel_futures=True)
        for thread in self._threads:
            thread.join(_LONGEST_WAIT_SECONDS * 4)

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._take_events()
                for name in self._machinery.done(time.monotonic()):
                    self._ending.submit(_succeed, self._client, name).add_done_callback(self._note_failure)
        except Exception as error:  # the edge of the loop: shown to whoever asks how far it is
            if not self._stopped.is_set():
                self._failure = error

    def _take_events(self) -> None:
        """Wait for the next event or the next end, whichever comes first; then take every event there is."""
        wait = min(max(self._machinery.next_at - time.monotonic(), 0.0), _LONGEST_WAIT_SECONDS)
        try:
            self._machinery.take(*self._events.get(timeout=wait))
            while True:
                self._machinery.take(*self._events.get_nowait())
        except Empty:
            return

    def _note_failure(self, done: Future[None]) -> None:
        if not done.cancelled() and done.exception() is not None:
            self._failure = done.exception()


def _succeed(client: ApiClient, name: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    over = [{"type": kind, "status": "False", "reason": "PodCompleted"} for kind in ("Ready", "ContainersReady")]
    state = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
    container = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    status = {"phase": "Succeeded", "conditions": over, "containerStatuses": [container]}
    path = f"/api/v1/namespaces/default/pods/{name}/status"
    rest.request(client, "PATCH", path, {"status": status}, content=rest.STRATEGIC)
