"""How well the use of nodes is measured: counted by `control`. No series is of a single node or pod."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from extender.cluster.usage import Usage


class UsageMetrics:
    """Counts looks, and shows of how many nodes the use is known."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.looks = Counter(
            "dovetail_usage_looks",
            "Looks at the use of the cluster: ok, or of what kind the failure was.",
            ("result",),
            registry=registry,
        )
        self._nodes = Gauge(
            "dovetail_usage_nodes",
            "Nodes whose use is known (measured), and those whose measurements cannot be trusted (problem).",
            ("state",),
            registry=registry,
        )

    def observe(self, usage: Callable[[], Usage]) -> None:
        """Show what is known at each scrape."""
        self._nodes.labels("measured").set_function(lambda: len(usage().nodes))
        self._nodes.labels("problem").set_function(lambda: len(usage().problems))
