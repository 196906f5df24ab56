"""How near to their inputs pods are placed: counted by whoever keeps the order, `control` or `filter`."""

from prometheus_client import CollectorRegistry, Counter, Histogram

_BUCKETS = (0.001, 0.1, 0.3, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300)


class LocalityMetrics:
    """Counts placements of pods that have preferred nodes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._placements = Counter(
            "dovetail_placements",
            "Pods with preferred nodes that got a node, by how near: node, a level of settings, or anywhere.",
            ("level",),
            registry=registry,
        )
        self._waited = Histogram(
            "dovetail_locality_wait_seconds",
            "Time for which a pod's job had been passed over for locality when the pod got a node, if that is known.",
            buckets=_BUCKETS,
            registry=registry,
        )

    def count(self, level: str, passed_over: float | None) -> None:
        """Count a pod that got a node at this level; its job was passed over for so many seconds, None: unknown."""
        self._placements.labels(level).inc()
        if passed_over is not None:
            self._waited.observe(passed_over)
