"""What `dovetail control` exports."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from extender.adapters.metrics.at_scrape import AtScrape, labelled
from extender.adapters.metrics.locality import LocalityMetrics
from extender.adapters.metrics.watch_restarts import WatchRestarts

_HELD_BUCKETS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
_PLAN_BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3)


@dataclass(frozen=True, slots=True)
class ControlGauges:
    """What is read at each scrape: `queues` by name are share and fair share, `oldest` seconds of the oldest wait.

    `freed` pods left their nodes in `loaded_seconds`; `job_tasks` and `replicas` are medians, None: not known. `waits`
    for locality are in seconds, by level; `passed_over` are seconds, by queue; `kept_idle` is a part of the cluster.
    `ungated` are pods without a gate that wait for their turn, by reason.
    `holding` says whether new pods are held, `hold_changes` how often we changed that; None: not known, or not asked.
    """

    leads: bool
    ready: bool
    in_flight: int
    cache_age_seconds: Mapping[str, float]
    held: Mapping[str, int] = field(default_factory=dict)
    queues: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    oldest: Mapping[str, float] = field(default_factory=dict)
    nodes: int = 0
    freed: int = 0
    loaded_seconds: float = 0.0
    job_tasks: float | None = None
    replicas: float | None = None
    waits: Mapping[str, float] = field(default_factory=dict)
    passed_over: Mapping[str, float] = field(default_factory=dict)
    refused: int = 0
    kept_idle: float = 0.0
    holding: bool | None = None
    hold_changes: int | None = None
    ungated: Mapping[str, int] = field(default_factory=dict)


class ControlMetrics:
    """The registry of `control`, and what its loops count."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self._version = version
        self.releases = Counter(
            "dovetail_releases",
            "Pods released: nominated, room-for-all (filter chooses the node), completed (left by a predecessor), "
            "preempting, scale-up, opportunistic.",
            ("how",),
            registry=self.registry,
        )
        self.locality = LocalityMetrics(self.registry)
        self.reclaims = Counter(
            "dovetail_reclaims",
            "Pods evicted for a queue below its share, by which share it was: minimum-share, fair-share.",
            ("why",),
            registry=self.registry,
        )
        self.reclaims_in_vain = Counter(
            "dovetail_reclaims_in_vain",
            "Pods evicted whose room the pod did not use that it was made for: kube-scheduler refused it, it was gone, "
            "others took the room, or it took too long (refused, gone, taken, late).",
            ("why",),
            registry=self.registry,
        )
        self.held_seconds = Histogram(
            "dovetail_held_seconds",
            "Time from a pod's creation to its release; without the time that gates of others held it.",
            buckets=_HELD_BUCKETS,
            registry=self.registry,
        )
        self.plan_seconds = Histogram(
            "dovetail_plan_seconds",
            "Time of one step of the release loop: its plan, what it evicts, and what it releases.",
            buckets=_PLAN_BUCKETS,
            registry=self.registry,
        )
        self.wakeups = Counter(
            "dovetail_wakeups",
            "Pods that kube-scheduler was told to try again, as their turn had come (order: auto, filter).",
            registry=self.registry,
        )
        self.failures = Counter("dovetail_control_failures", "Steps of a loop that failed.", registry=self.registry)
        self.watch_restarts = WatchRestarts(self.registry)

    def observe(self, gauges: Callable[[], ControlGauges]) -> None:
        """Register what is read at each scrape."""
        self.registry.register(AtScrape(lambda: _collected(gauges(), self._version)))

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)


def _collected(now: ControlGauges, version: str) -> Iterator[Metric]:
    yield labelled("dovetail_build_info", "Always 1.", "version", {version: 1.0})
    yield GaugeMetricFamily("dovetail_ready", "1 once the caches are synced and not stale.", value=float(now.ready))
    yield GaugeMetricFamily("dovetail_leader", "1 on the replica that acts, 0 on others.", value=float(now.leads))
    yield GaugeMetricFamily(
        "dovetail_unbound_pods", "Pods released and not seen bound or refused yet.", value=now.in_flight
    )
    yield GaugeMetricFamily(
        "dovetail_refused_pods", "Pods released that kube-scheduler refuses, not nominated.", value=now.refused
    )
    yield GaugeMetricFamily(
        "dovetail_reserved_idle_ratio",
        "The part of the cluster that has room and is reserved, by the resource of which it is most.",
        value=now.kept_idle,
    )
    yield labelled(
        "dovetail_cache_age_seconds", "Time since the watch last said anything.", "resource", now.cache_age_seconds
    )
    yield labelled(
        "dovetail_held_pods", "Pods that our gate holds, or gates of others (gates), by reason.", "reason", now.held
    )
    if now.ungated:
        text = "Pods without a gate that wait for their turn, by reason; with order: gates, those that were refused."
        yield labelled("dovetail_ungated_pods", text, "reason", now.ungated)
    yield labelled(
        "dovetail_queue_share",
        "Dominant share of a queue with pods.",
        "queue",
        {name: share for name, (share, _) in now.queues.items()},
    )
    yield labelled(
        "dovetail_queue_fair_share",
        "Fair share of a queue with pods, among those that have any.",
        "queue",
        {name: fair for name, (_, fair) in now.queues.items()},
    )
    yield labelled(
        "dovetail_oldest_wait_seconds",
        "Time since a queue's oldest pod that is held, or refused without a gate, was created or lost gates of others.",
        "queue",
        now.oldest,
    )
    yield labelled(
        "dovetail_queue_passed_over_seconds",
        "For how long a queue has waited below its share while room that it could have used went to others.",
        "queue",
        now.passed_over,
    )
    yield from _holding(now)
    yield from _load(now)


def _holding(now: ControlGauges) -> Iterator[Metric]:
    """Yield whether new pods are held, where that may change."""
    if now.holding is not None:
        text = "1 while new pods get our gate, 0 while they pass (order: auto)."
        yield GaugeMetricFamily("dovetail_new_pods_held", text, value=float(now.holding))
    if now.hold_changes is not None:
        text = "How often this replica has changed whether new pods are held (order: auto)."
        yield CounterMetricFamily("dovetail_hold_changes", text, value=now.hold_changes)


def _load(now: ControlGauges) -> Iterator[Metric]:
    """Yield what equation 2 of delay scheduling needs of a cluster, and the waits in force."""
    yield GaugeMetricFamily("dovetail_nodes", "Nodes that are not cordoned.", value=now.nodes)
    yield CounterMetricFamily(
        "dovetail_room_freed", "Pods of ours that left their nodes while others waited for room.", value=now.freed
    )
    yield CounterMetricFamily(
        "dovetail_loaded_seconds", "Time in which pods of ours waited for room.", value=now.loaded_seconds
    )
    for name, text, value in (
        ("dovetail_locality_job_tasks", "Median tasks with inputs of a waiting job that has any.", now.job_tasks),
        ("dovetail_locality_replicas", "Median nodes that hold the input of a waiting pod.", now.replicas),
    ):
        if value is not None:
            yield GaugeMetricFamily(name, text, value=value)
    yield labelled(
        "dovetail_locality_wait_in_force_seconds",
        "For how long a job may be passed over at a level: of settings, the first by locality.target if it is set.",
        "level",
        now.waits,
    )
