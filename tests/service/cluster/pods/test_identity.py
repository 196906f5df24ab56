"""Whose pod it is, by what users and the ecosystem write."""

import pytest

from extender.cluster.pods.identity import Identity, identify


def test_a_pod_that_says_nothing_is_of_no_job_and_in_the_queue_of_its_namespace():
    assert identify("shop", {}) == Identity(queue="shop")


def test_pods_of_one_owner_are_one_job():
    assert identify("shop", {}, owner="o") == Identity(job="o", queue="shop")


def test_our_labels_come_before_those_of_others():
    told = {
        "dovetail.dev/job": "j",
        "dovetail.dev/stage": "map",
        "dovetail.dev/queue": "q",
        "batch.kubernetes.io/job-name": "other",
        "spark-role": "executor",
        "kueue.x-k8s.io/queue-name": "other",
    }
    assert identify("shop", told, owner="o") == Identity(job="shop/j", stage="map", queue="q", named="q")


@pytest.mark.parametrize(
    ("label", "more"),
    [
        ("kueue.x-k8s.io/pod-group-name", {"group": "shop/g"}),
        ("scheduling.x-k8s.io/pod-group", {"group": "shop/g"}),
        ("scheduling.k8s.io/group-name", {"group": "shop/g"}),
        ("gang.scheduling.koordinator.sh/name", {"group": "shop/g"}),
        ("yunikorn.apache.org/app-id", {}),
        ("spark-app-selector", {}),
        ("ray.io/cluster", {}),
        ("jobset.sigs.k8s.io/jobset-name", {}),
        ("batch.kubernetes.io/job-name", {}),
    ],
)
def test_the_ecosystems_names_tell_the_job_and_some_of_them_a_group(label, more):
    assert identify("shop", {label: "g"}, owner="o") == Identity(job="shop/g", queue="shop", **more)


def test_a_pod_group_of_the_workload_api_comes_before_the_ecosystems():
    found = identify("shop", {"ray.io/cluster": "r"}, pod_group="g")
    assert (found.job, found.group) == ("shop/g", "shop/g")


def test_a_group_may_say_itself_how_many_must_start_together():
    told = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "8"}
    assert identify("shop", told).least == 8
    for text in ("many", "\u00b2", "9" * 5_000):  # a digit that is no number, and more digits than Python reads
        assert identify("shop", {**told, "kueue.x-k8s.io/pod-group-total-count": text}).least == 0
