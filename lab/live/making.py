"""Making pods: batches one after the other, in the order in which they are asked for, by a thread of its own."""

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from kubernetes.client import ApiClient

from lab.controlplane import workload
from lab.controlplane.builders import Manifest
from lab.errors import ControlPlaneError

_END_SECONDS = 10.0


class PodMaker:
    """A context manager: while it is entered, pods that are asked for are made."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._batches: SimpleQueue[Sequence[Manifest] | None] = SimpleQueue()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="pod-maker", daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Stop after the batch that is being made."""
        self._batches.put(None)
        self._thread.join(_END_SECONDS)

    def make(self, manifests: Sequence[Manifest]) -> None:
        """Ask for pods."""
        self._batches.put(manifests)

    def check(self) -> None:
        """Raise what went wrong in the background."""
        if self._failure is not None:
            raise ControlPlaneError(f"pods could not be made: {self._failure!r}") from self._failure

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            try:
                workload.create_pods(self._client, batch)
            except Exception as error:  # the edge of the loop: shown to whoever asks how far it is
                self._failure = error
                return
