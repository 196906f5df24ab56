"""Whether what the watches show can be trusted; and waiting for an API server that is not there yet."""

import threading
import time
from collections.abc import Sequence

import structlog

from extender.adapters.kube.api import Api, UnsupportedVersion
from extender.adapters.kube.watching import Resource, Watch
from extender.errors import ClusterError

_SETTLE_SECONDS = 0.5
"""After the first sync, bindings that were under way when we started get this long to show."""

_LONGEST_PAUSE_SECONDS = 10.0

log = structlog.get_logger()


def name_of(resource: Resource) -> str:
    """Return what the thread is called that watches a resource."""
    return f"watch-{resource.name}"


def wait_for(api: Api) -> None:
    """Wait until the API server answers, for ever. Raises UnsupportedVersion where it is too old."""
    pause = 1.0
    while True:
        try:
            log.info("api server", version=api.check_version())
            return
        except UnsupportedVersion:
            raise
        except ClusterError as error:
            log.warning("api server does not answer yet", error=str(error))
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


class Caches:
    """Whether what the watches show can be trusted. Any thread may ask."""

    def __init__(self, watches: Sequence[Watch], stale_seconds: float) -> None:
        self._watches = watches
        self._stale_seconds = stale_seconds
        self._settled = threading.Event()
        self._flight_lock = threading.Lock()
        self._flight_time = 0.0
        self._connected: dict[str, float] = {}

    def settle(self) -> None:
        """Wait until all watches have listed, and a moment more; then be ready.

        A watch of an optional kind need only have tried once: where that failed, it goes on trying meanwhile.
        """
        for watch in self._watches:
            (watch.tried if watch.resource.optional else watch.synced).wait()
            if not watch.synced.is_set():
                log.warning("goes on without, and tries again", what=watch.resource.name)
        time.sleep(_SETTLE_SECONDS)
        self._settled.set()
        log.info("ready")

    def wait(self, seconds: float) -> bool:
        """Wait until settled; False if that takes longer."""
        return self._settled.wait(seconds)

    def problem(self) -> str | None:
        """Return what keeps us from being ready: caches not synced yet, or watches down for too long."""
        if not self._settled.is_set():
            return "caches are not synced yet"
        for watch in self._needed():
            if not watch.connected and watch.age_seconds() > self._stale_seconds:
                return f"the watch of {watch.resource.name} has been down for more than {self._stale_seconds:g} s"
        return None

    def flight_time(self) -> float:
        """Return the clock of pods in flight; it stands still while a watch is down, as no pod can be seen to land.

        Since the last call it has gone on for as long as the watch was connected that was so for the shortest time.
        """
        with self._flight_lock:
            now = time.monotonic()  # of all watches: a pause between two of them is no time that one was down
            connected = {watch.resource.name: watch.connected_seconds(now) for watch in self._needed()}
            passed = min(seconds - self._connected.get(name, 0.0) for name, seconds in connected.items())
            self._flight_time += max(passed, 0.0)
            self._connected = connected
            return self._flight_time

    def _needed(self) -> list[Watch]:
        """Return the watches of kinds that are not optional."""
        return [watch for watch in self._watches if not watch.resource.optional]

    def ages(self) -> dict[str, float]:
        """Return for how long each watch has been silent."""
        return {watch.resource.name: watch.age_seconds() for watch in self._watches}
