"""What `control` exports of pods on idle room."""

from prometheus_client import CollectorRegistry, Counter

from extender.cluster.model import Pod


class OpportunisticMetrics:
    """Counts evictions and promotions; called from any thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._preemptions = Counter(
            "dovetail_preemptions",
            "Opportunistic pods evicted, by what their node was short of: its use passed a limit, they kept a regular "
            "pod out, or they got next to no CPU; dry: they would have been.",
            ("resource", "dry"),
            registry=registry,
        )
        self._promotions = Counter(
            "dovetail_promotions", "Opportunistic pods that became regular in place.", registry=registry
        )

    def note_preemption(self, victim: Pod, resource: str, *, dry_run: bool) -> None:  # noqa: ARG002 - the port
        """Count an eviction."""
        self._preemptions.labels(resource, str(dry_run).lower()).inc()

    def note_promotion(self, pod: Pod) -> None:  # noqa: ARG002 - the port's signature
        """Count a promotion."""
        self._promotions.inc()
