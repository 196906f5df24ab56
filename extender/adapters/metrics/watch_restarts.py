"""How often watches had to be opened again: one metric of `serve` and of `control`."""

from prometheus_client import CollectorRegistry, Counter


class WatchRestarts:
    """Counts what ended watches."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._restarts = Counter(
            "dovetail_watch_restarts",
            "Watches that had to be opened again: ended, expired (410 Gone), failed, garbled.",
            ("resource", "cause"),
            registry=registry,
        )

    def count(self, resource: str, cause: str) -> None:
        """Count that the watch of a resource ended, by what ended it."""
        self._restarts.labels(resource, cause).inc()
