"""When a refused pod is asked about again, and how much waiting for news it is worth."""

from extender.adapters.http.refused import RefusedPods
from extender.cluster.model import Pod


def pod(version=1, uid="uid"):
    return Pod(uid, "team", "pod", {}, resource_version=version)


def test_a_refused_pod_that_has_not_changed_was_woken_by_the_cluster():
    pods = RefusedPods()
    pods.remember(pod(version=1))
    assert pods.woken_by_cluster(pod(version=1))
    assert not pods.woken_by_cluster(pod(version=2)), "it changed itself"
    assert not pods.woken_by_cluster(pod(uid="another")), "it is asked about for the first time"


def test_the_newest_refusal_counts():
    pods = RefusedPods()
    pods.remember(pod(version=1))
    pods.remember(pod(version=2))
    assert not pods.woken_by_cluster(pod(version=1))
    assert pods.woken_by_cluster(pod(version=2))


def test_the_oldest_are_forgotten_when_there_are_too_many():
    pods = RefusedPods()
    for number in range(10_001):
        pods.remember(pod(uid=str(number)))
    assert not pods.woken_by_cluster(pod(uid="0"))
    assert pods.woken_by_cluster(pod(uid="1"))


def test_waits_take_a_fifth_of_the_time_at_most():
    # 0.2 s are there at first; 0.2 s waited uses them up; half a second later 0.1 s have come back.
    pods = RefusedPods()
    assert pods.may_wait(now=100.0)
    pods.waited(0.25)
    assert not pods.may_wait(now=100.0)
    assert not pods.may_wait(now=100.2)
    assert pods.may_wait(now=100.5)


def test_the_budget_does_not_grow_without_bound():
    pods = RefusedPods()
    assert pods.may_wait(now=1_000_000.0)
    pods.waited(0.21)
    assert not pods.may_wait(now=1_000_000.0)


def test_a_refused_pod_is_known_also_once_it_has_changed():
    pods = RefusedPods()
    pods.remember(pod(version=1))
    assert pods.know(pod(version=2))
    assert not pods.know(pod(uid="another"))
