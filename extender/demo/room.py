"""The machine room: follows pods through the API and ends each when its work is done, as a kubelet would.

KWOK brings a bound pod to Running. From then on the pod works at the speed that its machine allows (`machines`); when
its work is done, its status is set to Succeeded.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

import msgspec
import numpy as np
from kubernetes.client import ApiClient

from extender.adapters.kube import Api
from extender.adapters.objects import PodObject
from extender.adapters.watching import Resource, Watch
from extender.cluster.model import Event, Pod, PodGone, PodSeen, PodsListed
from extender.cluster.snapshot import Floats, Rows
from extender.controlplane import rest
from extender.demo.machines import Machines
from extender.demo.workload import Workload
from extender.errors import ControlPlaneError

_SYNC_SECONDS = 30
_ENDING_THREADS = 4
_LONGEST_WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class Times:
    """When each pod started and ended, in seconds since the first one started, and on which node [P each]."""

    started: Floats
    ended: Floats
    node: Rows


class MachineRoom:
    """A context manager: while it is entered, pods that run come to an end."""

    def __init__(self, client: ApiClient, workload: Workload) -> None:
        self._client = client
        self._workload = workload
        self._pods = {task.name: row for row, task in enumerate(workload.tasks)}
        self._nodes = {machine.name: row for row, machine in enumerate(workload.machines)}
        self._machines = Machines(workload.capacity)
        count = len(workload.tasks)
        self._started, self._ended = np.full(count, np.nan), np.full(count, np.nan)
        self._node = np.full(count, -1, dtype=np.intp)
        self._confirmed: set[str] = set()
        self._events: SimpleQueue[tuple[float, Event]] = SimpleQueue()
        self._watch = Watch(Api(client), _running_pods(), lambda event: self._events.put((time.monotonic(), event)))
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

    @property
    def finished(self) -> int:
        """How many pods the API server shows as succeeded. Raises what went wrong in the background."""
        if self._failure is not None:
            raise ControlPlaneError(f"the simulated machines failed: {self._failure}") from self._failure
        return len(self._confirmed)

    @property
    def running(self) -> int:
        """How many pods run now."""
        return int((~np.isnan(self._started)).sum() - (~np.isnan(self._ended)).sum())

    def times(self) -> Times:
        """Return when what happened; not a number where it has not."""
        zero = np.nanmin(self._started)
        return Times(self._started - zero, self._ended - zero, self._node.copy())

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
                for pod in self._machines.end_due(time.monotonic()):
                    self._end(pod)
        except Exception as error:  # the edge of the loop: shown to whoever asks how far it is
            self._failure = error

    def _take_events(self) -> None:
        """Wait for the next event or the next end, whichever comes first; then take every event there is."""
        wait = min(max(self._machines.next_end - time.monotonic(), 0.0), _LONGEST_WAIT_SECONDS)
        try:
            self._take(*self._events.get(timeout=wait))
            while True:
                self._take(*self._events.get_nowait())
        except Empty:
            return

    def _take(self, now: float, event: Event) -> None:
        match event:
            case PodSeen(pod):
                self._see(now, pod)
            case PodsListed(pods):
                for pod in pods:
                    self._see(now, pod)

    def _see(self, now: float, pod: Pod) -> None:
        row = self._pods.get(pod.name)
        if row is None:
            return
        if pod.finished:
            self._confirmed.add(pod.name)
        elif pod.node is not None and np.isnan(self._started[row]):
            node = self._node[row] = self._nodes[pod.node]
            self._started[row] = now
            self._machines.start(int(node), row, self._workload.demand[row], self._workload.work[row], now)

    def _end(self, row: int) -> None:
        self._ended[row] = time.monotonic()
        self._ending.submit(self._succeed, self._workload.tasks[row].name).add_done_callback(self._note_failure)

    def _succeed(self, name: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        over = [{"type": kind, "status": "False", "reason": "PodCompleted"} for kind in ("Ready", "ContainersReady")]
        state = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
        container = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        status = {"phase": "Succeeded", "conditions": over, "containerStatuses": [container]}
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        rest.request(self._client, "PATCH", path, {"status": status}, content=rest.STRATEGIC)

    def _note_failure(self, done: Future[None]) -> None:
        if not done.cancelled() and done.exception() is not None:
            self._failure = done.exception()


def _running_pods() -> Resource:
    """Return how pods are read here: a pod has a node once it runs there."""
    decode = msgspec.json.Decoder(PodObject).decode

    def read(raw: msgspec.Raw) -> Pod:
        found = decode(raw)
        phase = found.status.phase if found.status else None
        meta = found.metadata
        node = found.spec.node_name if phase == "Running" else None
        return Pod(meta.uid, meta.namespace, meta.name, {}, node, finished=phase == "Succeeded")

    def read_all(raws: Sequence[msgspec.Raw]) -> Event:
        return PodsListed([read(raw) for raw in raws])

    return Resource(
        "pods", "/api/v1/pods", read_all, lambda raw: PodSeen(read(raw)), lambda raw: PodGone(read(raw).uid)
    )
