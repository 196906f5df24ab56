"""`dovetail record`: follows a cluster's nodes and pods, and writes what they did; reads only.

Two watches put events into a queue, one loop takes them and writes lines. Where lines cannot be written as fast as
events come, the watches wait: memory stays bounded, and what they miss is said by a gap.
"""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Full, Queue
from typing import BinaryIO

from extender.adapters.kube.api import Api
from extender.adapters.kube.nodes import nodes
from extender.adapters.kube.observed import observed_pods
from extender.adapters.kube.watching import Resource, Watch
from extender.cluster.events import Event
from extender.cluster.recording.lines import BEGINNING, Begin, End, Gap, Line, PodLine, Quiet, encoded, lines_in
from extender.cluster.recording.past import NOTHING, Past, past_of
from extender.cluster.recording.pseudonyms import Pseudonyms
from extender.cluster.recording.recorder import ClusterRecorder, as_they_are
from extender.errors import ClusterError, DovetailError, TraceError
from extender.settings import Settings
from extender.words import many

CHECKPOINT_SECONDS = 3600.0
QUIET_SECONDS = 60.0
_MOST_EVENTS = 10_000
_LOOK_SECONDS = 0.25
_HEAR_SECONDS = 5.0
_END_SECONDS = 5.0
_KEY_BYTES = 32


def go_on(file: Path) -> Past:
    """Return where the recording in a file stopped, and cut off a last line that is not whole, or blank.

    A file that is not there, or is empty, has no past. Raises DovetailError for one that is no recording.
    """
    try:
        if not file.exists() or not file.stat().st_size:
            return NOTHING
        with file.open("rb+") as stream:
            whole = end = 0
            for line in lines_in(stream, str(file)):
                end += len(line)
                whole = end if line.endswith(b"\n") and line.strip() else whole
            stream.seek(0)
            if not whole and not BEGINNING.startswith(stream.read(len(BEGINNING))):
                raise TraceError(f"{file}, line 1: this begins no recording; give one, or a file that is not there yet")
            stream.seek(0)
            past = past_of((line for line in lines_in(stream, str(file)) if line.endswith(b"\n")), str(file))
            stream.truncate(whole)
            return past
    except OSError as error:
        raise DovetailError(f"{file}: {error.strerror}; give a file that may be read and written") from None


class Recording:
    """Follows a cluster from `run` on until `stop`. `output` gets whole lines only."""

    def __init__(
        self,
        api: Api,
        output: BinaryIO,
        settings: Settings,
        *,
        past: Past = NOTHING,
        anonymous: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._api, self._output, self._clock, self._anonymous = api, output, clock, anonymous
        self._events: Queue[tuple[Event, float]] = Queue(_MOST_EVENTS)
        self._stopped = threading.Event()
        names = Pseudonyms(secrets.token_bytes(_KEY_BYTES)) if anonymous else as_they_are
        self._recorder = ClusterRecorder(clock(), past, names)
        kinds = nodes(settings.capacity_rules(), settings.opportunistic.evict_at_memory), observed_pods()
        self._watches = {"nodes": self._watch(kinds[0]), "pods": self._watch(kinds[1])}
        self._was_connected: set[str] = set()
        self._looked_at = self._wrote_at = self._checked_at = clock()
        self._checked = False
        self._pods = self._gaps = 0

    @property
    def summary(self) -> str:
        """What was written until now, in a sentence."""
        missed = f", with {many(self._gaps, 'gap')}" if self._gaps else ""
        return f"{many(self._pods, 'pod')} ended while it was recorded{missed}"

    def run(self) -> None:
        """Write lines until stopped; then a checkpoint and an end. Raises DovetailError."""
        # 1. Say who records what; fail at once where the cluster cannot be read.
        version = self._version()
        for watch in self._watches.values():
            self._api.get(watch.resource.path, [("limit", "1")]).close()
        self._write(Begin(self._clock(), version, self._anonymous))
        # 2. Follow, until somebody stops us.
        threads = [threading.Thread(target=watch.run, daemon=True) for watch in self._watches.values()]
        for thread in threads:
            thread.start()
        try:
            while not self._stopped.is_set():
                self._step()
            self._finish()
        finally:
            self._stopped.set()
            for watch in self._watches.values():
                watch.stop()
            for thread in threads:
                thread.join(_END_SECONDS)

    def stop(self) -> None:
        """End `run` after the line that is being written; may be called by a signal handler."""
        self._stopped.set()

    def _step(self) -> None:
        """Write what has come, and what time calls for: a checkpoint, or that nothing happened."""
        self._write(*self._coming())
        now = self._clock()
        if self._recorder.synced and (not self._checked or _is_over(now - self._checked_at, CHECKPOINT_SECONDS)):
            self._checked, self._checked_at = True, now
            self._write(self._recorder.checkpoint(now))
        self._look(now)
        if self._recorder.synced and _is_over(self._clock() - self._wrote_at, QUIET_SECONDS):
            self._write(Quiet(self._recorder.heard))

    def _finish(self) -> None:
        """Write what has come by now, all that lives, and the end."""
        while not self._events.empty():
            self._write(*self._coming())
        now = self._clock()
        if self._recorder.synced:
            self._write(self._recorder.checkpoint(now))
        self._write(End(self._recorder.heard))

    def _coming(self) -> Iterator[Line]:
        """Yield the lines of the next event, if one comes soon, and of all that are there."""
        try:
            event, at = self._events.get(timeout=_LOOK_SECONDS)
            yield from self._recorder.take(event, at)
            while True:
                yield from self._recorder.take(*self._events.get_nowait())
        except Empty:
            return

    def _look(self, now: float) -> None:
        """Note until when nothing was missed: a stream that was open at the last look, and still is, has sent all."""
        if not _is_over(now - self._looked_at, _HEAR_SECONDS) or not self._events.empty():
            return
        connected = {name for name, watch in self._watches.items() if watch.connected}
        if "nodes" in connected & self._was_connected:
            self._recorder.hear("nodes", self._looked_at)
        if "pods" in connected & self._was_connected:
            self._recorder.hear("pods", self._looked_at)
        self._was_connected, self._looked_at = connected, now

    def _watch(self, resource: Resource) -> Watch:
        return Watch(self._api, resource, self._put)

    def _put(self, event: Event) -> None:
        """Hand an event to the loop; wait where it has too many."""
        at = self._clock()
        while not self._stopped.is_set():
            try:
                self._events.put((event, at), timeout=_LOOK_SECONDS)
            except Full:
                continue
            return

    def _write(self, *lines: Line) -> None:
        for line in lines:
            self._output.write(encoded(line))
            self._pods += isinstance(line, PodLine)
            self._gaps += isinstance(line, Gap)
            self._wrote_at = self._clock()
        if lines:
            self._output.flush()

    def _version(self) -> str:
        version = self._api.read("/version").get("gitVersion")
        if not isinstance(version, str):
            raise ClusterError("GET /version: the answer is not an API server's")
        return version


def _is_over(passed: float, seconds: float) -> bool:
    """Say whether so many seconds have passed, or the clock was set back meanwhile."""
    return not 0 <= passed < seconds
