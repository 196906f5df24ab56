from prometheus_client import CollectorRegistry

from extender.adapters.metrics.opportunistic import OpportunisticMetrics
from extender.cluster.model import Pod

POD = Pod("uid-p", "default", "p", {})


def test_evictions_are_counted_by_resource_and_those_that_only_would_have_been_apart():
    registry = CollectorRegistry()
    metrics = OpportunisticMetrics(registry)
    metrics.note_preemption(POD, "memory", dry_run=False)
    metrics.note_preemption(POD, "memory", dry_run=True)
    metrics.note_preemption(POD, "memory", dry_run=True)
    counts = [
        registry.get_sample_value("dovetail_preemptions_total", {"resource": "memory", "dry": dry})
        for dry in ("false", "true")
    ]
    assert counts == [1, 2]


def test_promotions_are_counted():
    registry = CollectorRegistry()
    OpportunisticMetrics(registry).note_promotion(POD)
    assert registry.get_sample_value("dovetail_promotions_total") == 1
