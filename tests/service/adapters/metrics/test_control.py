"""What `dovetail control` exports of its load, as a parser of Prometheus' text reads it."""

from prometheus_client.parser import text_string_to_metric_families

from extender.adapters.metrics.control import ControlGauges, ControlMetrics


def families(**seen):
    metrics = ControlMetrics("1.2.3")
    metrics.observe(lambda: ControlGauges(leads=True, ready=True, in_flight=0, cache_age_seconds={}, **seen))
    return {family.name: family for family in text_string_to_metric_families(metrics.text().decode())}


def value(found, family, sample=""):
    (only,) = found[family].samples
    assert only.name == (sample or family)
    return only.value


def test_room_that_freed_up_and_the_time_under_load_are_counters():
    found = families(freed=54, loaded_seconds=2.0)
    assert found["dovetail_room_freed"].type == found["dovetail_loaded_seconds"].type == "counter"
    assert value(found, "dovetail_room_freed", "dovetail_room_freed_total") == 54
    assert value(found, "dovetail_loaded_seconds", "dovetail_loaded_seconds_total") == 2.0


def test_counters_are_there_before_any_load():
    assert value(families(), "dovetail_loaded_seconds", "dovetail_loaded_seconds_total") == 0


def test_the_typical_job_is_told_only_where_it_is_known():
    found = families(nodes=620, job_tasks=10.0, replicas=3.0)
    assert value(found, "dovetail_nodes") == 620
    assert value(found, "dovetail_locality_job_tasks") == 10
    assert value(found, "dovetail_locality_replicas") == 3
    assert {"dovetail_locality_job_tasks", "dovetail_locality_replicas"}.isdisjoint(families())


def test_how_long_queues_are_passed_over_is_told_by_queue():
    found = families(passed_over={"poor": 61.0, "rich": 0.0})["dovetail_queue_passed_over_seconds"]
    assert {it.labels["queue"]: it.value for it in found.samples} == {"poor": 61.0, "rich": 0.0}


def test_how_much_is_free_and_reserved_is_told():
    assert value(families(kept_idle=0.04), "dovetail_reserved_idle_ratio") == 0.04


def test_whether_new_pods_are_held_is_told_where_that_may_change():
    found = families(holding=True, hold_changes=3)
    assert value(found, "dovetail_new_pods_held") == 1
    assert value(found, "dovetail_hold_changes", "dovetail_hold_changes_total") == 3
    assert value(families(holding=False), "dovetail_new_pods_held") == 0
    assert {"dovetail_new_pods_held", "dovetail_hold_changes"}.isdisjoint(families())


def test_pods_without_a_gate_are_told_by_reason_where_they_wait_for_their_turn():
    found = families(ungated={"no-room": 3, "turn": 0})["dovetail_ungated_pods"]
    assert {it.labels["reason"]: it.value for it in found.samples} == {"no-room": 3, "turn": 0}
    assert "dovetail_ungated_pods" not in families()


def test_the_waits_in_force_are_told_by_level():
    found = families(waits={"node": 0.6, "rack": 5.0})["dovetail_locality_wait_in_force_seconds"]
    assert {it.labels["level"]: it.value for it in found.samples} == {"node": 0.6, "rack": 5.0}
