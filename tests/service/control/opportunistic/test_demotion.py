"""The patches of a demotion and of a promotion: each undoes the other, and each may be made again."""

import msgspec
import pytest

from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.objects import PodObject
from extender.cluster.pods.opportunistic import RegularRequests, regular_requests
from extender.control.opportunistic.demotion import (
    annotation,
    has_limit,
    no_annotation,
    requests_of,
    resize_back,
    resize_to_zero,
)
from extender.errors import BadAnnotation
from tests.service.control.opportunistic.pods import ANNOTATION, container, patched, pod, qos_class

NODE = 64 * 2**30
UID = {"uid": "uid-p"}
TWO = {"cpu": "2", "memory": "4Gi"}


def read(document):
    return pod_from(msgspec.json.decode(msgspec.json.encode(document), type=PodObject))


def demoted(document):
    """Return a pod after each step of a demotion."""
    requests = requests_of(document)
    noted = patched(document, annotation(document))
    return noted, patched(noted, resize_to_zero(noted, requests, NODE))


def test_what_a_pod_requests_is_written_down():
    assert annotation(pod()) == {
        "metadata": UID
        | {"annotations": {ANNOTATION: '{"containers":{"main":{"cpu":"2","memory":"4Gi"}},"limited":["main"]}'}}
    }


def test_a_pod_with_a_limit_gets_no_other():
    document = pod(container(requests=TWO, limits={"cpu": "4"}))
    assert requests_of(document).limited == ()
    assert resize_to_zero(document, requests_of(document), NODE) == {
        "metadata": UID,
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "0", "memory": "0"}}}]},
    }


def test_one_container_of_a_pod_without_any_limit_gets_one():
    document = pod(container("a", requests={"cpu": "2"}), container("b", requests={"memory": "1Gi"}), container("c"))
    assert resize_to_zero(document, requests_of(document), NODE)["spec"]["containers"] == [
        # without a request of memory in the patch, the limit would become one
        {"name": "a", "resources": {"requests": {"cpu": "0", "memory": "0"}, "limits": {"memory": str(NODE)}}},
        {"name": "b", "resources": {"requests": {"memory": "0"}}},
    ]


def test_a_limit_of_0_is_none():
    assert not has_limit(pod(container(requests=TWO, limits={"memory": "0"})))


@pytest.mark.parametrize(("level", "limited"), [({"requests": {"cpu": "3"}}, False), ({"limits": {"cpu": "3"}}, True)])
def test_where_the_pod_as_a_whole_has_resources_its_containers_limits_do_not_count(level, limited):
    assert has_limit(pod(container(requests=TWO, limits=TWO), resources=level)) is limited


def test_the_way_back_brings_each_request_as_it_stood_and_raises_our_limit():
    document = pod()
    _, zero = demoted(document)
    assert resize_back(zero, requests_of(document), 2 * NODE) == {
        "metadata": UID,
        "spec": {
            "containers": [
                {"name": "main", "resources": {"requests": TWO, "limits": {"memory": str(2 * NODE)}}},
            ]
        },
    }


def test_our_limit_is_never_lowered_and_never_below_the_request():
    document = pod()
    _, zero = demoted(document)
    (change,) = resize_back(zero, requests_of(document), NODE // 2)["spec"]["containers"]
    assert change["resources"] == {"requests": TWO}
    requests = RegularRequests(containers={"main": {"memory": "128Gi"}}, limited=("main",))
    (change,) = resize_back(zero, requests, NODE)["spec"]["containers"]
    assert change["resources"] == {"requests": {"memory": "128Gi"}, "limits": {"memory": str(2 * NODE)}}


SAMPLES = {
    "plain": pod(),
    "limited": pod(container(requests=TWO, limits={"cpu": "4", "memory": "8Gi"})),
    "only cpu": pod(container(requests={"cpu": "100m"})),
    "several": pod(container("a", requests=TWO), container("b"), container("c", requests={"memory": "1Gi"})),
    "devices": pod(container(requests=TWO | {"a.b/gpu": "1", "ephemeral-storage": "1Gi"}, limits={"a.b/gpu": "1"})),
    "init containers": pod(
        init=[
            container("load", requests={"cpu": "8"}),
            container("log", requests={"memory": "1Gi"}, limits={"memory": "2Gi"}, restartPolicy="Always"),
        ]
    ),
    "pod-level": pod(
        container(requests={"cpu": "1"}), resources={"requests": {"cpu": "3", "memory": "9Gi"}, "limits": {"cpu": "3"}}
    ),
    "rates": pod(annotations={"dovetail.dev/demand": '{"disk-read": "100Mi"}'}),
    "odd spelling": pod(container(requests={"cpu": "0.5", "memory": "1e9"})),
}


@pytest.mark.parametrize("document", SAMPLES.values(), ids=SAMPLES)
def test_demotion_and_promotion_undo_each_other(document):
    """By what the decoder makes of each step: the same demand, regular until the resize and from the way back on."""
    noted, zero = demoted(document)
    requests = regular_requests(zero["metadata"]["annotations"][ANNOTATION])
    back = patched(zero, resize_back(zero, requests, NODE))
    clean = patched(back, no_annotation(back))
    steps = [read(step) for step in (document, noted, zero, back, clean)]
    assert [step.opportunistic for step in steps] == [False, False, True, False, False]
    assert [step.demand for step in steps] == [steps[0].demand] * 5
    assert [step.problem for step in steps] == [None] * 5
    assert steps[2].counted.keys().isdisjoint({"cpu", "memory", "disk-read"})
    assert steps[2].regular_requests == requests == requests_of(document)
    assert qos_class(zero) == "Burstable"
    assert clean["metadata"] == document["metadata"]


@pytest.mark.parametrize("document", SAMPLES.values(), ids=SAMPLES)
def test_no_step_that_was_made_is_made_again(document):
    noted, zero = demoted(document)
    requests = requests_of(document)
    back = patched(zero, resize_back(zero, requests, NODE))
    assert annotation(noted) is None
    assert resize_to_zero(zero, requests, NODE) is None
    assert resize_back(noted, requests, NODE) is None  # it was never resized: no limit is added either
    assert resize_back(back, requests, NODE) is None
    assert no_annotation(document) is None


def test_a_half_made_resize_is_finished():
    """As where another wrote in between: one container is 0 already."""
    document = pod(container("a", requests=TWO, limits=TWO), container("b", requests=TWO))
    requests = requests_of(document)
    half = patched(
        document, {"spec": {"containers": [{"name": "a", "resources": {"requests": dict.fromkeys(TWO, "0")}}]}}
    )
    assert [it["name"] for it in resize_to_zero(half, requests, NODE)["spec"]["containers"]] == ["b"]
    assert [it["name"] for it in resize_back(half, requests, NODE)["spec"]["containers"]] == ["a"]


def test_a_resize_touches_nothing_but_cpu_and_memory():
    document = SAMPLES["devices"]
    _, zero = demoted(document)
    assert zero["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "0", "memory": "0", "a.b/gpu": "1", "ephemeral-storage": "1Gi"},
        "limits": {"a.b/gpu": "1", "memory": str(NODE)},
    }


def test_what_cannot_be_written_down_is_not_demoted():
    many = pod(*(container(f"container-{number}", requests=TWO) for number in range(1000)))
    with pytest.raises(BadAnnotation):
        annotation(many)
    with pytest.raises(BadAnnotation):
        annotation(pod(container(requests={"memory": "16Ei"})))
