"""What filter answers pods that wait for room near their input: n1, n3 are free, n2 is full; the wait is 5 s."""

from extender.control.filter_order.order import LOCALITY_WAITS
from tests.service.control.filter_order.asked import Asked
from tests.service.control.locality.test_locality import WAITS, full, reader
from tests.service.control.scene import node


def asked_of(*pods, **options):
    asked = Asked(node("n1"), node("n2"), node("n3"), policy=WAITS, **options)
    asked.see(full("n2"), *pods)
    return asked


def scan(name, *nodes):
    return reader(name, *nodes, job="scan", gates=())


def test_a_pod_that_waits_is_told_the_same_before_and_after_another_of_its_class_has_started():
    asked = asked_of(scan("p1", "n1"), scan("p2", "n2"))
    assert asked.ask("p2") == LOCALITY_WAITS
    assert asked.ask("p1") == "n1"
    assert asked.ask("p2") == LOCALITY_WAITS
    asked.bind("p1", "n1")
    assert asked.ask("p2") == LOCALITY_WAITS


def test_a_pod_whose_wait_is_over_passes_although_the_plan_that_refused_it_is_young():
    asked = asked_of(scan("p2", "n2"), plan_seconds=60.0)
    assert asked.ask("p2") == LOCALITY_WAITS
    asked.now += 4.9
    assert asked.ask("p2") == LOCALITY_WAITS
    assert asked.plans == 1
    asked.now += 0.1
    assert asked.ask("p2") in ("n1", "n3")
    assert asked.plans == 2


def test_a_pod_that_passes_twice_is_counted_once():
    asked = asked_of(scan("p1", "n1"))
    assert [asked.ask("p1"), asked.ask("p1")] == ["n1", "n1"]  # others refused it in between
    assert asked.placed == ["node"]
    asked.now += 1.0  # a new plan
    assert asked.ask("p1") == "n1"
    assert asked.placed == ["node"]


def test_one_that_passes_elsewhere_the_second_time_was_counted_where_it_passed_first():
    asked = asked_of(scan("p1", "n1", "n3"))
    first = asked.ask("p1")
    asked.see(full(first))
    asked.now += 1.0
    assert asked.ask("p1") != first
    assert asked.placed == ["node"]
