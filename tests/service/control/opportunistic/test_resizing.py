"""The writes that make a pod opportunistic and regular again, against an API server that keeps one pod."""

import dataclasses
import json

import pytest

from extender.adapters.kube.api import Refused
from extender.adapters.kube.resizing import PodResizer
from extender.cluster.model import Pod
from extender.control.opportunistic.demotion import annotation
from extender.control.opportunistic.eligibility import Ineligible, Surroundings
from extender.control.opportunistic.exposure import Exposure
from extender.control.opportunistic.resizing import NotEligible, Resizer
from extender.errors import BadAnnotation, ClusterError
from tests.service.control.opportunistic import pods
from tests.service.control.scene import Scene
from tests.service.control.scene import pod as waiting

POD, OTHER = Pod("uid-p", "default", "p", {}), Pod("uid-q", "default", "p", {})
PATH = "/api/v1/namespaces/default/pods/p"
GIB = 2**30


class Server:
    """One pod. `fail` names the writes that are refused, `lost` those that are made and whose answer is lost."""

    def __init__(self, document):
        self.pod, self.writes, self.fail, self.lost = document, [], set(), set()
        self.pod["metadata"]["resourceVersion"], self.status = "7", 403

    def read(self, path):
        assert path == PATH
        return json.loads(json.dumps(self.pod))

    def patch(self, path, body, content):
        verb = "resize" if path == f"{PATH}/resize" else "annotate"
        assert content == f"application/{'strategic-' if verb == 'resize' else ''}merge-patch+json"
        meta = body["metadata"]
        for name in ("uid", "resourceVersion"):
            if meta.get(name, self.pod["metadata"][name]) != self.pod["metadata"][name]:
                raise Refused(f"{name} is another", 409)
        if verb in self.fail:
            raise Refused(f"{verb} is forbidden", self.status)
        self.writes.append(verb)
        self.pod = pods.patched(self.pod, body)
        self.pod["metadata"]["resourceVersion"] = str(int(self.pod["metadata"]["resourceVersion"]) + 1)
        if verb in self.lost:
            raise ClusterError("no answer")

    @property
    def annotated(self):
        return pods.ANNOTATION in self.pod["metadata"]["annotations"]

    @property
    def requests(self):
        return self.pod["spec"]["containers"][0]["resources"]["requests"]


class Bench:
    def __init__(self, *, around=None, **more):
        self.server = Server(pods.pod(**more))
        self.refused, self.around = [], around or Surroundings()
        self.resizer = Resizer(
            PodResizer(self.server), lambda *_: self.around, lambda _, reason: self.refused.append(reason)
        )


def test_a_pod_is_made_opportunistic_in_two_writes():
    bench = Bench()
    assert bench.resizer.demote(POD, 8 * GIB) == 9
    assert bench.server.writes == ["annotate", "resize"]
    assert bench.server.requests == {"cpu": "0", "memory": "0"}
    assert bench.server.pod["spec"]["containers"][0]["resources"]["limits"] == {"memory": str(8 * GIB)}


def test_made_again_nothing_is_written():
    bench = Bench()
    bench.resizer.demote(POD, GIB)
    assert bench.resizer.demote(POD, GIB) == 9
    assert bench.server.writes == ["annotate", "resize"]


def test_a_predecessor_that_ended_between_the_writes_is_gone_on_from():
    bench = Bench()
    bench.server.fail = {"resize"}
    bench.resizer.pods.annotate(POD, annotation(bench.server.pod))
    bench.server.fail = set()
    bench.resizer.demote(POD, GIB)
    assert bench.server.writes == ["annotate", "resize"]


def test_the_way_back_is_one_write_and_can_be_made_again():
    bench = Bench()
    bench.resizer.demote(POD, GIB)
    assert bench.resizer.restore(POD) == 10
    assert bench.resizer.restore(POD) == 10
    assert bench.server.requests == {"cpu": "2", "memory": "4Gi"}
    assert bench.server.writes == ["annotate", "resize", "resize"]


def test_a_pod_that_was_regular_again_keeps_what_is_written_of_its_limit():
    bench = Bench()
    bench.resizer.demote(POD, GIB)
    bench.resizer.restore(POD)
    before = bench.server.pod["metadata"]["annotations"][pods.ANNOTATION]
    bench.resizer.demote(POD, GIB)
    assert bench.server.writes == ["annotate", "resize", "resize", "resize"]
    assert bench.server.pod["metadata"]["annotations"][pods.ANNOTATION] == before
    assert json.loads(before)["limited"] == ["main"]


def test_a_pod_of_which_nothing_is_written_is_left_as_it_is():
    bench = Bench()
    assert (bench.resizer.restore(POD), bench.resizer.take_back(POD)) == (7, 7)
    assert bench.server.writes == []


def test_what_is_written_of_a_pod_is_forgotten_once():
    bench = Bench()
    bench.resizer.demote(POD, GIB)
    bench.resizer.forget(POD)
    bench.resizer.forget(POD)
    assert not bench.server.annotated
    assert bench.server.writes == ["annotate", "resize", "annotate"]


def test_a_refused_resize_removes_the_annotation_and_says_why():
    bench = Bench()
    bench.server.fail = {"resize"}
    with pytest.raises(Refused):
        bench.resizer.demote(POD, GIB)
    assert bench.refused == ["resize is forbidden"]
    assert not bench.server.annotated


def test_a_resize_whose_answer_is_lost_forgets_nothing():
    # Without the annotation nobody would ever know what the pod requested.
    bench = Bench()
    bench.server.lost = {"resize"}
    with pytest.raises(ClusterError):
        bench.resizer.demote(POD, GIB)
    assert bench.server.annotated
    bench.server.lost = set()
    bench.resizer.restore(POD)
    assert bench.server.requests == {"cpu": "2", "memory": "4Gi"}


def test_a_refused_annotation_leaves_the_pod_as_it_was():
    bench = Bench()
    bench.server.fail = {"annotate"}
    with pytest.raises(Refused):
        bench.resizer.demote(POD, GIB)
    assert bench.server.writes == []


def test_a_promotion_is_taken_back_and_what_is_written_stays_even_where_that_is_refused():
    bench = Bench()
    bench.resizer.demote(POD, GIB)
    bench.resizer.restore(POD)
    bench.server.pod["spec"]["nodeName"] = "n1"
    bench.server.fail = {"resize"}
    with pytest.raises(Refused):
        bench.resizer.take_back(POD)
    assert bench.server.annotated
    assert bench.refused == []
    bench.server.fail = set()
    bench.resizer.take_back(POD)
    assert bench.server.requests == {"cpu": "0", "memory": "0"}


def test_a_pod_that_may_not_be_stays_regular():
    bench = Bench(owner="ReplicaSet")
    with pytest.raises(NotEligible) as refusal:
        bench.resizer.demote(POD, GIB)
    assert refusal.value.reason is Ineligible.NOT_RUN_TO_COMPLETION
    assert bench.refused == [Ineligible.NOT_RUN_TO_COMPLETION.value]
    assert bench.server.writes == []


def test_a_pod_is_asked_anew_each_time_that_it_gives_its_requests_up():
    bench = Bench()
    bench.resizer.demote(POD, GIB)
    bench.resizer.restore(POD)
    bench.around = Surroundings(evictions_left=0)
    with pytest.raises(NotEligible):
        bench.resizer.demote(POD, GIB)


def test_another_pod_of_the_same_name_is_refused():
    bench = Bench()
    for change in (lambda: bench.resizer.demote(OTHER, GIB), lambda: bench.resizer.restore(OTHER)):
        with pytest.raises(ClusterError, match="another by now"):
            change()
    assert bench.server.writes == []


def test_a_broken_annotation_is_a_reason_to_stay_regular():
    bench = Bench(annotations={pods.ANNOTATION: "{"})
    with pytest.raises(BadAnnotation):
        bench.resizer.demote(POD, GIB)
    assert len(bench.refused) == 1
    assert bench.server.writes == []


# -- how many of a Job may be evicted


def exposed(scene, name, least=2):
    """Return how many evictions are left to a pod of a Job that fails with so many more."""
    return scene.exposure.evictions_left(scene.pods[name], lambda others: max(least - others, 0))


def job(*names, **more):
    scene = Scene()
    scene.exposure = Exposure(scene.backlog, lambda: scene.now)
    scene.see(*(waiting(name, owner="uid-job", owner_kind="Job", **more) for name in names))
    return scene


def test_pods_that_are_being_made_opportunistic_count_before_that_shows():
    scene = job("a", "b", "c")
    for name in "abc":
        scene.backlog.claim(f"uid-{name}", scene.now + 15)
    assert [exposed(scene, name) for name in "abc"] == [2, 1, 0]
    assert exposed(scene, "a") == 1


def test_one_that_was_not_made_so_leaves_its_place_and_so_does_one_that_is_no_longer_written_to():
    scene = job("a", "b", "c")
    for name in "abc":
        scene.backlog.claim(f"uid-{name}", scene.now + 15)
        exposed(scene, name)
    scene.exposure.leave(scene.pods["a"])
    scene.remove("a")
    assert exposed(scene, "c") == 1
    scene.backlog.writes.expire(scene.now + 20)
    assert exposed(scene, "b") == 2


def test_each_job_counts_its_own_pods_alone_those_that_are_gone_too():
    scene = job("a", "b")
    scene.see(waiting("other", owner="uid-other", owner_kind="Job"))
    for name in ("a", "other"):
        scene.backlog.claim(f"uid-{name}", scene.now + 15)
    assert [exposed(scene, name) for name in ("a", "other")] == [2, 2]
    scene.change("other", opportunistic=True)
    assert [exposed(scene, name) for name in ("b", "other")] == [1, 2]
    scene.remove("other")
    assert exposed(scene, "b") == 1


def test_nothing_is_kept_of_owners_whose_pods_are_no_longer_written_to():
    scene = job("a")
    for number in range(50):
        pod = waiting(f"p{number}", owner=f"uid-{number}", owner_kind="Job")
        scene.see(pod)
        scene.backlog.claim(pod.uid, scene.now + 15)
        exposed(scene, pod.name)
    scene.backlog.writes.expire(scene.now + 20)
    exposed(scene, "a")
    assert len(scene.exposure._let_in) <= 1


def test_those_that_are_opportunistic_count_until_they_are_regular_or_gone_for_long_enough_to_be_counted():
    scene = job("a", "b")
    scene.change("a", opportunistic=True)
    assert exposed(scene, "b") == 1
    scene.change("a", opportunistic=False)
    assert exposed(scene, "b") == 2
    scene.change("a", opportunistic=True)
    assert exposed(scene, "b") == 1
    scene.change("a", finished=True, failed=True)
    assert exposed(scene, "b") == 1
    scene.remove("a")
    scene.now += 60
    assert exposed(scene, "b") == 1
    scene.now += 1
    assert exposed(scene, "b") == 2


def test_pods_of_other_owners_do_not_count():
    scene = job("a")
    scene.see(waiting("x", owner="uid-other", opportunistic=True))
    assert exposed(scene, "a") == 2


def test_pods_of_other_namespaces_do_not_count_whoever_they_say_owns_them():
    scene = job("a")
    scene.see(dataclasses.replace(waiting("x", owner="uid-job", opportunistic=True), namespace="foreign"))
    assert exposed(scene, "a") == 2
    scene.remove("x")
    assert exposed(scene, "a") == 2


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_what_may_go_well_the_next_time_is_no_reason_against_the_pods_of_its_class(status):
    bench = Bench()
    bench.server.fail, bench.server.status = {"resize"}, status
    with pytest.raises(ClusterError):
        bench.resizer.demote(POD, GIB)
    assert bench.refused == []
    assert not bench.server.annotated
