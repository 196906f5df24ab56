"""When a refused pod is asked about again, has kube-scheduler heard of something that we have not."""

from extender.adapters.refused import RefusedPods
from extender.cluster.model import Pod


def pod(version=1, uid="uid"):
    return Pod(uid, "team", "pod", {}, resource_version=version)


def refused(version=1, heard=7):
    pods = RefusedPods()
    pods.remember(pod(version), heard)
    return pods


def test_news_is_under_way_where_neither_the_pod_nor_what_we_heard_is_new():
    assert refused().woken_by_news_to_come(pod(), heard=7, now=0.0)


def test_a_pod_asked_about_for_the_first_time_is_not_woken_by_news():
    assert not refused().woken_by_news_to_come(pod(uid="another"), heard=7, now=0.0)


def test_a_pod_that_changed_itself_is_not_woken_by_news():
    assert not refused().woken_by_news_to_come(pod(version=2), heard=7, now=0.0)


def test_where_we_have_heard_of_something_since_that_is_taken_for_the_news():
    assert not refused().woken_by_news_to_come(pod(), heard=8, now=0.0)


def test_after_a_wait_in_vain_there_is_none_for_a_second():
    pods = refused()
    pods.waited_in_vain(now=10.0)
    assert not pods.woken_by_news_to_come(pod(), heard=7, now=10.9)
    assert pods.woken_by_news_to_come(pod(), heard=7, now=11.0)


def test_the_newest_refusal_counts():
    pods = refused(version=1, heard=7)
    pods.remember(pod(version=1), 9)
    assert not pods.woken_by_news_to_come(pod(), heard=7, now=0.0)
    assert pods.woken_by_news_to_come(pod(), heard=9, now=0.0)


def test_the_oldest_are_forgotten_when_there_are_too_many():
    pods = RefusedPods()
    for number in range(10_001):
        pods.remember(pod(uid=str(number)), 1)
    assert not pods.woken_by_news_to_come(pod(uid="0"), heard=1, now=0.0)
    assert pods.woken_by_news_to_come(pod(uid="1"), heard=1, now=0.0)
