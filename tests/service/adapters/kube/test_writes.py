"""What is written to pods: path, patch type, and which very pod it is for."""

import pytest

from extender.adapters.kube.api import JSON_PATCH, MERGE_PATCH, Refused
from extender.adapters.kube.gates import GateWriter
from extender.adapters.kube.writes import PodWriter
from extender.cluster.model import Pod
from extender.errors import ClusterError

PATH = "/api/v1/namespaces/shop/pods/web"


class Api:
    def __init__(self, status=None):
        self.calls, self.status = [], status

    def post(self, path, body):
        self.calls.append((path, body))
        if self.status is not None:
            raise Refused(f"POST {path}: {self.status}", self.status)

    def patch(self, path, body, content):
        self.calls.append((path, body, content))


@pytest.fixture
def api():
    return Api()


def pod(**more):
    return Pod("u1", "shop", "web", {}, resource_version=42, **more)


def test_a_nomination_says_whose_it_is_in_the_same_write_and_only_at_the_version_seen(api):
    GateWriter(api).nominate(pod(), "n7")
    meta = {"uid": "u1", "resourceVersion": "42", "annotations": {"dovetail.dev/nominated": "n7"}}
    assert api.calls == [(f"{PATH}/status", {"metadata": meta, "status": {"nominatedNodeName": "n7"}}, MERGE_PATCH)]


def test_a_release_removes_our_gate_only_where_it_is_the_only_one(api):
    GateWriter(api).release(pod())
    [(path, body, content)] = api.calls
    assert (path, content) == (PATH, JSON_PATCH)
    assert body == [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "test", "path": "/spec/schedulingGates", "value": [{"name": "dovetail.dev/hold"}]},
        {"op": "remove", "path": "/spec/schedulingGates"},
    ]


@pytest.mark.parametrize(("nominated", "status"), [("n7", {"nominatedNodeName": None}), ("n8", {}), (None, {})])
def test_clearing_removes_our_nomination_and_leaves_one_that_is_not_ours(api, nominated, status):
    GateWriter(api).clear(pod(nominated=nominated, promised="n7"))
    [(path, body, _)] = api.calls
    assert path == f"{PATH}/status"
    assert body["metadata"]["annotations"] == {"dovetail.dev/nominated": None}
    assert body["status"] == status


def test_an_eviction_is_asked_for_of_this_very_pod():
    api = Api()
    assert PodWriter(api).evict(pod())
    [(path, body)] = api.calls
    assert path == f"{PATH}/eviction"
    assert body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web", "namespace": "shop"},
        "deleteOptions": {"preconditions": {"uid": "u1"}},
    }


@pytest.mark.parametrize(("status", "asked"), [(429, False), (404, True)])
def test_an_eviction_that_a_budget_forbids_is_not_now_and_a_pod_that_is_gone_needs_none(status, asked):
    assert PodWriter(Api(status)).evict(pod()) == asked


@pytest.mark.parametrize("status", [403, 409, 500])
def test_an_eviction_that_fails_otherwise_is_an_error(status):
    with pytest.raises(ClusterError):
        PodWriter(Api(status)).evict(pod())


def test_an_event_names_the_pod_and_what_it_says():
    api = Api()
    PodWriter(api).tell(pod(), "Reclaimed", "evicted so that queue b gets its fair share")
    [(path, event)] = api.calls
    assert path == "/api/v1/namespaces/shop/events"
    assert event["involvedObject"]["uid"] == "u1"
    assert (event["type"], event["reason"]) == ("Normal", "Reclaimed")
    assert event["message"] == "evicted so that queue b gets its fair share"


def test_a_wake_up_changes_an_annotation_of_that_very_pod_and_its_text_differs_from_version_to_version(api):
    PodWriter(api).wake(pod())
    meta = {"uid": "u1", "annotations": {"dovetail.dev/turn": "42"}}
    assert api.calls == [(PATH, {"metadata": meta}, MERGE_PATCH)]
