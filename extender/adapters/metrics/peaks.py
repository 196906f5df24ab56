"""What is predicted of peaks where `opportunistic.threshold` is `auto`: no series is of a single node or pod."""

import math
from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Gauge

from extender.adapters.usage.report import AutoReport
from extender.cluster.resources import CPU, MEMORY

_UNITS = {CPU: 1000.0, MEMORY: 1.0}


class PeakMetrics:
    """Shows N, and the room that the predicted peaks leave."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sigmas = Gauge(
            "dovetail_peak_sigmas",
            "N of predicted peaks: how many standard deviations above the mean they are. Evictions lead it.",
            registry=registry,
        )
        self._nodes = Gauge(
            "dovetail_peak_nodes",
            "Nodes whose peak is predicted: by a history as long as the warm-up (long), or by a shorter one or none.",
            ("history",),
            registry=registry,
        )
        self._room = Gauge(
            "dovetail_peak_room",
            "What the predicted peaks leave of all nodes, up to where pods are evicted: cores, and bytes.",
            ("resource",),
            registry=registry,
        )

    def observe(self, report: Callable[[], AutoReport]) -> None:
        """Show what is predicted at each scrape."""

        def sigmas() -> float:
            known = report().sigmas
            return math.nan if known is None else known

        self._sigmas.set_function(sigmas)
        self._nodes.labels("long").set_function(lambda: report().known)
        self._nodes.labels("short").set_function(lambda: report().nodes - report().known)
        for name in _UNITS:
            self._room.labels(name).set_function(partial(_room, report, name))


def _room(report: Callable[[], AutoReport], name: str) -> float:
    return report().room.get(name, 0.0) / _UNITS[name]
