"""How near to their inputs pods start, as it is counted."""

from prometheus_client import CollectorRegistry

from extender.adapters.metrics.locality import LocalityMetrics


def test_a_start_counts_at_its_level_and_its_wait_where_that_is_known():
    registry = CollectorRegistry()
    metrics = LocalityMetrics(registry)
    for level, passed_over in (("node", 0.0), ("node", None), ("rack", 5.0)):
        metrics.count(level, passed_over)
    assert registry.get_sample_value("dovetail_placements_total", {"level": "node"}) == 2
    assert registry.get_sample_value("dovetail_placements_total", {"level": "rack"}) == 1
    # Of three starts two are known to have waited, 0 + 5 s.
    assert registry.get_sample_value("dovetail_locality_wait_seconds_count") == 2
    assert registry.get_sample_value("dovetail_locality_wait_seconds_sum") == 5
