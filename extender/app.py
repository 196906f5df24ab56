"""The only composition root: settings in, a wired service out."""

import logging
import signal
import sys
import threading
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
import structlog

from extender.adapters.kube import Api, UnsupportedVersion, Watch, connect, nodes, pods
from extender.adapters.metrics import Gauges, Metrics
from extender.adapters.recorder import Recorder
from extender.adapters.routes import create_app
from extender.adapters.server import Server
from extender.adapters.verbs import Verbs
from extender.cluster.model import Event, NodeSeen, NodesListed
from extender.cluster.state import Ledger
from extender.errors import ClusterError
from extender.settings import LogSettings, Settings
from extender.verdict import Placement, Ranker

_SETTLE_SECONDS = 0.5
"""After the first sync, bindings that were under way when we started get this long to show."""

_LONGEST_PAUSE_SECONDS = 10.0

log = structlog.get_logger()


class Caches:
    """Whether what the watches have brought can be trusted."""

    def __init__(self, watches: Sequence[Watch], stale_seconds: float) -> None:
        self._watches = watches
        self._stale_seconds = stale_seconds
        self._settled = threading.Event()

    def settle(self) -> None:
        """Wait for all watches to have listed, and a moment more; then be ready."""
        for watch in self._watches:
            watch.synced.wait()
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
        for watch in self._watches:
            if not watch.connected and watch.age_seconds() > self._stale_seconds:
                return f"the watch of {watch.resource.name} has been down for more than {self._stale_seconds:g} s"
        return None

    def flight_time(self) -> float:
        """Return the time that pods in flight grow old by; it stands still while a watch is down: nothing can land."""
        return min(watch.connected_seconds() for watch in self._watches)

    def ages(self) -> dict[str, float]:
        """Return for how long each watch has been silent."""
        return {watch.resource.name: watch.age_seconds() for watch in self._watches}


class Service:
    """The extender, wired: watches feed the ledger, the verbs answer from it."""

    def __init__(self, settings: Settings, api: Api) -> None:
        rules = settings.capacity_rules()
        self._api = api
        self._address = settings.server.address
        self._metrics = Metrics(version("dovetail"))
        self._ledger = Ledger(in_flight_seconds=settings.placement.in_flight_seconds)
        self._recorder = Recorder(api)
        self._watches = [
            Watch(api, resource, self._take, restarted=self._count_restart) for resource in (nodes(rules), pods())
        ]
        self._caches = Caches(self._watches, settings.cluster.stale_seconds)
        self._metrics.observe(self._gauges)
        self._server = Server(
            create_app(
                Verbs(
                    ledger=self._ledger,
                    ranker=Ranker(Placement(settings.placement.rule, settings.placement.shape_step)),
                    rules=rules,
                    readiness=self._caches,
                    warner=self._recorder,
                    metrics=self._metrics,
                    wait_seconds=settings.placement.wait_milliseconds / 1000,
                )
            ),
            settings.server,
        )
        self._failure: ClusterError | None = None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.port

    def run(self) -> None:
        """Serve until `stop`. Raises ClusterError where the API server is too old."""
        for name, target in (("recorder", self._recorder.run), ("start", self._start_watches)):
            threading.Thread(target=target, name=name, daemon=True).start()
        log.info("listening", address=self._address, port=self.port)
        self._server.run()
        for watch in self._watches:
            watch.stop()
        self._recorder.stop()
        if self._failure is not None:
            raise self._failure
        log.info("stopped")

    def stop(self) -> None:
        """Drain and end `run`; a filter call that waits for news is answered without."""
        self._ledger.close()
        self._server.stop()

    def _start_watches(self) -> None:
        """Check the API server's version, as soon as it answers; then follow nodes and pods."""
        pause = 1.0
        while True:
            try:
                log.info("api server", version=self._api.check_version())
                break
            except UnsupportedVersion as error:
                self._failure = error
                self._server.stop()
                return
            except ClusterError as error:
                log.warning("api server does not answer yet", error=str(error))
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        for watch in self._watches:
            threading.Thread(target=watch.run, name=f"watch-{watch.resource.name}", daemon=True).start()
        self._caches.settle()

    def _take(self, event: Event) -> None:
        self._ledger.apply(event)
        match event:
            case NodeSeen(node):
                seen = [node]
            case NodesListed(listed):
                seen = [*listed]
            case _:
                return
        for node in seen:
            if node.problem is not None:
                self._metrics.broken_annotations.labels("Node").inc()
                text = f"{node.problem}; its capacity is taken from settings"
                self._recorder.warn("Node", "", node.name, node.name, text)

    def _count_restart(self, resource: str, cause: str) -> None:
        self._metrics.watch_restarts.labels(resource, cause).inc()

    def _gauges(self) -> Gauges:
        holding, others, in_flight = self._ledger.counts()
        return Gauges(
            snapshot=self._ledger.snapshot(self._caches.flight_time()),
            pods={"holding": holding, "waiting_or_finished": others, "in_flight": in_flight},
            cache_age_seconds=self._caches.ages(),
            ready=self._caches.problem() is None,
        )


def serve(settings: Settings, kubeconfig: Path | None) -> None:
    """Run the extender until SIGTERM or SIGINT."""
    configure_logs(settings.log)
    service = Service(settings, connect(kubeconfig))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: service.stop())
    service.run()


def configure_logs(settings: LogSettings) -> None:
    """Write structured lines to standard error."""
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    minimum = structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[settings.level.upper()])
    if settings.format == "json":
        structlog.configure(
            processors=[*shared, structlog.processors.JSONRenderer(serializer=_json)],
            wrapper_class=minimum,
            logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
            cache_logger_on_first_use=True,
        )
    else:
        structlog.configure(
            processors=[*shared, structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"])],
            wrapper_class=minimum,
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
            cache_logger_on_first_use=True,
        )


def _json(event: object, **_: object) -> bytes:
    return msgspec.json.encode(event)
