"""`dovetail control`, wired: watches feed ledger and backlog, the release loop acts on plans while we lead."""

import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

import structlog

from extender.adapters.http.health import create_health_app
from extender.adapters.http.server import Server
from extender.adapters.http.wait_report import WaitReport, written
from extender.adapters.kube.api import Api, UnsupportedVersion, connect
from extender.adapters.kube.gates import GateWriter
from extender.adapters.kube.leases import ApiLease
from extender.adapters.kube.recorder import Recorder
from extender.adapters.kube.watching import Resource, Watch, jobs, nodes, pods
from extender.adapters.kube.writes import PodWriter
from extender.adapters.metrics.control import ControlGauges, ControlMetrics
from extender.app.caches import Caches, name_of, wait_for
from extender.app.clocks import SteadyClock
from extender.app.liveness import Liveness
from extender.app.logs import configure_logs
from extender.app.ordering import backlog_of, input_builder_of, optional_kinds, policy_of, waits_of
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Event, Pod
from extender.control.backlog.feeding import Feed
from extender.control.filter_order.waking import Waker
from extender.control.leading import Leader, Terms
from extender.control.reclaim.evictions import Evictions
from extender.control.reclaim.loop import Reclaimer, Timeouts
from extender.control.reclaim.trials import Vain
from extender.control.release.loop import Pace, Releaser
from extender.control.release.refusals import refused_pods
from extender.control.release.sending import Release
from extender.errors import ClusterError
from extender.explain.events import Teller
from extender.explain.observing import LEAST_SECONDS, Observer
from extender.planner import Planner, Policy
from extender.settings import Settings

_RELEASE, _LEASE, _OBSERVE, _RECORDER = "release", "lease", "observe", "recorder"
_CALL_SECONDS = 2.0
"""A call for the Lease that is silent for so long has failed; there is time for another before the Lease is lost."""
_TAKEOVER_SECONDS = 0.5
"""What a predecessor wrote last gets this long to show before a new leader acts."""

log = structlog.get_logger()


class Control:
    """The release loop with all that it needs."""

    def __init__(self, settings: Settings, api: Api) -> None:
        told = settings.control
        rules = settings.capacity_rules()
        self._api, self._all_settings, self._settings, self.liveness = api, settings, told, Liveness()
        self._now = SteadyClock()
        self._metrics = ControlMetrics(version("dovetail"))
        self._ledger = Ledger(in_flight_seconds=told.assume_seconds)
        by_filter = settings.order == "filter"
        self._backlog = backlog_of(settings, by_filter=by_filter)
        self._feed = Feed(self._ledger, self._backlog, self._now)
        self._resources: list[Resource] = [nodes(rules), pods(), jobs()]
        self._watches = [self._watch(resource) for resource in self._resources]
        self._caches = Caches(self._watches, settings.cluster.stale_seconds)
        lease = told.lease
        self._leader = Leader(
            ApiLease(api, lease.namespace, lease.name, lease.seconds, min(_CALL_SECONDS, lease.renew_seconds / 5)),
            f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}",
            Terms(lease.seconds, lease.renew_seconds, lease.retry_seconds),
            time.monotonic,
            moved=partial(self.liveness.beat, _LEASE),
        )
        self._stopped = threading.Event()
        self._writers = ThreadPoolExecutor(told.writers, "writer")
        writer = PodWriter(api)
        self._waker = (
            Waker(self._backlog, writer, self._run_soon, self._leader.leads, note=self._metrics.wakeups.inc)
            if by_filter
            else None
        )
        self._releaser = Releaser(
            ledger=self._ledger,
            backlog=self._backlog,
            input_builder=input_builder_of(settings, self._backlog),
            planner=Planner(policy_of(settings), explain=False),
            writer=GateWriter(api),
            listener=self,
            pace=Pace(told.unbound_pods, told.assume_seconds, told.scale_up_after_seconds),
            run_soon=self._run_soon,
            leads=self._leader.leads,
            flight_time=self._caches.flight_time,
            waker=self._waker,
        )
        self._recorder = Recorder(self.liveness.over(api, _RECORDER))
        self._teller = Teller(self._recorder, told.held_event_seconds)
        self._observer = Observer(
            ledger=self._ledger,
            backlog=self._backlog,
            input_builder=input_builder_of(settings, self._backlog),
            policy=policy_of(settings),
            teller=self._teller,
            carried=lambda: self._releaser.planner.carried,
            flight_time=self._caches.flight_time,
            waits=waits_of(settings),
            plan_by=self._plan_by,
        )
        told_of = settings.reclaim
        self._reclaimer = Reclaimer(
            self._releaser,
            Evictions(self._releaser, writer, self),
            Timeouts(told_of.fair_share_seconds, told_of.minimum_share_seconds, told_of.evictions_per_minute),
        )
        for warning in self._releaser.input_builder.tree.warnings():
            log.warning("settings", problem=warning)
        self._metrics.observe(self._gauges)
        app = create_health_app(
            live=self.liveness.problem, ready=self._caches.problem, metrics=self._metrics.text, waits=self._waits
        )
        self._server = Server(app, settings.server)
        self._failure: ClusterError | None = None

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

    # -- what the loop tells

    def note_release(self, turn: Release, node: str | None, waited_seconds: float) -> None:
        """Count a release, and have the pod told."""
        self._metrics.releases.labels(turn.how).inc()
        self._metrics.held_seconds.observe(waited_seconds)
        if turn.level:
            self._metrics.locality.count(turn.level, turn.passed_over)
        self._teller.note_release(turn.pod, node, waited_seconds, turn.level)

    def note_reclaim(self, victim: Pod, queue: str, why: str) -> None:  # noqa: ARG002 - the port's signature
        """Count an eviction."""
        self._metrics.reclaims.labels(why).inc()

    def note_vain(self, vain: Vain) -> None:
        """Count evictions that were in vain."""
        self._metrics.reclaims_in_vain.labels(vain.why).inc(vain.evictions)

    # -- the loop

    def _start(self) -> None:
        try:
            wait_for(self._api)
        except UnsupportedVersion as error:
            self._failure = error
            self._server.stop()
            return
        self._watches += [self._watch(resource) for resource in optional_kinds(self._api, self._all_settings)]
        for watch in self._watches:
            self.liveness.start(name_of(watch.resource), watch.run)
        self._caches.settle()
        self.liveness.start(_LEASE, self._leader.run)
        self.liveness.start(_RECORDER, self._recorder.run)
        self.liveness.start(_OBSERVE, self._observe_until_stopped)
        self._release_until_stopped()

    def _release_until_stopped(self) -> None:
        """Plan when something has changed, though not too often, and now and then in any case."""
        led = False
        self._moved()
        while not self._stopped.is_set():
            begun = time.monotonic()
            snapshot = self._ledger.snapshot(self._caches.flight_time())
            if self._leader.leads():
                if not led:
                    self._stopped.wait(_TAKEOVER_SECONDS)
                led = True
                self._step()
            else:
                led = False
                self._rest()
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
        """Say that the release loop moves. A step that fails says nothing: where all do, another process is to try."""
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
        moved = partial(self.liveness.beat, name_of(resource))
        return Watch(self._api, resource, self._take, restarted=self._count_restart, moved=moved)

    def _run_soon(self, write: Callable[[], None]) -> None:
        """Have it written by the pool; once we stop nothing more is begun, and who leads next takes it up."""
        if not self._stopped.is_set():
            self._writers.submit(self._write, write)

    def _write(self, write: Callable[[], None]) -> None:
        """Write, in a thread of the pool, which keeps to itself what is raised there."""
        try:
            with self.liveness.during("write"):
                write()
        except Exception:
            self._metrics.failures.inc()
            log.exception("write failed")

    def _take(self, event: Event) -> None:
        self._feed.take(event)

    def _count_restart(self, resource: str, cause: str) -> None:
        self._metrics.watch_restarts.labels(resource, cause).inc()

    def _plan_by(self, policy: Policy) -> None:
        """Have the release loop plan by another policy from its next plan on."""
        self._releaser.planner.policy = policy

    def _waits(self) -> bytes:
        """Return what the last plans left, as JSON for who explains a pod or looks for what is wrong."""
        carried = self._releaser.planner.carried
        age = max(self._now() - carried.planned_at, 0.0)
        return written(
            WaitReport(
                leads=self._leader.leads(),
                in_force=self._observer.waits.in_force,
                jobs=carried.locality,
                age_seconds=age,
                passed_over=self._releaser.passed_over.seconds(),
                reserved={name: reservation.nodes for name, reservation in carried.reserved.items()},
                kept_idle=self._releaser.kept_idle,
            )
        )

    def _gauges(self) -> ControlGauges:
        seen, load, leads = self._observer.seen, self._observer.load, self._leader.leads()
        return ControlGauges(
            leads=leads,
            ready=self._caches.problem() is None,
            in_flight=self._releaser.unbound,
            refused=sum(map(len, refused_pods(self._backlog).values())),
            cache_age_seconds=self._caches.ages(),
            held=seen.held,
            queues=seen.shares,
            oldest=seen.oldest,
            nodes=self._backlog.schedulable_nodes(),
            freed=load.freed,
            loaded_seconds=load.seconds,
            job_tasks=load.typical.tasks if load.typical else None,
            replicas=load.typical.replicas if load.typical else None,
            waits=self._observer.waits_by_level() if leads else {},
            kept_idle=self._releaser.kept_idle if leads else 0.0,
            passed_over=dict.fromkeys(seen.shares, 0.0) | dict(self._releaser.passed_over.seconds()),
        )


def control(settings: Settings, kubeconfig: Path | None) -> None:
    """Run the controllers until SIGTERM or SIGINT."""
    configure_logs(settings.log)
    running = Control(settings, connect(kubeconfig))
    end: Callable[[], None] = running.stop
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: end())
    running.run()
