"""What we export: prefix `dovetail_`, base units, labels with few values."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from extender.adapters.metrics.at_scrape import AtScrape, labelled
from extender.adapters.metrics.locality import LocalityMetrics
from extender.adapters.metrics.watch_restarts import WatchRestarts
from extender.cluster.ledger.layout import UNADVERTISED
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import CPU

_BUCKETS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2, 4)
_NODES = (1, 10, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


@dataclass(frozen=True, slots=True)
class ServeGauges:
    """What is read at each scrape."""

    snapshot: Snapshot
    pods: Mapping[str, int]
    cache_age_seconds: Mapping[str, float]
    ready: bool


class ServeMetrics:
    """The service's own registry, and what the verbs count."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self._version = version
        self.request_seconds = Histogram(
            "dovetail_request_duration_seconds",
            "Time to answer kube-scheduler, without reading and writing the connection.",
            ("verb", "result"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.wait_seconds = Histogram(
            "dovetail_filter_wait_seconds",
            "Time to judge a pod that some node may take, with what it waited for pods in flight and for its turn.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.plan_seconds = Histogram(
            "dovetail_plan_seconds",
            "Time to make one plan of whose turn it is (order: auto, filter).",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.plan_failures = Counter(
            "dovetail_plan_failures",
            "Plans that ended in an error (order: auto, filter); filter goes on by the last one.",
            registry=self.registry,
        )
        self.filter_nodes = Histogram(
            "dovetail_filter_nodes",
            "Nodes that one filter call asked about: 1 for a nominated node, else kube-scheduler's sample.",
            buckets=_NODES,
            registry=self.registry,
        )
        self.locality = LocalityMetrics(self.registry)
        self.refusals = Counter(
            "dovetail_refusals", "Nodes refused to a pod, by reason.", ("reason",), registry=self.registry
        )
        self.choices = Counter(
            "dovetail_choices",
            "Pods that several nodes would take: chosen by filter, or left to kube-scheduler's scores, by why.",
            ("by",),
            registry=self.registry,
        )
        self.watch_restarts = WatchRestarts(self.registry)
        self.broken_annotations = Counter(
            "dovetail_broken_annotations",
            "Warnings of broken annotations, one for each owner of pods or each node.",
            ("kind",),
            registry=self.registry,
        )

    def count_broken_annotation(self, kind: str) -> None:
        """Count a warning about an object of this kind."""
        self.broken_annotations.labels(kind).inc()

    def observe(self, gauges: Callable[[], ServeGauges]) -> None:
        """Register what is read at each scrape."""
        self.registry.register(AtScrape(lambda: _collected(gauges(), self._version)))

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)


def _collected(now: ServeGauges, version: str) -> Iterator[Metric]:
    yield labelled("dovetail_build_info", "Always 1.", "version", {version: 1.0})
    yield GaugeMetricFamily("dovetail_ready", "1 once the caches are synced and not stale.", value=float(now.ready))
    yield labelled(
        "dovetail_cache_age_seconds", "Time since the watch last said anything.", "resource", now.cache_age_seconds
    )
    yield GaugeMetricFamily("dovetail_nodes", "Nodes in the cache.", value=len(now.snapshot.layout.names))
    yield labelled("dovetail_pods", "Pods in the cache, by state.", "state", now.pods)
    yield from _sums(now.snapshot)


def _sums(snapshot: Snapshot) -> Iterator[Metric]:
    layout = snapshot.layout
    scale = np.array([1000.0 if name == CPU else 1.0 for name in layout.axis])
    limited = np.isfinite(layout.capacity)
    offered = np.where(limited, layout.capacity, 0.0).sum(axis=0) / scale
    held = np.where(limited, snapshot.allocated, 0.0).sum(axis=0) / scale
    over = (limited & (snapshot.allocated > layout.capacity)).sum(axis=0)
    for name, text, values in (
        ("dovetail_allocatable", "Offered by the nodes that declare it (cores, bytes, bytes per second).", offered),
        ("dovetail_allocated", "Allocated on the nodes that declare it (cores, bytes, bytes per second).", held),
        ("dovetail_overallocated_nodes", "Nodes with more allocated than they offer.", over),
    ):
        by_name = dict(zip(layout.axis, map(float, values), strict=True))
        by_name.pop(UNADVERTISED, None)
        yield labelled(name, text, "dimension", by_name)
