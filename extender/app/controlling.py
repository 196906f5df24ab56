"""`dovetail control`, wired: watches feed ledger and backlog, the release loop acts on plans while we lead."""

import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

import structlog

from extender.adapters.http.health import create_health_app
from extender.adapters.http.server import Server
from extender.adapters.kube.api import Api, UnsupportedVersion, connect
from extender.adapters.kube.gates import GateWriter
from extender.adapters.kube.leases import ApiLease
from extender.adapters.kube.nodes import nodes
from extender.adapters.kube.recorder import EventRecorder
from extender.adapters.kube.watching import Resource, Watch, jobs, pods
from extender.adapters.kube.writes import PodWriter
from extender.adapters.metrics.control import ControlMetrics
from extender.app.caches import Caches, wait_for
from extender.app.clocks import SteadyClock
from extender.app.control_reports import ControlListener, ControlReports
from extender.app.holding import holding_of
from extender.app.liveness import Liveness
from extender.app.logs import configure_logs
from extender.app.measuring import load_besides_pods_of, measuring_of
from extender.app.on_idle_room import Reporting, on_idle_room, way_back
from extender.app.ordering import backlog_of, control_asks_for_labels, input_builder_of, optional_kinds, waits_of
from extender.app.tuning import policy_of
from extender.app.watches import Watches
from extender.cluster.events import Event, NamespaceSeen, NamespacesListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Pod
from extender.control.backlog.feeding import Feed
from extender.control.backlog.tenancy import problem_of
from extender.control.cluster_view import ClusterView
from extender.control.eviction_requests import EvictionRequests
from extender.control.filter_order.waking import Waker
from extender.control.leading import Leader, LeaseTimes
from extender.control.reclaim.evictions import Evictions
from extender.control.reclaim.locality_waits import LocalityWaits
from extender.control.reclaim.loop import Reclaimer, Timeouts
from extender.control.release.loop import Releaser
from extender.control.release.room_for_all import RoomForAll
from extender.control.release.sending import Sender
from extender.control.release.slots import Pace
from extender.errors import ClusterError
from extender.explain.events import Teller
from extender.explain.observing import LEAST_SECONDS, Observer
from extender.planner import Planner, Policy
from extender.settings import Settings

_RELEASE, _LEASE, _OBSERVE, _RECORDER, _HOLD = "release", "lease", "observe", "recorder", "hold"
_CALL_SECONDS = 2.0
"""A call for the Lease that is silent for so long has failed; there is time for another before the Lease is lost."""
_TAKEOVER_SECONDS = 0.5
"""What a predecessor wrote last gets this long to show before a new leader acts."""

log = structlog.get_logger()


class Control:
    """The process: watches, the release loop with reclaim, the Lease, the observer, and the health server.

    Threads: one for each watch, the Lease, the observer, the recorder and the release loop, which alone calls releaser,
    reclaimer and waker; a pool of writers; those of the server. `extender/control/README.md` says who may call what.
    Its `watches` may be shared with `dovetail serve` in one process, with one `liveness`.
    """

    def __init__(
        self, settings: Settings, api: Api, liveness: Liveness | None = None, watches: Watches | None = None
    ) -> None:
        self._api, self._all_settings, self._settings = api, settings, settings.control
        self.liveness, self._now = liveness or Liveness(), SteadyClock()
        self._following = watches or Watches(api, self.liveness)
        self._metrics = ControlMetrics(version("dovetail"))
        self._stopped = threading.Event()
        self._failure: ClusterError | None = None
        self._writers = ThreadPoolExecutor(self._settings.writers, "writer")
        # 1. What the watches bring.
        by_filter = settings.asks_filter
        self._ledger = Ledger(in_flight_seconds=self._settings.assume_seconds)
        self._backlog = backlog_of(settings, by_filter=by_filter)
        self.measuring = measuring_of(settings, api, self._metrics.registry, self._backlog, self._now)
        self._feed = Feed(self._ledger, self._backlog, self._now)
        node_kind = nodes(settings.capacity_rules(), settings.opportunistic.evict_at_memory)
        self._watches = [self._watch(kind) for kind in (node_kind, pods(), jobs())]
        self._caches = Caches(self._watches, settings.cluster.stale_seconds)
        # 2. Who may write, and what the loops see and write by.
        self._leader = self._make_leader()
        self._cluster = ClusterView(
            self._ledger,
            self._backlog,
            input_builder_of(settings, self._backlog),
            leads=self._leader.leads,
            flight_time=self._caches.flight_time,
            run_soon=self._run_soon,
            assume_seconds=self._settings.assume_seconds,
        )
        self._recorder = EventRecorder(self.liveness.over(api, _RECORDER))
        teller = Teller(self._recorder, self._settings.held_event_seconds)
        listener = ControlListener(self._metrics, teller)
        # 3. The loops.
        planner = Planner(policy_of(settings))
        requests = EvictionRequests(self._cluster, PodWriter(api))
        reporting = Reporting(self._metrics.registry, self._say_once)
        self._idle = on_idle_room(settings, api, self._cluster, self.measuring, requests, reporting)
        self._load = load_besides_pods_of(settings, self.measuring, self._ledger)
        sender = Sender(self._cluster, GateWriter(api), listener, self._idle.resizer if self._idle else way_back(api))
        self._waker = self._make_waker() if by_filter else None
        self._holding = holding_of(settings, api, self._cluster, self._now, partial(self.liveness.beat, _HOLD))
        self._releaser = self._make_releaser(planner, sender)
        waits = LocalityWaits(planner)
        evictions = Evictions(self._cluster, sender, waits, requests, listener)
        self._reclaimer = Reclaimer(self._cluster, waits, evictions, _timeouts_of(settings))
        # 4. What is shown of it.
        self._observer = self._make_observer(planner, teller)
        for warning in self._cluster.input_builder.tree.warnings():
            log.warning("settings", problem=warning)
        self._server = self._make_server()

    @property
    def port(self) -> int:
        """The port of health and metrics."""
        return self._server.port

    def run(self) -> None:
        """Run until `stop`. Raises ClusterError where the API server is too old."""
        loop = self.liveness.start(_RELEASE, self._start)
        log.info("listening", port=self.port)
        self._server.run()
        self._stopped.set()
        if self._holding is not None:
            self._holding.keeper.stop()
        self._leader.stop()
        self._ledger.close()
        loop.join(5)
        self._writers.shutdown(wait=True, cancel_futures=True)
        self._recorder.stop()
        self._leader.give_up()
        for watch in self._watches:
            watch.stop()
        if self._failure is not None:
            raise self._failure
        log.info("stopped")

    def stop(self) -> None:
        """End `run`: what is being written is finished, then the Lease given up."""
        self._stopped.set()
        self._server.stop()

    # -- the loop

    def _start(self) -> None:
        try:
            wait_for(self._api)
        except UnsupportedVersion as error:
            self._failure = error
            self._server.stop()
            return
        kinds = optional_kinds(self._api, labels=control_asks_for_labels(self._all_settings))
        self._watches += [self._watch(kind) for kind in kinds]
        self._following.start()
        self._caches.settle()
        self.liveness.start(_LEASE, self._leader.run)
        self.liveness.start(_RECORDER, self._recorder.run)
        self.liveness.start(_OBSERVE, self._observe_until_stopped)
        if self._holding is not None:
            self.liveness.start(_HOLD, self._holding.keeper.run)
        self.measuring.start(self.liveness, self._stopped, self._recorder, self._leader.leads)
        self._release_until_stopped()

    def _release_until_stopped(self) -> None:
        """Plan when something has changed, though not too often, and now and then in any case."""
        led = False
        self._moved()
        while not self._stopped.is_set():
            # 1. Note what is known now, so that a change during the step is not missed.
            begun = time.monotonic()
            snapshot = self._ledger.snapshot(self._caches.flight_time())
            # 2. Act if we lead; a new leader lets the last writes of its predecessor show first.
            if self._leader.leads():
                if not led:
                    self._stopped.wait(_TAKEOVER_SECONDS)
                led = True
                self._step()
            else:
                led = False
                self._rest()
            # 3. Rest for a moment in any case, then until something changes or somebody is due.
            self._stopped.wait(max(0.0, begun + self._settings.plan_milliseconds / 1000 - time.monotonic()))
            rest = begun + (self._settings.plan_seconds if led else 0.2) - time.monotonic()
            if led:
                rest = min(rest, self._releaser.again_at - self._now())
                if self._waker is not None:
                    rest = min(rest, self._waker.next_due() - self._now())
            if rest > 0 and not self._stopped.is_set():
                self._ledger.wait_past(snapshot, rest)

    def _step(self) -> None:
        if self._caches.problem() is not None:
            self._rest()
            return
        begun = time.perf_counter()
        try:
            if self._load is not None:
                self._load.step(self._cluster.snapshot().layout)
            if self._idle is not None:
                self._idle.preemptor.step(self._now())
            self._reclaimer.step(self._now())
            self._releaser.step(self._now())
            self._moved()
        except Exception:  # whatever it is: a loop that ended here would hold every pod for ever
            self._metrics.failures.inc()
            log.exception("step failed")
        self._metrics.plan_seconds.observe(time.perf_counter() - begun)

    def _rest(self) -> None:
        self._reclaimer.rest(self._now())
        self._releaser.rest(self._now())
        self._moved()

    def _moved(self) -> None:
        """Say that the release loop moves. A failed step does not: where all fail, another process is to try."""
        self.liveness.beat(_RELEASE, self._settings.plan_seconds)

    def _observe_until_stopped(self) -> None:
        """Look at the order now and then while we lead: reasons, events, what is measured."""
        pause = LEAST_SECONDS
        while not self._stopped.wait(pause):
            self.liveness.beat(_OBSERVE)
            try:
                if self._leader.leads() and self._caches.problem() is None:
                    pause = self._observer.look(self._now())
                else:
                    self._observer.look_away()
                    pause = LEAST_SECONDS
            except Exception:  # whatever it is: what is shown must not end for good
                self._metrics.failures.inc()
                log.exception("look failed")
            self.liveness.beat(_OBSERVE, pause)

    # -- wiring

    def _watch(self, resource: Resource) -> Watch:
        return self._following.follow(resource, self._take, self._metrics.watch_restarts.count)

    def _run_soon(self, write: Callable[[], None]) -> None:
        """Have the pool run a write; once we stop nothing more is begun, and the next leader takes it up."""
        if not self._stopped.is_set():
            self._writers.submit(self._write, write)

    def _write(self, write: Callable[[], None]) -> None:
        """Run a write in a thread of the pool; what it raises is counted and logged here, as the pool would hide it."""
        try:
            with self.liveness.during("write"):
                write()
        except Exception:
            self._metrics.failures.inc()
            log.exception("write failed")

    def _take(self, event: Event) -> None:
        for part in self._feed.take(event):
            self.measuring.take(part)
        match event:
            case NamespaceSeen(name, labels):
                self._warn_of_namespaces({name: labels})
            case NamespacesListed(namespaces):
                self._warn_of_namespaces(namespaces)

    def _warn_of_namespaces(self, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        for name, labels in namespaces.items():
            if (problem := problem_of(labels)) is not None:
                self._recorder.warn("Namespace", "", name, name, problem)

    def _say_once(self, pod: Pod, reason: str, message: str) -> None:
        """Say this of a pod in an event, once for each message."""
        self._recorder.say(pod, reason, message, message)

    def _plan_by(self, policy: Policy) -> None:
        """Have the release loop plan by another policy from its next plan on."""
        self._releaser.planner.policy = policy

    def _make_leader(self) -> Leader:
        lease = self._settings.lease
        call_seconds = min(_CALL_SECONDS, lease.renew_seconds / 5)
        return Leader(
            ApiLease(self._api, lease.namespace, lease.name, lease.seconds, call_seconds),
            f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}",
            LeaseTimes(lease.renew_seconds, lease.retry_seconds),
            time.monotonic,
            moved=partial(self.liveness.beat, _LEASE),
        )

    def _room_for_all(self) -> RoomForAll | None:
        """Return what releases pods without a node, where `filter` chooses it and nothing else may take its room."""
        settings = self._all_settings
        chosen = settings.order == "gates" and settings.placement.chosen_by == "filter"
        return RoomForAll(self._cluster) if chosen and not settings.opportunistic.enabled else None

    def _make_releaser(self, planner: Planner, sender: Sender) -> Releaser:
        idle, holding = self._idle, self._holding
        return Releaser(
            self._cluster,
            planner,
            sender,
            Pace(self._settings.unbound_pods, self._settings.scale_up_after_seconds),
            self._waker,
            room_for_all=self._room_for_all(),
            idle=idle.second_pass if idle else None,
            promoter=idle.promoter if idle else None,
            regular_first=idle.regular_first if idle else None,
            room_wanted=holding.room_wanted if holding else None,
        )

    def _make_observer(self, planner: Planner, teller: Teller) -> Observer:
        settings = self._all_settings
        return Observer(
            ledger=self._ledger,
            backlog=self._backlog,
            input_builder=input_builder_of(settings, self._backlog),
            policy=policy_of(settings),
            teller=teller,
            carried=lambda: planner.carried,
            flight_time=self._caches.flight_time,
            waits=waits_of(settings),
            plan_by=self._plan_by,
        )

    def _make_server(self) -> Server:
        """Return the server of health, metrics and what `explain` asks of us."""
        reports = ControlReports(
            self._leader,
            self._caches,
            self._backlog,
            self._releaser,
            self._observer,
            now=self._now,
            keeper=self._holding.keeper if self._holding else None,
            load=self._load,
            second_pass=self._idle.second_pass if self._idle else None,
        )
        self._metrics.observe(reports.gauges)
        app = create_health_app(
            live=self.liveness.problem,
            ready=self._caches.problem,
            metrics=self._metrics.text,
            waits=reports.waits,
            usage=self.measuring.report,
        )
        return Server(app, self._all_settings.server)

    def _make_waker(self) -> Waker:
        return Waker(
            self._backlog,
            PodWriter(self._api),
            self._run_soon,
            self._leader.leads,
            note_written=self._metrics.wakeups.inc,
        )


def _timeouts_of(settings: Settings) -> Timeouts:
    reclaim = settings.reclaim
    return Timeouts(reclaim.fair_share_seconds, reclaim.minimum_share_seconds, reclaim.evictions_per_minute)


def control(settings: Settings, kubeconfig: Path | None) -> None:
    """Run the controllers until SIGTERM or SIGINT."""
    configure_logs(settings.log)
    running = Control(settings, connect(kubeconfig))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: running.stop())
    running.run()
