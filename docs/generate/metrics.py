"""The reference of the metrics: names, types, labels and help from the registries, the rest from metrics.yaml."""

from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry

from extender.adapters.metrics.control import ControlGauges, ControlMetrics
from extender.adapters.metrics.opportunistic import OpportunisticMetrics
from extender.adapters.metrics.peaks import PeakMetrics
from extender.adapters.metrics.serve import ServeGauges, ServeMetrics
from extender.adapters.metrics.usage import UsageMetrics
from extender.cluster.ledger.ledger import Ledger

_HEAD = """# Metrics

Written by `python -m docs.generate` from `extender/adapters/metrics/`: do not edit it here.

`serve` and `control` answer at `/metrics` in Prometheus' text format. `/livez` and `/readyz` are for probes; ready
means that the caches are synced. [Monitoring](../guide/monitoring.md) says how to scrape them, and has alerts.
"""

_CONTROL = """Metrics of queues name at most 200 queues: those that settings declare first, then those with most pods.
The figures of queues and of held pods come from the leader only. They are from a second, whole plan with reasons, made
in a thread of its own at most once a second and for at most a twentieth of the time. On a full cluster one look
took 0.03 to 0.04 s at 1,000 nodes and 100 classes, and 0.8 to 1.4 s at 5,000 nodes and 1,000 classes (10,000 pods; two
noisy cores): there the metrics are up to half a minute old.
"""

_VALUES: dict[str, str] = yaml.safe_load((Path(__file__).parent / "metrics.yaml").read_text())["metrics"]


def metrics_page() -> str:
    """Return the page. Raises ValueError where metrics.yaml says something of a metric that is not there."""
    serve, control = ServeMetrics("0"), ControlMetrics("0")
    serve.observe(lambda: ServeGauges(Ledger(in_flight_seconds=1.0).snapshot(0), {}, {}, True))
    known = {"job_tasks": 1.0, "replicas": 1.0, "holding": True, "hold_changes": 0, "ungated": {"": 0}}
    control.observe(lambda: ControlGauges(True, True, 0, {}, **known))
    UsageMetrics(control.registry)
    PeakMetrics(control.registry)
    OpportunisticMetrics(control.registry)
    names = {family.name for registry in (serve.registry, control.registry) for family in registry.collect()}
    if unused := _VALUES.keys() - names:
        raise ValueError(f"no such metric: {', '.join(sorted(unused))}")
    return "\n".join(
        [
            _HEAD,
            f"## `dovetail serve`\n\n{_table(serve.registry)}",
            f"## `dovetail control`\n\n{_CONTROL}\n{_table(control.registry)}",
        ]
    )


def _table(registry: CollectorRegistry) -> str:
    rows = ["| metric | type | labels | |", "|---|---|---|---|"]
    for family in sorted(_families(registry), key=lambda family: str(family.name)):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in _labels(registry, family))
        values = _VALUES.get(family.name, "")
        text = f"{family.documentation} {values[:1].upper()}{values[1:]}.".replace(" .", "").strip()
        rows.append(f"| `{name}` | {family.type} | {labels} | {text} |")
    return "\n".join(rows) + "\n"


def _families(registry: CollectorRegistry) -> list[Any]:
    return list(registry.collect())


def _labels(registry: CollectorRegistry, family: Any) -> tuple[str, ...]:  # noqa: ANN401 - prometheus_client has no type
    """Return the names of a metric's labels; the client keeps them where only it looks."""
    collector = registry._names_to_collectors.get(family.name)
    return tuple(getattr(family, "_labelnames", ()) or getattr(collector, "_labelnames", ()))
