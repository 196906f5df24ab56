"""Who may run on idle room and where, and what refuses a resize, on a real control plane with a real Prometheus.

Nodes of 8 cores are full to the last millicore and use half of it.
"""

import json
from collections import Counter

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import RequestRefused, request
from lab.live.machines import REGULAR_REQUESTS
from tests.integration.test_opportunistic import (
    CORES,
    HOLD,
    audited,
    create_job,
    is_opportunistic,
    names_of,
    prometheus_program,
    stage,
)

__all__ = ["audited", "prometheus_program", "stage"]
pytestmark = pytest.mark.own_control_plane

EVENTS = "/api/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"
THRESHOLD = "dovetail.dev/opportunistic-threshold"


@pytest.fixture
def scene(stage):
    """Give the stage without nodes."""
    try:
        stage.tests += 1
        stage.part = {}
        stage.machines.begin(stage.used)
        stage.logged = len(stage._log_lines())
        yield stage
    finally:
        stage.end()


def full_nodes(scene, *manifests):
    """Create nodes that are full by requests and at half use, and wait until they are measured."""
    workload.create_nodes(scene.client, manifests)
    names = [manifest["metadata"]["name"] for manifest in manifests]
    regular = [
        builders.pod(f"regular-{name}-{n}", cpu=2, memory="4Gi", spec={"nodeName": name})
        for name in names
        for n in range(4)
    ]
    workload.create_pods(scene.client, regular)
    scene.wait_measured(len(manifests))


def node(name, *, threshold=None, capacity=None, swap=None):
    manifest = builders.node(name, cpu=CORES, memory="16Gi")
    if threshold is not None:
        manifest["metadata"]["annotations"] = {THRESHOLD: threshold}
    if capacity is not None:
        manifest["status"]["capacity"] = {**manifest["status"]["allocatable"], "cpu": str(capacity)}
    if swap is not None:
        manifest["status"]["nodeInfo"]["swap"] = {"capacity": swap}
    return manifest


def started(scene):
    """Return how many opportunistic pods each node has."""
    return Counter(pod["spec"]["nodeName"] for pod in scene.opportunistic().values())


def test_nodes_say_how_full_opportunistic_pods_may_make_them_what_is_their_own_and_whether_they_can_have_any(scene):
    scene.machines.system = {"aside": 2000.0, "busy": 2000.0}
    full_nodes(
        scene,
        node("aside", capacity=CORES + 2),
        node("busy"),
        node("low", threshold="0.6"),
        node("off", threshold="off"),
        node("broken", threshold="lots"),
        node("swap", swap=2**30),
    )
    create_job(scene, "who", 40)
    # Of 8 cores pods use 4. aside: 6.4 - 4 = 2.4, as 2 more are its own; busy: 6.4 - 6 = 0.4; low: 4.8 - 4 = 0.8.
    expected = {"aside": 14, "busy": 2, "low": 4}
    workload.wait_until(lambda: started(scene) == expected, 90, f"{expected}")
    scene.after_looks(5)
    assert started(scene) == expected
    events = request(scene.client, "GET", EVENTS)["items"]
    (told,) = [it["message"] for it in events if it["involvedObject"]["kind"] == "Node" and it["type"] == "Warning"]
    assert told.startswith(f"annotation {THRESHOLD}: 'lots'; accepted: a number from 0 to 0.95")

    # A change counts at once: what is off now gets pods, and who runs goes on.
    for name, text in (("off", "0.6"), ("low", "off")):
        patch = {"metadata": {"annotations": {THRESHOLD: text}}}
        request(scene.client, "PATCH", f"/api/v1/nodes/{name}", patch, content=MERGE)
    workload.wait_until(lambda: started(scene) == {**expected, "off": 4}, 60, "pods on the node that was off")
    assert scene.log("evicted") == []


@pytest.fixture
def namespaces(scene):
    """Give what creates a namespace with labels and one more object in it; all are deleted at the end."""
    made = []

    def create(name, *, labels=None, kind="", spec=None):
        request(scene.client, "POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels or {}}})
        made.append(name)
        if kind:
            body = {"metadata": {"name": "bounds"}, "spec": spec}
            request(scene.client, "POST", f"/api/v1/namespaces/{name}/{kind}", body)
        # The admission of pods waits for the namespace's account.
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        workload.wait_until(lambda: exists(scene, account), 30, "the default account")
        return f"/apis/batch/v1/namespaces/{name}/jobs"

    yield create
    for name in made:
        for group, kind in (("batch/v1", "jobs"), ("apps/v1", "replicasets")):
            path = f"/apis/{group}/namespaces/{name}/{kind}"
            for it in request(scene.client, "GET", path)["items"]:
                request(scene.client, "DELETE", f"{path}/{it['metadata']['name']}", propagationPolicy="Background")
        request(scene.client, "DELETE", f"/api/v1/namespaces/{name}")


def exists(scene, path):
    try:
        return request(scene.client, "GET", path)
    except RequestRefused:
        return None


def refused_resizes(scene, prefix):
    """Return how often control was refused a resize of each pod."""
    lines = map(json.loads, scene.audit.read_text().splitlines())
    return Counter(
        line["objectRef"]["name"]
        for line in lines
        if line["objectRef"].get("subresource") == "resize"
        and line["objectRef"]["name"].startswith(prefix)
        and line["responseStatus"]["code"] == 403
    )


def events_of(scene, namespace, reason):
    events = request(scene.client, "GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return {event["involvedObject"]["name"]: event["message"] for event in events if event["reason"] == reason}


def test_where_a_limit_range_refuses_requests_of_0_pods_stay_regular_and_held_and_their_reason_is_told(
    scene, namespaces
):
    limits = [{"type": "Container", "min": {"cpu": "100m"}}]
    path = namespaces("bounded", kind="limitranges", spec={"limits": limits})
    full_nodes(scene, node("n1"))
    create_job(scene, "bounded", 6, path=path)
    workload.wait_until(lambda: events_of(scene, "bounded", "StaysRegular"), 60, "the refusal")
    scene.after_looks(10)

    told = events_of(scene, "bounded", "StaysRegular")
    assert all("minimum cpu usage per Container is 100m" in message for message in told.values())
    refused = refused_resizes(scene, "bounded")
    assert set(refused.values()) == {1}
    assert refused.keys() == told.keys()
    for name in names_of(scene.pods(), "bounded"):
        pod = scene.pods()[name]
        assert pod["spec"]["schedulingGates"] == [{"name": HOLD}]
        assert REGULAR_REQUESTS not in pod["metadata"].get("annotations", {})
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "170m", "memory": "256Mi"}
    assert scene.opportunistic() == {}


def test_where_a_resource_quota_refuses_a_promotion_the_pod_runs_on_as_it_is_and_is_not_asked_again_soon(
    scene, namespaces
):
    # The quota holds one of two pods as it is requested: the second would be one too many.
    path = namespaces("capped", kind="resourcequotas", spec={"hard": {"requests.cpu": "400m"}})
    full_nodes(scene, node("n1"))
    create_job(scene, "capped", 2, path=path)
    workload.wait_until(lambda: len(names_of(scene.opportunistic(), "capped")) == 2, 60, "two opportunistic pods")
    patch = {"spec": {"hard": {"requests.cpu": "200m"}}}
    bounds = "/api/v1/namespaces/capped/resourcequotas/bounds"
    request(scene.client, "PATCH", bounds, patch, content=MERGE)
    request(scene.client, "DELETE", "/api/v1/namespaces/default/pods/regular-n1-0")

    (refused,) = workload.wait_until(lambda: events_of(scene, "capped", "PromotionRefused"), 60, "the refusal")
    scene.after_looks(10)
    assert "exceeded quota: bounds" in events_of(scene, "capped", "PromotionRefused")[refused]
    assert refused_resizes(scene, "capped") == {refused: 1}
    pods = scene.pods()
    assert is_opportunistic(pods[refused])
    assert pods[refused]["status"]["phase"] == "Running"
    (promoted,) = names_of(pods, "capped") - {refused}
    assert pods[promoted]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "170m", "memory": "256Mi"}


def test_namespaces_choose_for_their_pods_and_pods_before_them_and_autoscaled_ones_stay_regular(scene, namespaces):
    label = "dovetail.dev/opportunistic"
    never = namespaces("strict", labels={label: "never"})
    namespaces("generous", labels={label: "allowed"})
    full_nodes(scene, node("n1"))
    create_job(scene, "strict", 2, path=never)
    create_job(scene, "stubborn", 2, path=never, annotations={label: "allowed"})
    namespaces("usual")
    odd = namespaces("odd", labels={label: "maybe"})
    create_job(scene, "odd", 2, path=odd)
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "sized"}
    scaling = {"metadata": {"name": "sized"}, "spec": {"maxReplicas": 1, "scaleTargetRef": target}}
    path = "/apis/autoscaling/v2/namespaces/generous/horizontalpodautoscalers"
    request(scene.client, "POST", path, scaling)
    for namespace, name in (("generous", "served"), ("generous", "sized"), ("usual", "plain")):
        create_set(scene, namespace, name)
    expected = {"stubborn": 2, "served": 1}

    def by_kind():
        return Counter(name.split("-")[0] for name in scene.opportunistic())

    workload.wait_until(lambda: by_kind() == expected, 60, f"{expected}")
    scene.after_looks(5)
    assert by_kind() == expected
    told = [it for it in request(scene.client, "GET", EVENTS)["items"] if it["involvedObject"]["kind"] == "Namespace"]
    assert [(it["involvedObject"]["name"], it["type"]) for it in told] == [("odd", "Warning")]
    assert told[0]["message"].startswith(f"label {label}: 'maybe'; accepted: allowed, never")
    request(scene.client, "PATCH", "/api/v1/namespaces/strict", {"metadata": {"labels": {label: None}}}, content=MERGE)
    workload.wait_until(
        lambda: by_kind() == {**expected, "strict": 2}, 60, "those whose namespace says nothing any more"
    )


def create_set(scene, namespace, name):
    """Create a ReplicaSet of one held pod."""
    pod = builders.pod(
        name, cpu="170m", memory="256Mi", scheduler_name="dovetail", spec={"schedulingGates": [{"name": HOLD}]}
    )
    template = {"metadata": {"labels": {"app": name}}, "spec": {**pod["spec"], "restartPolicy": "Always"}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    request(scene.client, "POST", path, {"metadata": {"name": name}, "spec": spec})
