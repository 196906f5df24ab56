"""`dovetail serve`, wired: watches feed the ledger, the verbs answer from it."""

import signal
import time
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import structlog

from extender.adapters.http.choosing import Chooser
from extender.adapters.http.routes import create_app
from extender.adapters.http.server import Server
from extender.adapters.http.verbs import Verbs
from extender.adapters.kube.api import Api, UnsupportedVersion, connect
from extender.adapters.kube.nodes import nodes
from extender.adapters.kube.recorder import EventRecorder
from extender.adapters.kube.services import services
from extender.adapters.kube.watching import Resource, Watch, jobs, pods
from extender.adapters.metrics.serve import ServeGauges, ServeMetrics
from extender.app.caches import Caches, wait_for
from extender.app.clocks import SteadyClock
from extender.app.holding import ender_of
from extender.app.liveness import Liveness
from extender.app.logs import configure_logs
from extender.app.ordering import backlog_of, input_builder_of, optional_kinds, serve_asks_for_labels
from extender.app.tuning import policy_of
from extender.app.watches import Watches
from extender.cluster.events import Event, NodeSeen, NodesListed, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.services import Services
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.feeding import Feed
from extender.control.filter_order.node_sample import NodeSample
from extender.control.filter_order.order import FilterOrder
from extender.control.filter_order.planning import Planning
from extender.control.filter_order.questions import Questions
from extender.control.filter_order.slot_planner import SlotPlanner
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.plan_input.preferred_nodes import PreferredNodes
from extender.errors import ClusterError
from extender.planner import Planner
from extender.settings import Settings
from extender.verdict import Placement, Ranker

_PLANS, _ENDER = "plans", "hold-ender"

log = structlog.get_logger()


class ExtenderService:
    """The extender, wired: watches feed the ledger, the verbs answer from it.

    Its `watches` may be shared with `dovetail control` in one process, with one `liveness`.
    """

    def __init__(
        self, settings: Settings, api: Api, liveness: Liveness | None = None, watches: Watches | None = None
    ) -> None:
        rules = settings.capacity_rules()
        self._api, self._settings, self.liveness = api, settings, liveness or Liveness()
        self._following = watches or Watches(api, self.liveness)
        self._now = SteadyClock()
        self._address = settings.server.address
        self._metrics = ServeMetrics(version("dovetail"))
        self._ledger = Ledger(in_flight_seconds=settings.placement.in_flight_seconds)
        self._recorder = EventRecorder(
            self.liveness.over(api, "recorder"), warned=self._metrics.count_broken_annotation
        )
        self._backlog: Backlog | None = None
        resources = [nodes(rules, settings.opportunistic.evict_at_memory), pods()]
        if settings.asks_filter:
            self._backlog = backlog_of(settings, by_filter=True)
            resources.append(jobs())
        ranker = Ranker(_placement(settings))
        self._services = Services()
        self._chooser: Chooser | None = None
        if settings.placement.chosen_by == "filter":
            self._chooser = Chooser(self._ledger, ranker, self._services)
            resources.append(services())
        self._feed = Feed(self._ledger, self._backlog, self._now)
        self._watches = [self._watch(resource) for resource in resources]
        self._caches = Caches(self._watches, settings.cluster.stale_seconds)
        self._metrics.observe(self._gauges)
        self._planning: Planning | None = None
        order: FilterOrder | None = None
        if self._backlog is not None:
            self._planning, order = self._make_planning(self._backlog, settings)
        self._server = Server(
            create_app(
                Verbs(
                    ledger=self._ledger,
                    ranker=ranker,
                    rules=rules,
                    readiness=self._caches,
                    warner=self._recorder,
                    metrics=self._metrics,
                    wait_seconds=settings.placement.wait_milliseconds / 1000,
                    order=order,
                    chooser=self._chooser,
                ),
                self.liveness.problem,
            ),
            settings.server,
        )
        self._ender = ender_of(settings, api, partial(self.liveness.beat, _ENDER))
        self._failure: ClusterError | None = None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.port

    def run(self) -> None:
        """Serve until `stop`. Raises ClusterError where the API server is too old."""
        self.liveness.start("recorder", self._recorder.run)
        self.liveness.start("start", self._start_watches)
        log.info("listening", address=self._address, port=self.port)
        self._server.run()
        if self._ender is not None:
            self._ender.stop()
        for watch in self._watches:
            watch.stop()
        self._recorder.stop()
        if self._failure is not None:
            raise self._failure
        log.info("stopped")

    def stop(self) -> None:
        """Drain and end `run`; a filter call that waits for an event or a plan is answered at once."""
        self._ledger.close()
        if self._planning is not None:
            self._planning.stop()
        self._server.stop()

    def _start_watches(self) -> None:
        """Check the API server's version, as soon as it answers; then follow nodes and pods."""
        try:
            wait_for(self._api)
        except UnsupportedVersion as error:
            self._failure = error
            self._server.stop()
            return
        if self._backlog is not None:
            kinds = optional_kinds(self._api, labels=serve_asks_for_labels(self._settings))
            self._watches += [self._watch(kind) for kind in kinds]
        self._following.start()
        if self._ender is not None:
            self.liveness.start(_ENDER, self._ender.run)
        self._caches.settle()
        if self._planning is not None:
            self.liveness.start(_PLANS, self._planning.run)

    def _watch(self, resource: Resource) -> Watch:
        return self._following.follow(resource, self._take, self._metrics.watch_restarts.count)

    def _make_planning(self, backlog: Backlog, settings: Settings) -> tuple[Planning, FilterOrder]:
        """Return what makes the same plans as `dovetail control`, and the order that filter keeps by them."""
        flight_time, clock, now = self._caches.flight_time, time.monotonic, self._now
        planner = Planner(policy_of(settings))
        questions = Questions(
            self._ledger, backlog, NodeSample(planner.policy), flight_time=flight_time, clock=clock, now=now
        )
        planning = Planning(
            SlotPlanner(
                self._ledger,
                backlog,
                input_builder_of(settings, backlog),
                planner,
                flight_time=flight_time,
                clock=clock,
                now=now,
            ),
            questions,
            plan_seconds=settings.control.plan_milliseconds / 1000,
            clock=clock,
            now=now,
            ready=lambda: self._caches.problem() is None,
            planned=self._metrics.plan_seconds.observe,
            failed=self._metrics.plan_failures.inc,
            moved=partial(self.liveness.beat, _PLANS),
        )
        nodes = AllowedNodes(backlog)
        order = FilterOrder(
            backlog,
            questions,
            planning,
            nodes,
            PreferredNodes(backlog, nodes, settings.locality.levels),
            clock=clock,
            placed=self._metrics.locality.count,
        )
        return planning, order

    def _take(self, event: Event) -> None:
        parts = self._feed.take(event)
        self._services.apply(event)
        if self._planning is not None:
            self._planning.note_change()
        match event:
            case NodeSeen(node):
                nodes_seen = [node]
            case NodesListed(listed):
                nodes_seen = [*listed]
            case _:
                self._warn_of_bound(parts)
                self._learn_of_rejected(parts)
                return
        for node in nodes_seen:
            if node.problem is not None:
                self._recorder.warn("Node", "", node.name, node.name, node.problem)

    def _warn_of_bound(self, parts: Sequence[Event]) -> None:
        """Warn of changed annotations on pods that have a node: no verb will look at those again."""
        for part in parts:
            if isinstance(part, PodSeen) and part.pod.holds is not None and (warning := part.pod.warning) is not None:
                pod = part.pod
                self._recorder.warn("Pod", pod.namespace, pod.name, pod.uid, warning, pod.owner)

    def _learn_of_rejected(self, parts: Sequence[Event]) -> None:
        """Take note of pods that were bound where we chose, and whose kubelet would not have them."""
        for part in parts:
            if self._chooser is not None and isinstance(part, PodSeen) and part.pod.rejected:
                self._chooser.failed(part.pod)

    def _gauges(self) -> ServeGauges:
        holding, others, in_flight = self._ledger.counts()
        return ServeGauges(
            snapshot=self._ledger.snapshot(self._caches.flight_time()),
            pods={"holding": holding, "waiting_or_finished": others, "in_flight": in_flight},
            cache_age_seconds=self._caches.ages(),
            ready=self._caches.problem() is None,
        )


def _placement(settings: Settings) -> Placement:
    placement = settings.placement
    return Placement(placement.rule, placement.shape_step, settings.locality.remote_penalty)


def serve(settings: Settings, kubeconfig: Path | None) -> None:
    """Run the extender until SIGTERM or SIGINT."""
    configure_logs(settings.log)
    service = ExtenderService(settings, connect(kubeconfig))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: service.stop())
    service.run()
