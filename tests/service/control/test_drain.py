"""The way out, on a cluster of dictionaries."""

import copy
import itertools
import tracemalloc

import pytest

from extender.adapters.kube.gates import GateWriter
from extender.adapters.kube.resizing import PodResizer
from extender.control.drain import BINDINGS, PODS, POLICIES, SETTLE_SECONDS, drain, look
from extender.control.drain_opportunistic import WayOut
from extender.errors import AnswerTooLarge, BadAnnotation, ClusterError

HOLD, NOMINATED = "dovetail.dev/hold", "dovetail.dev/nominated"
OTHERS = "kueue.x-k8s.io/admission"
OURS = frozenset({"dovetail"})


class Refused(ClusterError):
    def __init__(self, status, text=""):
        super().__init__(text or f"refused with {status}")
        self.status = status


class FakeCluster:
    """Pods, policies and bindings behind the three calls; lists come in pages of two."""

    def __init__(self, pods=(), policies=("gating",), *, knows_policies=True):
        self.pods = {
            f"/api/v1/namespaces/{it['metadata']['namespace']}/pods/{it['metadata']['name']}": it for it in pods
        }
        self.kinds = {path: dict.fromkeys(f"{path}/{it}" for it in policies) for path in (BINDINGS, POLICIES)}
        self.knows_policies = knows_policies
        self.calls = []
        self.refusals = {}
        self.expired = 0
        self.most = 500

    def read(self, path, params=()):
        given = dict(params)
        self.calls.append(("read", path))
        if path != PODS:
            assert given["labelSelector"] == "app.kubernetes.io/name=dovetail"
            if not self.knows_policies:
                raise Refused(404)
            return self.page([{"metadata": {"name": it.rpartition("/")[2]}} for it in self.kinds[path]], given)
        if int(given["limit"]) > self.most:
            raise AnswerTooLarge("too large")
        bound = {"spec.nodeName=": False, "spec.nodeName!=": True}[given["fieldSelector"]]
        if "continue" in given and self.expired:
            self.expired -= 1
            raise Refused(410)
        return self.page([copy.deepcopy(it) for it in self.pods.values() if ("nodeName" in it["spec"]) is bound], given)

    def page(self, items, given):
        start = int(given.get("continue", 0))
        rest = {"continue": str(start + 2)} if start + 2 < len(items) else {}
        return {"metadata": rest, "items": items[start : start + 2]}

    def delete(self, path):
        self.calls.append(("delete", path))
        self.refuse(path)
        del self.kinds[path.rpartition("/")[0]][path]

    def patch(self, path, body, content):
        self.calls.append(("patch", path))
        self.refuse(path)
        name, _, subresource = path.partition("/status")
        if name not in self.pods:
            raise Refused(404)
        pod = self.pods[name]
        if content.startswith("application/strategic"):
            (change,) = body["spec"]["schedulingGates"]
            assert change == {"$patch": "delete", "name": HOLD}
            pod["spec"]["schedulingGates"] = [it for it in pod["spec"]["schedulingGates"] if it["name"] != HOLD]
        elif content.startswith("application/merge"):
            assert body == {"metadata": {"annotations": {NOMINATED: None}}}
            pod["metadata"]["annotations"].pop(NOMINATED, None)
        else:
            assert subresource == ""
            assert path.endswith("/status")
            self.clear(pod, body)

    def clear(self, pod, operations):
        """Apply the JSON patch on nomination and annotation, or refuse it as a whole."""
        held = {
            "/status/nominatedNodeName": (pod["status"], "nominatedNodeName"),
            "/metadata/annotations/dovetail.dev~1nominated": (pod["metadata"]["annotations"], NOMINATED),
        }
        for it in operations:
            place, key = held[it["path"]]
            if it["op"] == "test" and place.get(key) != it["value"]:
                raise Refused(422)
        for it in operations:
            place, key = held[it["path"]]
            if it["op"] == "remove":
                del place[key]

    def refuse(self, path):
        status = self.refusals.get(path)
        if status == "unreachable":
            raise ClusterError("nobody answered")
        if status is not None:
            raise Refused(status)


def pod(name, *, gates=(HOLD,), promised=None, nominated=None, node=None, scheduler="dovetail"):
    made = {
        "metadata": {"name": name, "namespace": "default", "annotations": {"a": "b"}},
        "spec": {"schedulerName": scheduler, "schedulingGates": [{"name": it} for it in gates]},
        "status": {"phase": "Pending"},
    }
    if promised is not None:
        made["metadata"]["annotations"][NOMINATED] = promised
    if nominated is not None:
        made["status"]["nominatedNodeName"] = nominated
    if node is not None:
        made["spec"]["nodeName"] = node
    return made


def drained(cluster, way_out=None, **more):
    way_out = way_out or WayOut(pods := Pods(cluster), pods, "promote")
    return drain(cluster, GateWriter(cluster), OURS, way_out, pause=more.pop("pause", lambda _: None), **more)


def of(cluster, name):
    return cluster.pods[f"/api/v1/namespaces/default/pods/{name}"]


def gates(cluster, name):
    return [it["name"] for it in of(cluster, name)["spec"]["schedulingGates"]]


def test_every_gate_of_ours_goes_and_no_other():
    cluster = FakeCluster([pod("a"), pod("b", gates=(OTHERS, HOLD)), pod("c", gates=(OTHERS,)), pod("d", gates=())])

    done = drained(cluster)

    assert {name: gates(cluster, name) for name in "abcd"} == {"a": [], "b": [OTHERS], "c": [OTHERS], "d": []}
    assert (done.gates, done.left) == (2, {})


def test_lists_that_are_too_large_are_read_in_smaller_pages():
    cluster = FakeCluster([pod(name) for name in "abc"])
    cluster.most = 7
    assert drained(cluster).gates == 3
    cluster.most = 0
    with pytest.raises(AnswerTooLarge):
        drained(cluster)


def test_the_binding_goes_first_then_the_policy_then_the_gates():
    cluster = FakeCluster([pod("a")])

    done = drained(cluster)

    writes = [path for verb, path in cluster.calls if verb != "read"]
    assert writes == [f"{BINDINGS}/gating", f"{POLICIES}/gating", "/api/v1/namespaces/default/pods/a"]
    assert (done.policies, done.bindings) == (("gating",), ("gating",))


def test_a_nomination_of_ours_is_cleared_with_its_annotation_and_after_the_gate():
    cluster = FakeCluster([pod("a", promised="node-1", nominated="node-1")], policies=())

    done = drained(cluster)

    assert "nominatedNodeName" not in of(cluster, "a")["status"]
    assert of(cluster, "a")["metadata"]["annotations"] == {"a": "b"}
    assert (done.gates, done.nominations) == (1, 1)
    assert [path.rpartition("/")[2] for verb, path in cluster.calls if verb == "patch"] == ["a", "status"]


def test_a_nomination_that_another_has_made_stays():
    cluster = FakeCluster([pod("a", promised="node-1", nominated="node-2"), pod("b", nominated="node-3")])

    done = drained(cluster)

    assert of(cluster, "a")["status"]["nominatedNodeName"] == "node-2"
    assert of(cluster, "b")["status"]["nominatedNodeName"] == "node-3"
    assert of(cluster, "a")["metadata"]["annotations"] == {"a": "b"}
    assert done.nominations == 0


def test_a_released_pod_that_is_not_bound_yet_loses_its_nomination_too():
    cluster = FakeCluster([pod("a", gates=(), promised="node-1", nominated="node-1")])

    done = drained(cluster)

    assert "nominatedNodeName" not in of(cluster, "a")["status"]
    assert (done.gates, done.nominations) == (0, 1)


def test_pods_that_have_a_node_are_left_alone():
    cluster = FakeCluster([pod("a", gates=(), promised="node-1", nominated="node-1", node="node-1")])
    before = copy.deepcopy(cluster.pods)

    drained(cluster)

    assert cluster.pods == before


def test_a_second_run_writes_nothing():
    cluster = FakeCluster([pod("a", promised="node-1", nominated="node-1"), pod("b")])
    drained(cluster)
    cluster.calls.clear()

    done = drained(cluster)

    assert {verb for verb, _ in cluster.calls} == {"read"}
    assert (done.policies, done.gates, done.nominations, done.left) == ((), 0, 0, {})


def test_pods_that_the_policy_gated_while_it_was_forgotten_are_released_as_well():
    cluster, pauses = FakeCluster([pod("a")]), []

    def pause(seconds):
        pauses.append(seconds)
        late = pod("late")
        cluster.pods["/api/v1/namespaces/default/pods/late"] = late

    done = drained(cluster, pause=pause)

    assert pauses == [SETTLE_SECONDS]
    assert gates(cluster, "late") == []
    assert done.gates == 2


def test_it_waits_for_api_servers_to_forget_the_policy_even_if_no_pod_is_held():
    pauses = []

    drained(FakeCluster(policies=()), pause=pauses.append)

    assert pauses == [SETTLE_SECONDS]  # an interrupted run may have removed it a moment ago


def test_an_api_server_without_such_policies_is_fine_and_needs_no_wait():
    cluster, pauses = FakeCluster([pod("a")], knows_policies=False), []

    done = drained(cluster, pause=pauses.append)

    assert (done.policies, done.gates, pauses) == ((), 1, [])


def test_what_is_deleted_meanwhile_is_fine():
    cluster = FakeCluster([pod("a")])
    cluster.refusals = dict.fromkeys([f"{BINDINGS}/gating", f"{POLICIES}/gating"], 404)
    gone = "/api/v1/namespaces/default/pods/a"
    cluster.refusals[gone] = 404

    def pause(_):
        cluster.pods.pop(gone, None)

    done = drained(cluster, pause=pause)

    assert (done.gates, done.left) == (0, {})


def test_a_leader_that_clears_the_nomination_first_does_no_harm():
    cluster = FakeCluster([pod("a", gates=(), promised="node-1", nominated="node-1")])
    read = cluster.read

    def read_then_leader_clears(path, params=()):
        answer = read(path, params)
        of(cluster, "a")["status"].pop("nominatedNodeName", None)
        return answer

    cluster.read = read_then_leader_clears
    done = drained(cluster)

    assert (done.nominations, done.left) == (0, {})
    assert of(cluster, "a")["metadata"]["annotations"] == {"a": "b"}


def test_a_list_whose_next_page_has_expired_is_read_again():
    cluster = FakeCluster([pod(name) for name in "abcde"])
    cluster.expired = 2

    assert drained(cluster).gates == 5


def test_a_pod_that_cannot_be_changed_is_named_and_keeps_no_other_waiting():
    cluster = FakeCluster([pod("a"), pod("b"), pod("c")])
    cluster.refusals["/api/v1/namespaces/default/pods/b"] = 403

    done = drained(cluster)

    assert done.left == {"default/b": "refused with 403"}
    assert (gates(cluster, "a"), gates(cluster, "c"), done.gates) == ([], [], 2)
    assert (
        cluster.calls.count(("patch", "/api/v1/namespaces/default/pods/b")) == 4
    )  # one round with others, three alone


def test_pods_that_come_with_the_gate_for_ever_do_not_keep_it_running():
    cluster, made = FakeCluster([pod("a")], knows_policies=False), []
    patch = cluster.patch

    def patch_then_owner_creates(path, body, content):
        patch(path, body, content)
        made.append(pod(f"again-{len(made)}"))
        cluster.pods[f"/api/v1/namespaces/default/pods/again-{len(made) - 1}"] = made[-1]

    cluster.patch = patch_then_owner_creates
    done = drained(cluster)

    assert (done.gates, done.since, done.left) == (1, 1, {})


def test_a_pod_that_comes_back_by_its_name_for_ever_does_not_keep_it_running():
    cluster = FakeCluster([pod("a")], knows_policies=False)
    patch = cluster.patch

    def patch_then_user_creates(path, body, content):
        patch(path, body, content)
        cluster.pods[path] = pod("a")

    cluster.patch = patch_then_user_creates
    done = drained(cluster)

    assert (done.gates, done.since, done.left) == (30, 1, {})


def test_an_api_server_that_does_not_answer_ends_it():
    cluster = FakeCluster([pod("a")])
    cluster.refusals["/api/v1/namespaces/default/pods/a"] = "unreachable"

    with pytest.raises(ClusterError, match="nobody answered"):
        drained(cluster)


def test_a_policy_that_may_not_be_deleted_keeps_every_gate_in_place():
    cluster = FakeCluster([pod("a")])
    cluster.refusals[f"{POLICIES}/gating"] = 403

    with pytest.raises(ClusterError, match="403"):
        drained(cluster)

    assert gates(cluster, "a") == [HOLD]


@pytest.mark.parametrize("last", range(9))
def test_wherever_it_is_interrupted_another_run_ends_it(last):
    """Two policy objects, three gates, two nominations and one annotation without one are eight writes."""
    promised = [
        pod("a", promised="node-1", nominated="node-1"),
        pod("b", gates=(), promised="node-1", nominated="node-1"),
    ]
    cluster = FakeCluster([*promised, pod("c", promised="node-1", nominated="node-2"), pod("d", gates=(OTHERS, HOLD))])
    refuse, writes = cluster.refuse, itertools.count()

    def interrupted(path):
        if next(writes) >= last:
            raise ClusterError("nobody answered")
        refuse(path)

    cluster.refuse = interrupted
    if last < 8:
        with pytest.raises(ClusterError):
            drained(cluster)
    cluster.refuse = refuse
    drained(cluster)

    assert [gates(cluster, name) for name in "abcd"] == [[], [], [], [OTHERS]]
    nominations = [of(cluster, name)["status"].get("nominatedNodeName") for name in "abcd"]
    assert nominations == [None, None, "node-2", None]
    assert all(of(cluster, name)["metadata"]["annotations"] == {"a": "b"} for name in "abcd")
    assert not any(cluster.kinds.values())


def test_pods_that_wait_for_a_scheduler_of_ours_are_counted():
    finished, ending = pod("finished", gates=()), pod("ending", gates=())
    finished["status"]["phase"] = "Failed"
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    others = [pod("c", scheduler="default-scheduler"), pod("d", gates=(), node="node-1"), finished, ending]
    cluster = FakeCluster([pod("a"), pod("b", gates=()), *others])

    assert drained(cluster).waiting == 2  # a and b


def test_a_look_changes_nothing_and_finds_the_same():
    cluster = FakeCluster([pod("a"), pod("b", gates=(), promised="node-1", nominated="node-1"), pod("c", gates=())])
    before = copy.deepcopy(cluster.pods)

    seen = look(cluster, OURS)

    assert cluster.pods == before
    assert {verb for verb, _ in cluster.calls} == {"read"}
    assert (seen.policies, seen.bindings, [it.name for it in seen.held]) == (("gating",), ("gating",), ["a", "b"])
    assert seen.waiting == 3


def test_a_look_needs_memory_for_no_more_than_a_page_of_pods():
    names, padding = (f"p{number}" for number in itertools.count()), 10_000

    class Many(FakeCluster):
        def page(self, items, given):
            if given.get("fieldSelector") != "spec.nodeName!=":
                return super().page(items, given)
            start = int(given.get("continue", 0))
            whole = [{**pod(next(names), gates=(), node="n1"), "pad": str(n) * padding} for n in range(10)]
            return {"metadata": {"continue": str(start + 1)} if start < 99 else {}, "items": whole}

    tracemalloc.start()
    try:
        look(Many(), OURS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4e5  # a page of ten pods has 100 kB, all of them 10 MB


def test_each_pod_is_shown_once_it_is_done():
    shown = []

    drained(FakeCluster([pod(name) for name in "abc"]), show=lambda done, total: shown.append((done, total)))

    assert shown == [(1, 3), (2, 3), (3, 3)]


WRITTEN_DOWN = "dovetail.dev/regular-requests"
REQUESTS = '{"containers":{"main":{"cpu":"2"}}}'


def opportunistic(name, *, cpu="0", annotation=REQUESTS, **more):
    """Return a pod that gave its requests up, unless it has some CPU back."""
    made = pod(name, **more)
    made["metadata"] |= {"uid": f"uid-{name}"}
    if annotation:
        made["metadata"]["annotations"][WRITTEN_DOWN] = annotation
    made["spec"]["containers"] = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return made


class Pods:
    """Restores and evicts; `refused` are refused by name with an error, `protected` may not be evicted now."""

    def __init__(self, cluster, *, refused=None, protected=()):
        self.cluster, self.refused, self.protected, self.done = cluster, refused or {}, protected, []

    def restore(self, it):
        if it.name in self.refused:
            raise self.refused[it.name]
        self.done.append(("restore", it.name, gates(self.cluster, it.name)))
        of(self.cluster, it.name)["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"

    def forget(self, it):
        of(self.cluster, it.name)["metadata"]["annotations"].pop(WRITTEN_DOWN, None)

    def evict(self, it):
        if it.name in self.protected:
            return False
        self.done.append(("evict", it.name, []))
        return True


class Anew:
    """An API server that has another pod of the same name when it is asked first."""

    def __init__(self):
        self.uids = ["uid-another", "uid-a"]

    def read(self, _path):
        return {"metadata": {"uid": self.uids.pop(0)}}


class Reading:
    """Restores pods, each as `reader` reads it now."""

    def __init__(self, pods, reader):
        self.pods, self.reader, self.forget = pods, reader, pods.forget

    def restore(self, it):
        self.reader.read(it)
        self.pods.restore(it)


def way_out(cluster, way="promote", **more):
    pods = Pods(cluster, **more)
    return pods, drained(cluster, way_out=WayOut(pods, pods, way))


def test_a_held_pod_that_gave_its_requests_up_gets_them_back_before_its_gate_goes():
    cluster = FakeCluster([opportunistic("a", promised="n1", nominated="n1"), pod("b")])
    pods, done = way_out(cluster)
    assert pods.done == [("restore", "a", [HOLD])]
    assert (gates(cluster, "a"), done.gates, done.taken_back, done.left) == ([], 2, 0, {})


@pytest.mark.parametrize(
    "error", [Refused(403, 'User "me" cannot patch resource "pods/resize" in API group ""'), Refused(500)]
)
def test_one_whose_requests_do_not_come_back_stays_held_and_is_named(error):
    cluster = FakeCluster([opportunistic("a")])
    _, done = way_out(cluster, refused={"a": error})
    assert gates(cluster, "a") == [HOLD]
    assert (done.left, done.without_requests) == ({"default/a": str(error)}, {})


@pytest.mark.parametrize(
    "error", [BadAnnotation("cannot be read"), Refused(422), Refused(400), Refused(403, "exceeded quota: bounds")]
)
def test_one_that_cannot_have_its_requests_goes_as_it_is_is_named_and_keeps_no_other_held(error):
    cluster = FakeCluster([opportunistic("a"), pod("b"), opportunistic("c", node="n1", gates=())])
    _, done = way_out(cluster, refused={"a": error, "c": error})
    assert [gates(cluster, name) for name in "ab"] == [[], []]
    assert (done.gates, done.taken_back, done.left) == (2, 0, {})
    assert done.without_requests == {"default/a": str(error), "default/c": str(error)}
    assert not any(WRITTEN_DOWN in of(cluster, name)["metadata"]["annotations"] for name in "ac")


def test_one_that_is_made_anew_meanwhile_is_looked_at_again_and_keeps_no_other_held():
    cluster = FakeCluster([opportunistic("a"), pod("b")])
    pods, api = Pods(cluster), Anew()
    done = drained(cluster, way_out=WayOut(Reading(pods, PodResizer(api)), pods, "promote"))
    assert [gates(cluster, name) for name in "ab"] == [[], []]
    assert (done.gates, done.left, api.uids) == (2, {}, [])


def test_one_whose_annotation_names_no_container_of_it_is_looked_at_once():
    cluster = FakeCluster([opportunistic("a")])
    pods = Pods(cluster)
    pods.restore = pods.done.append
    done = drained(cluster, way_out=WayOut(pods, pods, "promote"))
    assert (len(pods.done), gates(cluster, "a"), done.left) == (1, [], {})


@pytest.mark.parametrize(("way", "verb"), [("promote", "restore"), ("evict", "evict")])
def test_those_that_run_are_promoted_or_evicted_as_chosen_and_no_regular_pod(way, verb):
    running = [
        opportunistic("given", node="n1", gates=()),
        opportunistic("promoted", cpu="2", node="n1", gates=()),
        opportunistic("only", annotation=None, node="n1", gates=()),
        pod("regular", node="n1", gates=()),
    ]
    pods, done = way_out(FakeCluster(running), way)
    assert pods.done == [(verb, "given", [])]
    assert (done.taken_back, done.left) == (1, {})


def test_one_that_a_budget_protects_is_named_and_the_next_one_goes():
    cluster = FakeCluster([opportunistic(name, node="n1", gates=()) for name in "ab"])
    pods, done = way_out(cluster, "evict", protected={"a"})
    assert pods.done == [("evict", "b", [])]
    assert done.left == {"default/a": "a PodDisruptionBudget forbids its eviction now"}


def test_one_that_waits_without_our_gate_gets_its_requests_back_too():
    cluster = FakeCluster([opportunistic("a", gates=())])
    assert [pod.name for pod in look(cluster, OURS).held] == ["a"]
    pods, done = way_out(cluster)
    assert pods.done == [("restore", "a", [])]
    assert done.left == {}


def test_a_look_says_how_many_run_and_changes_nothing():
    cluster = FakeCluster([opportunistic("a", node="n1", gates=()), pod("regular", node="n1", gates=())])
    assert look(cluster, OURS).opportunistic == 1
