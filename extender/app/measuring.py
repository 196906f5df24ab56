"""Wires the reading of use into `control`: where it is read, of which nodes and pods, and who hears of it."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
from prometheus_client import CollectorRegistry

from extender.adapters.kube.api import Api
from extender.adapters.kube.recorder import EventRecorder
from extender.adapters.metrics.peaks import PeakMetrics
from extender.adapters.metrics.usage import UsageMetrics
from extender.adapters.usage.access import Access
from extender.adapters.usage.looks import Source
from extender.adapters.usage.metrics_api import MetricsApi
from extender.adapters.usage.prometheus import Prometheus
from extender.adapters.usage.queries import Queries
from extender.adapters.usage.reading import UsageReader
from extender.adapters.usage.report import UsageReport, report_of, written
from extender.app.liveness import Liveness
from extender.app.predicting import Predicting
from extender.cluster.events import Event, NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.cluster.usage import Usage
from extender.control.backlog.backlog import Backlog
from extender.control.idle_room.learned_use import sampled
from extender.control.idle_room.load_besides_pods import LoadBesidesPods
from extender.settings import Settings
from extender.settings.sections import UsageSettings

METRICS_API = "metrics.k8s.io"

MOST_ENDED = 2000
"""So many pods that have ended are measured one by one, the last ones. What others still count is not known."""


@dataclass(slots=True)
class Places:
    """Which nodes there are, which pods are where, and which have ended there lately. Any thread may call."""

    clock: Callable[[], float] = time.time
    _nodes: dict[str, Node] = field(default_factory=dict)
    _pods: dict[str, Pod] = field(default_factory=dict)
    _ended: deque[tuple[float, Pod]] = field(default_factory=lambda: deque(maxlen=MOST_ENDED))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def apply(self, event: Event) -> None:
        """Take in what a watch brings."""
        with self._lock:
            match event:
                case NodeSeen(node):
                    self._nodes[node.name] = node
                case NodeGone(name):
                    self._nodes.pop(name, None)
                case NodesListed(nodes):
                    self._nodes = {node.name: node for node in nodes}
                case PodSeen(pod):
                    self._see(pod)
                case PodGone(uid):
                    self._pods.pop(uid, None)
                case PodsListed(pods):
                    self._pods = {pod.uid: pod for pod in pods if pod.holds is not None}
                case _:
                    pass

    def nodes(self) -> list[Node]:
        """Return all nodes."""
        with self._lock:
            return list(self._nodes.values())

    def pods(self) -> list[Pod]:
        """Return the pods that hold resources of a node."""
        with self._lock:
            return list(self._pods.values())

    def ended(self, seconds: float) -> list[Pod]:
        """Return the pods that have ended on a node in the last `seconds`, as far as they are known.

        Not where another pod has the name by now: series do not tell them apart.
        """
        since = self.clock() - seconds
        with self._lock:
            while self._ended and self._ended[0][0] < since:
                self._ended.popleft()
            if not self._ended:
                return []
            taken = {(pod.namespace, pod.name) for pod in self._pods.values()}
            by_name = {(pod.namespace, pod.name): pod for _, pod in self._ended}
            return [pod for name, pod in by_name.items() if name not in taken]

    def by_name(self) -> dict[tuple[str, str], str]:
        """Return on which node each of these pods (namespace, name) is."""
        return {(pod.namespace, pod.name): pod.node or "" for pod in self.pods()}

    def _see(self, pod: Pod) -> None:
        if pod.holds is not None:
            self._pods[pod.uid] = pod
        elif self._pods.pop(pod.uid, None) is not None and pod.finished:
            self._ended.append((self.clock(), pod))


class Measuring:
    """Reads the use of the cluster while `control` runs, where settings say from what; else it does nothing.

    Opportunistic pods are measured one by one. So are those that are `sampled` (UIDs), and where anybody is, the pods
    that have ended within the window.
    """

    def __init__(
        self,
        settings: Settings,
        api: Api,
        registry: CollectorRegistry,
        sampled: Callable[[], Collection[str]] | None = None,
    ) -> None:
        usage, places = settings.usage, Places()
        self._places = places
        self._source = usage.url or METRICS_API
        self._lease = settings.control.lease
        self._pressure = settings.opportunistic.by_pressure
        self._metrics = UsageMetrics(registry)
        self._warn: Callable[[str], None] = lambda _problem: None  # nobody writes events yet
        self.reader: UsageReader | None = None
        if usage.on:

            def pods() -> Sequence[Pod]:
                if sampled is None:
                    return [pod for pod in places.pods() if pod.opportunistic]
                uids = sampled()
                chosen = [pod for pod in places.pods() if pod.opportunistic or pod.uid in uids]
                return chosen + places.ended(usage.window_seconds + usage.interval_seconds)

            self.reader = UsageReader(
                _source(usage, api, places, pressure=self._pressure),
                places.nodes,
                pods,
                self,
                usage.interval_seconds,
                usage.stale_seconds,
            )
        wanted = settings.opportunistic
        self.predicting: Predicting | None = None
        if usage.url and wanted.enabled and wanted.threshold == "auto":
            self.predicting = Predicting(usage, wanted, places.nodes, places.pods)
            PeakMetrics(registry).observe(self.predicting.report)
        self._metrics.observe(self.usage)

    def take(self, event: Event) -> None:
        """Take in what a watch brings."""
        if self.reader is not None:
            self._places.apply(event)

    def usage(self) -> Usage:
        """Return what is known now; nothing where nothing is read."""
        return self.reader.usage() if self.reader is not None else Usage()

    def report(self) -> bytes:
        """Return what is measured, as JSON for doctor."""
        if self.reader is None:
            return written(UsageReport(on=False))
        usage_report = report_of(self.reader, self._source, pressure=self._pressure)
        auto = self.predicting.report() if self.predicting is not None else None
        return written(msgspec.structs.replace(usage_report, auto=auto))

    def start(
        self, liveness: Liveness, stopped: threading.Event, recorder: EventRecorder, leads: Callable[[], bool]
    ) -> None:
        """Begin to look, in a thread of its own. Who leads writes an event where the use is not known any more."""
        if self.reader is None:
            return
        lease = self._lease

        def warn(problem: str) -> None:
            if leads():
                text = f"the use of nodes cannot be read, so no pod is started on what is idle: {problem}"
                recorder.warn_of_lease(lease.namespace, lease.name, "UsageUnknown", text, f"{time.time():.0f}")

        self._warn = warn
        liveness.start("usage", partial(self.reader.run, stopped))
        if self.predicting is not None:
            self.predicting.start(liveness, stopped)

    def note_look(self, kind: str) -> None:
        """Count a look."""
        self._metrics.looks.labels(kind).inc()

    def note_failure(self, problem: str) -> None:
        """Say that nothing is measured from now on."""
        self._warn(problem)


def measuring_of(
    settings: Settings, api: Api, registry: CollectorRegistry, backlog: Backlog, now: Callable[[], float]
) -> Measuring:
    """Return what reads the use: of opportunistic pods one by one; where any may start, of some regular ones too."""
    some = partial(sampled, backlog, now, settings.usage.window_seconds) if settings.opportunistic.enabled else None
    return Measuring(settings, api, registry, some)


def load_besides_pods_of(settings: Settings, measuring: Measuring, ledger: Ledger) -> LoadBesidesPods | None:
    """Return what has plans leave room for load that no pod accounts for; None where settings do not say so."""
    usage = settings.usage
    if not (usage.on and usage.avoid_load):
        return None
    return LoadBesidesPods(ledger, measuring.usage)


def _source(usage: UsageSettings, api: Api, places: Places, *, pressure: bool) -> Source:
    if usage.metrics_api:
        return MetricsApi(api, usage.stale_seconds, places.by_name)
    queries = Queries(usage.window_seconds, usage.node_labels, usage.matchers, usage.node_queries, usage.pod_queries)
    return Prometheus(Access(usage.url, usage.access), queries, usage.stale_seconds, pressure)
