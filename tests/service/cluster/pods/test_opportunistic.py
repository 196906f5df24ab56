"""Regular or opportunistic, and what a pod needs whatever its spec requests now."""

import pytest

from extender.cluster.pods.demand import Container, PodResources
from extender.cluster.pods.limits import LONGEST_REQUESTS
from extender.cluster.pods.opportunistic import (
    ALLOWED,
    NEVER,
    ONLY,
    RegularRequests,
    chosen,
    demoted,
    outright,
    regular_requests,
)
from extender.errors import BadAnnotation

GPU = "a.b/gpu"
TWO_CORES = RegularRequests(containers={"main": {"cpu": "2", "memory": "1Ki"}})
NEEDS = {"cpu": 2000.0, "memory": 1024.0}


def main(reported=None, **requests):
    return Container(requests, reported, name="main")


# -- the annotation


def test_what_is_written_is_read_back():
    requests = RegularRequests(
        containers={"main": {"cpu": "1500m", "memory": "4Gi"}, "side": {"cpu": "1"}},
        init_containers={"load": {"memory": "8Gi"}},
        pod={"cpu": "3"},
        limited=("main",),
    )
    assert regular_requests(requests.written()) == requests


def test_the_text_is_compact():
    assert TWO_CORES.written() == '{"containers":{"main":{"cpu":"2","memory":"1Ki"}}}'


def test_without_the_annotation_nothing_is_said():
    assert regular_requests(None) is None
    assert chosen(None) is None


def test_a_request_may_be_as_large_as_any():
    """9 TiB is 9.9e12 bytes: more than 2**53 / 1000, and less than 2**53."""
    assert regular_requests('{"pod": {"memory": "9Ti"}}').pod == {"memory": "9Ti"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`"),
        ("{}", "no request in it"),
        ('{"containers": {"main": {}}}', "no request in it"),
        ('{"containers": {"main": {"cpu": "0"}}}', "a request of 0"),
        ('{"containers": {"main": {"cpu": "-1"}}}', "negative"),
        ('{"containers": {"main": {"cpu": "lots"}}}', "not a quantity"),
        ('{"containers": {"main": {"cpu": 2}}}', "Expected `str`"),
        ('{"containers": {"main": {"a.b/gpu": "1"}}}', "a.b/gpu"),
        ('{"containers": {"main": {"cpu": "' + "9" * 65 + '"}}}', "65 characters"),
        ('{"container": {"main": {"cpu": "1"}}}', "unknown field"),
        ('{"pod": {"cpu": "1"}, "limited": "main"}', "Expected `array`"),
        ('{"containers":' * 2000, ""),
        ("[" * LONGEST_REQUESTS, ""),
        ('{"pod": {"cpu": "1"}}' + " " * LONGEST_REQUESTS, "accepted: at most 16384"),
    ],
)
def test_what_is_not_its_form_exactly_is_broken(text, problem):
    with pytest.raises(BadAnnotation, match=r"annotation dovetail\.dev/regular-requests: ") as raised:
        regular_requests(text)
    assert problem in str(raised.value)
    assert str(raised.value).count("accepted: ") == 1


@pytest.mark.parametrize("part", ["containers", "initContainers"])
def test_it_names_no_container_that_the_pod_does_not_have(part):
    pod = PodResources([main()], [Container({}, name="load")])
    there = {"containers": "main", "initContainers": "load"}[part]
    assert regular_requests(f'{{"{part}": {{"{there}": {{"cpu": "1"}}}}}}', pod) is not None
    with pytest.raises(BadAnnotation, match="no container 'other'"):
        regular_requests(f'{{"{part}": {{"other": {{"cpu": "1"}}}}}}', pod)


def test_what_is_too_long_to_be_read_back_is_not_written():
    long = RegularRequests(containers={f"container-{number}": {"cpu": "100m"} for number in range(1000)})
    with pytest.raises(BadAnnotation, match="at most 16384"):
        long.written()


def test_a_choice_is_one_of_three():
    assert [chosen("only"), chosen("never"), chosen("allowed")] == [ONLY, NEVER, ALLOWED]
    for text in ("", "Never", "always", "x" * 100_000):
        with pytest.raises(BadAnnotation, match="accepted: only, never, allowed") as raised:
            chosen(text)
        assert len(str(raised.value)) < 300


# -- demoted


def test_a_pod_without_requests_needs_what_the_annotation_says():
    """What no resize changes stays as the spec has it."""
    needs = demoted(PodResources([main(cpu=0.0, memory=0.0, **{GPU: 1.0})]), TWO_CORES, {"disk-read": 5.0}, None)
    assert needs.demand == NEEDS | {GPU: 1.0, "disk-read": 5.0}
    assert needs.opportunistic
    assert needs.regular_requests == TWO_CORES


def test_a_container_that_requested_nothing_needs_nothing():
    pod = PodResources([main(cpu=0.0, memory=0.0), Container({}, name="side")])
    assert demoted(pod, TWO_CORES, {}, None).demand == NEEDS


def test_between_the_annotation_and_the_resize_a_pod_is_regular():
    needs = demoted(PodResources([main(**NEEDS)]), TWO_CORES, {}, None)
    assert (needs.demand, needs.opportunistic) == (NEEDS, False)


def test_until_the_kubelet_has_freed_them_requests_count_as_regular():
    """A promotion that was rolled back: the spec says 0, and kube-scheduler still counts what is allocated."""
    needs = demoted(PodResources([main(NEEDS, cpu=0.0, memory=0.0)]), TWO_CORES, {}, None)
    assert (needs.demand, needs.opportunistic) == (NEEDS, False)


def test_a_half_freed_pod_still_needs_all():
    pod = PodResources([main({"cpu": 500.0, "memory": 0.0}, cpu=0.0, memory=0.0)])
    needs = demoted(pod, TWO_CORES, {}, None)
    assert (needs.demand, needs.opportunistic) == (NEEDS, False)


def test_a_promotion_that_the_node_cannot_grant_leaves_a_pod_opportunistic_with_the_same_demand():
    reported = {"cpu": 0.0, "memory": 0.0}
    needs = demoted(PodResources([main(reported, **NEEDS)], resize_infeasible=True), TWO_CORES, {}, None)
    assert (needs.demand, needs.opportunistic) == (NEEDS, True)
    deferred = demoted(PodResources([main(reported, **NEEDS)]), TWO_CORES, {}, None)
    assert (deferred.demand, deferred.opportunistic) == (NEEDS, False)  # kube-scheduler counts the spec


def test_init_containers_and_sidecars_count_as_they_did():
    """An init container of 5 beside nothing, a sidecar of 1 and a container of 2: max(5, 1 + 2) = 5 CPUs."""
    pod = PodResources(
        [main(cpu=0.0)],
        [Container({"cpu": 0.0}, name="load"), Container({"cpu": 0.0}, sidecar=True, name="log")],
    )
    requests = RegularRequests(
        containers={"main": {"cpu": "2"}}, init_containers={"load": {"cpu": "5"}, "log": {"cpu": "1"}}
    )
    assert demoted(pod, requests, {}, None).demand == {"cpu": 5000.0}


def test_pod_level_requests_replace_the_sum():
    pod = PodResources([main(cpu=0.0)], pod_level={"cpu": 0.0}, pod_level_reported={"cpu": 0.0})
    requests = RegularRequests(containers={"main": {"cpu": "2"}}, pod={"cpu": "3"})
    assert demoted(pod, requests, {}, None).demand == {"cpu": 3000.0}


def test_a_broken_annotation_leaves_what_kube_scheduler_counts_and_no_way_back():
    needs = demoted(PodResources([main(cpu=0.0, **{GPU: 1.0})]), None, {}, None)
    assert (needs.demand, needs.opportunistic, needs.regular_requests) == ({"cpu": 0.0, GPU: 1.0}, True, None)
    needs = demoted(PodResources([main(**NEEDS)]), None, {}, None)
    assert (needs.demand, needs.opportunistic, needs.regular_requests) == (NEEDS, False, None)


# -- outright


def test_a_pod_that_only_is_opportunistic_needs_what_it_declares():
    needs = outright(PodResources([main(**{GPU: 1.0})]), NEEDS)
    assert needs.demand == NEEDS | {GPU: 1.0}
    assert (needs.opportunistic, needs.regular_requests, needs.choice) == (True, None, ONLY)


@pytest.mark.parametrize(
    ("requests", "declared"),
    [
        ({}, {}),
        ({}, {"cpu": 2000.0}),
        ({}, {"memory": 1024.0, "disk-read": 5.0}),
        ({"cpu": 1.0}, NEEDS),
        ({"memory": 1.0}, NEEDS),
    ],
)
def test_one_that_requests_or_does_not_declare_its_need_is_not(requests, declared):
    with pytest.raises(BadAnnotation, match="accepted: with cpu and memory in"):
        outright(PodResources([main(**requests)]), declared)
