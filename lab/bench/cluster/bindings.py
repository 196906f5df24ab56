"""When the last of a set of pods is bound: one watch, which costs the API server little more than nothing.

Lists again and again would be what a benchmark measures, not what the schedulers do.
"""

import threading
import time
from collections.abc import Collection, Iterable
from types import TracebackType
from typing import Self

import msgspec
from kubernetes.client import ApiClient

from extender.adapters.kube.api import Api
from extender.adapters.kube.watching import Resource, Watch
from extender.cluster.events import Event, PodGone, PodSeen, PodsListed
from extender.cluster.model import Pod
from lab.errors import ControlPlaneError

_SYNC_SECONDS = 30


class _Meta(msgspec.Struct):
    name: str
    uid: str


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


class Bindings:
    """A context manager: while it is entered, the bindings of the pods of these names are noted."""

    def __init__(self, client: ApiClient, names: Collection[str]) -> None:
        self._awaited = set(names)
        self.bound: dict[str, float] = {}
        """When each of the pods was seen bound, on the monotonic clock."""
        self._last = time.monotonic()
        self._all = threading.Event()
        self._watch = Watch(Api(client), _bindings(), self._take)
        self._thread = threading.Thread(target=self._watch.run, name="bindings", daemon=True)

    def __enter__(self) -> Self:
        """Start to watch; return once the watch has begun."""
        self._thread.start()
        if not self._watch.synced.wait(_SYNC_SECONDS):
            self._watch.stop()
            raise ControlPlaneError(f"the API server has not listed pods after {_SYNC_SECONDS} s")
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._watch.stop()
        self._thread.join(5)

    @property
    def missing(self) -> int:
        """How many of the pods are not bound yet."""
        return len(self._awaited)

    def wait(self, seconds: float) -> float | None:
        """Return when the last pod was seen bound, on the monotonic clock; None if that takes longer."""
        return self._last if self._all.wait(seconds) else None

    def _take(self, event: Event) -> None:
        match event:
            case PodSeen(pod):
                self._see(pod)
            case PodsListed(pods):
                for pod in pods:
                    self._see(pod)

    def _see(self, pod: Pod) -> None:
        if pod.node is not None and pod.name in self._awaited:
            self._awaited.remove(pod.name)
            self._last = self.bound[pod.name] = time.monotonic()
            if not self._awaited:
                self._all.set()


def _bindings() -> Resource:
    """Return how pods are read here: their names and nodes, nothing else."""
    decode = msgspec.json.Decoder(_Pod).decode

    def read(raw: msgspec.Raw) -> Pod:
        pod = decode(raw)
        return Pod(pod.metadata.uid, "", pod.metadata.name, {}, pod.spec.node_name)

    def read_all(raws: Iterable[msgspec.Raw]) -> Event:
        return PodsListed([read(raw) for raw in raws])

    return Resource(
        "pods", "/api/v1/pods", read_all, lambda raw: PodSeen(read(raw)), lambda raw: PodGone(read(raw).uid)
    )
