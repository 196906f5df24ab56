"""Kubernetes' rules for a pod's requests; the numbers of most cases are those of component-helpers' own tests."""

import pytest

from extender.cluster.model import CapacityRule, io_capacity
from extender.cluster.pods.demand import Container, PodResources, declared, requested
from extender.errors import BadAnnotation


def cpu(amount):
    return {"cpu": float(amount)}


def box(amount, reported=None):
    return Container(cpu(amount), None if reported is None else cpu(reported))


def sidecar(amount, reported=None):
    return Container(cpu(amount), None if reported is None else cpu(reported), sidecar=True)


@pytest.mark.parametrize(
    ("init", "main", "cpus"),
    [
        pytest.param([], [], None, id="no container asks for nothing"),
        pytest.param([], [2, 3], 5, id="containers add up: 2 + 3"),
        pytest.param([4], [1], 4, id="a larger init container counts alone: max(4, 1)"),
        pytest.param([2], [2, 3], 5, id="a smaller init container does not count: max(2, 2 + 3)"),
        pytest.param([9, 4], [1], 9, id="init containers run one after the other: max(9, 4, 1)"),
    ],
)
def test_init_containers_count_where_they_are_larger(init, main, cpus):
    pod = PodResources([box(n) for n in main], [box(n) for n in init])
    assert requested(pod) == ({} if cpus is None else cpu(cpus))


@pytest.mark.parametrize(
    ("init", "main", "cpus"),
    [
        pytest.param([sidecar(1)], [1], 2, id="a sidecar runs beside the containers: 1 + 1"),
        pytest.param([box(5), sidecar(1), sidecar(2), sidecar(3)], [1], 7, id="max(5, 1 + 2 + 3 + 1)"),
        pytest.param(
            [box(5), sidecar(1), sidecar(2), box(5), sidecar(3)], [1], 8, id="only earlier sidecars: 1 + 2 + 5"
        ),
        pytest.param([sidecar(10), box(200)], [100], 210, id="max(10 + 200, 10 + 100)"),
        pytest.param([sidecar(8), box(6)], [9], 17, id="max(8 + 6, 8 + 9)"),
        pytest.param([box(200), sidecar(10)], [100], 200, id="a later sidecar is not there yet: max(200, 10 + 100)"),
    ],
)
def test_a_sidecar_counts_from_its_start_on(init, main, cpus):
    assert requested(PodResources([box(n) for n in main], init)) == cpu(cpus)


def test_each_dimension_has_its_own_largest_moment():
    pod = PodResources(
        [Container({"cpu": 100.0, "memory": 10.0})],
        [Container({"cpu": 50.0, "memory": 40.0, "a.b/gpu": 1.0})],
    )
    assert requested(pod) == {"cpu": 100, "memory": 40, "a.b/gpu": 1}


def test_overhead_comes_on_top_of_whatever_counts():
    pod = PodResources([box(2), box(3)], [box(2)], overhead={"cpu": 1.0, "memory": 1024.0})
    assert requested(pod) == {"cpu": 6, "memory": 1024}
    assert requested(PodResources([box(1)], [box(4)], overhead=cpu(1))) == cpu(5)


def test_pod_level_cpu_and_memory_replace_the_sum_also_downward():
    pod = PodResources([Container({"cpu": 2.0, "memory": 3.0, "a.b/gpu": 1.0})], pod_level={"cpu": 18.0})
    assert requested(pod) == {"cpu": 18, "memory": 3, "a.b/gpu": 1}
    assert requested(PodResources([box(9)], pod_level=cpu(4), overhead=cpu(1))) == cpu(5)


def test_extended_resources_at_the_pod_level_are_not_supported_and_ignored():
    assert requested(PodResources([box(2)], pod_level={"a.b/gpu": 4.0})) == cpu(2)


@pytest.mark.parametrize(
    ("spec", "reported", "infeasible", "cpus"),
    [
        pytest.param(4, 2, False, 4, id="growing: the larger spec counts already"),
        pytest.param(2, 4, False, 4, id="shrinking: what is still held counts"),
        pytest.param(4, 2, True, 2, id="infeasible: the spec will not happen"),
        pytest.param(2, 4, True, 4, id="infeasible: what is held counts"),
        pytest.param(0, 2, False, 2, id="demoted to zero but not yet actuated"),
        pytest.param(4, None, True, 4, id="nothing reported yet"),
    ],
)
@pytest.mark.parametrize("level", ["container", "sidecar", "pod"])
def test_a_resize_never_frees_what_is_still_held(level, spec, reported, infeasible, cpus):
    pod = {
        "container": PodResources([box(spec, reported)], resize_infeasible=infeasible),
        "sidecar": PodResources([], [sidecar(spec, reported)], resize_infeasible=infeasible),
        "pod": PodResources(
            [box(1)],
            pod_level=cpu(spec),
            pod_level_reported=None if reported is None else cpu(reported),
            resize_infeasible=infeasible,
        ),
    }[level]
    assert requested(pod) == cpu(cpus)


def test_what_a_plain_init_container_reports_does_not_count():
    assert requested(PodResources([box(1)], [box(4, reported=9)])) == cpu(4)


def test_at_the_pod_level_an_infeasible_resize_of_what_was_not_there_counts_nothing():
    pod = PodResources([box(3)], pod_level=cpu(4), pod_level_reported={"memory": 1.0}, resize_infeasible=True)
    assert requested(pod) == cpu(0)


def test_counting_changes_none_of_its_arguments():
    spec = {"cpu": 1.0}
    requested(PodResources([Container(spec), Container(spec)], [Container(spec, sidecar=True)], pod_level={"cpu": 9.0}))
    assert spec == {"cpu": 1.0}


def test_rates_are_declared_in_bytes_per_second():
    assert declared(None) == {}
    assert declared("{}") == {}
    assert declared('{"disk-read": "1Ki", "network-in": "2M", "network-out": 5, "disk-write": 0.5}') == {
        "disk-read": 1024,
        "network-in": 2_000_000,
        "network-out": 5,
        "disk-write": 1,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fast",
        "[]",
        "null",
        '{"disk-read": "1Ki"',
        '{"disk-read": null}',
        '{"disk-read": true}',
        '{"disk-read": {"a": 1}}',
        '{"disk-read": "-1"}',
        '{"cpu": "1"}',
        '{"disk-read": 1e400}',
        "[" * 1_000,
        '{"disk-read":' + "[" * 1_000,
    ],
)
def test_a_broken_annotation_is_named_with_what_is_accepted_and_that_once(text):
    with pytest.raises(BadAnnotation, match=r"^annotation dovetail\.dev/demand: ") as raised:
        declared(text)
    assert str(raised.value).count("; accepted: ") == 1


def test_a_node_takes_the_first_matching_rule_and_its_annotation_overrides_it():
    rules = [
        CapacityRule({"disk": "ssd", "zone": "a"}, {"disk-read": 1.0}),
        CapacityRule({"disk": "ssd"}, {"disk-read": 2.0, "network-in": 7.0}),
        CapacityRule({}, {"disk-read": 3.0}),
    ]
    assert io_capacity({"disk": "ssd", "zone": "a"}, None, rules) == {"disk-read": 1}
    assert io_capacity({"disk": "ssd", "zone": "b"}, '{"disk-read": 9}', rules) == {"disk-read": 9, "network-in": 7}
    assert io_capacity({}, None, rules) == {"disk-read": 3}
    assert io_capacity({}, None, rules[:2]) == {}
    with pytest.raises(BadAnnotation, match=r"dovetail\.dev/capacity"):
        io_capacity({}, "x", rules)
