"""What we export."""

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from extender.adapters.metrics.serve import ServeGauges, ServeMetrics
from extender.cluster.events import NodesListed, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod


@pytest.fixture
def metrics():
    ledger = Ledger(in_flight_seconds=15)
    ledger.apply(
        NodesListed(
            [
                Node("a", {"cpu": 4000.0, "memory": 1024.0, "network-in": 100.0}),
                Node("b", {"cpu": 500.0, "memory": 1024.0, "a.b/gpu": 2.0}),
            ]
        )
    )
    ledger.apply(PodSeen(Pod("p", "d", "p", {"cpu": 250.0, "network-in": 130.0}, node="a")))
    ledger.apply(PodSeen(Pod("q", "d", "q", {"cpu": 500.0, "network-in": 70.0}, node="b")))
    metrics = ServeMetrics("1.2.3")
    metrics.observe(
        lambda: ServeGauges(
            snapshot=ledger.snapshot(0),
            pods={"holding": 2, "waiting_or_finished": 0, "in_flight": 1},
            cache_age_seconds={"nodes": 1.5, "pods": float("inf")},
            ready=True,
        )
    )
    metrics.request_seconds.labels("filter", "ok").observe(0.003)
    metrics.wait_seconds.observe(0.1)
    metrics.refusals.labels("insufficient cpu").inc(2)
    metrics.watch_restarts.count("pods", "expired")
    metrics.broken_annotations.labels("Pod").inc()
    return metrics


@pytest.fixture
def families(metrics):
    return {family.name: family for family in text_string_to_metric_families(metrics.text().decode())}


def values(family):
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def test_every_name_has_our_prefix_and_a_help_text(families):
    assert [name for name in families if not name.startswith("dovetail_")] == []
    helpless = [f.name for f in families.values() if not f.documentation and not f.name.endswith("_created")]
    assert helpless == []


def test_amounts_are_in_base_units_and_cpu_in_cores(families):
    offered = values(families["dovetail_allocatable"])
    assert offered[("cpu",)] == 4.5  # (4000 + 500) / 1000
    assert offered[("memory",)] == 2048
    assert offered[("network-in",)] == 100
    assert offered[("a.b/gpu",)] == 2
    assert offered[("disk-read",)] == 0


def test_allocation_counts_only_where_the_dimension_is_limited(families):
    held = values(families["dovetail_allocated"])
    assert held[("cpu",)] == 0.75  # (250 + 500) / 1000
    assert held[("network-in",)] == 130  # not the 70 on b, which declares no limit


def test_nodes_with_more_allocated_than_they_offer_are_counted(families):
    over = values(families["dovetail_overallocated_nodes"])
    assert over[("network-in",)] == 1
    assert over[("cpu",)] == 0  # 500 of 500 is full, not over


def test_the_state_of_the_cache_is_told(families):
    assert values(families["dovetail_nodes"]) == {(): 2}
    assert values(families["dovetail_pods"]) == {("holding",): 2, ("waiting_or_finished",): 0, ("in_flight",): 1}
    assert values(families["dovetail_cache_age_seconds"]) == {("nodes",): 1.5, ("pods",): np.inf}
    assert values(families["dovetail_ready"]) == {(): 1}
    assert values(families["dovetail_build_info"]) == {("1.2.3",): 1}


def test_requests_and_refusals_are_counted(families):
    assert values(families["dovetail_refusals"])[("insufficient cpu",)] == 2
    assert values(families["dovetail_watch_restarts"])[("expired", "pods")] == 1  # by cause, resource
    assert values(families["dovetail_broken_annotations"])[("Pod",)] == 1
    counted = {s.name: s.value for s in families["dovetail_request_duration_seconds"].samples}
    assert counted["dovetail_request_duration_seconds_count"] == 1
    assert counted["dovetail_request_duration_seconds_sum"] == 0.003


def test_no_label_names_a_pod_or_a_node(families):
    labels = {label for f in families.values() for sample in f.samples for label in sample.labels}
    assert labels == {"verb", "result", "le", "reason", "resource", "cause", "kind", "state", "dimension", "version"}


def test_two_sets_of_metrics_do_not_meet():
    assert ServeMetrics("1").registry is not ServeMetrics("1").registry
