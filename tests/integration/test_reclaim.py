"""Reclaim on a real control plane, under exactly the chart's rights: evictions go through the Eviction API."""

import json
import urllib.request

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import request
from lab.errors import ControlPlaneError
from tests.chart.rbac import granted_eviction
from tests.integration.dovetail import BY_ORDER, control_on, dovetail_on

HOLD = "dovetail.dev/hold"
RECLAIM = {"minimumShareSeconds": 2, "evictionsPerMinute": 600}
SETTINGS = {
    "queues": [{"name": "a"}, {"name": "b", "minimumShare": 0.25}],
    "reclaim": RECLAIM,
    "control": {"planSeconds": 0.5},
}
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
def client(control_plane):
    return control_plane.client()


@pytest.fixture
def budgets(client):
    """Make PodDisruptionBudgets; they are removed at the end."""
    yield lambda name, spec: request(client, "POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})
    for it in request(client, "GET", BUDGETS)["items"]:
        request(client, "DELETE", f"{BUDGETS}/{it['metadata']['name']}")


def replica_set(client, name, replicas, *, queue, cpu=1, node=None, annotations=None):
    labels = {"app": name, "dovetail.dev/queue": queue}
    only = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    pod = builders.pod("x", cpu=cpu, scheduler_name="dovetail", spec={"schedulingGates": [{"name": HOLD}], **only})
    made = {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations or {}},
                "spec": {**pod["spec"], "restartPolicy": "Always"},
            },
        },
    }
    request(client, "POST", "/apis/apps/v1/namespaces/default/replicasets", made)


def running(client, app):
    """Return the pods of a ReplicaSet that have a node and are not being deleted, by name."""
    return {
        it["metadata"]["name"]: it
        for it in workload.pods(client)
        if it["metadata"].get("labels", {}).get("app") == app
        and it["spec"].get("nodeName")
        and not it["metadata"].get("deletionTimestamp")
    }


def events(client, reason):
    found = request(client, "GET", "/api/v1/namespaces/default/events")["items"]
    return {it["involvedObject"]["name"]: it["message"] for it in found if it["reason"] == reason}


def allowed(client, budget):
    return request(client, "GET", f"{BUDGETS}/{budget}").get("status", {}).get("disruptionsAllowed")


def reclaims(url, metric="dovetail_reclaims_total"):
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(it.split()[-1]) for it in lines if it.startswith(metric))


def settled(client, seconds, **counts):
    """Wait until these have so many running pods, and for two seconds more; return the pods then."""

    def now():
        return {app: len(running(client, app)) for app in counts}

    workload.wait_until(lambda: now() == counts, seconds, f"{counts} running")
    with pytest.raises(ControlPlaneError):
        workload.wait_until(lambda: now() != counts, 2, "a change")
    return {app: running(client, app) for app in counts}


@BY_ORDER
def test_a_queue_gets_its_minimum_share_from_the_youngest_pods_of_another(control_plane, client, order):
    settings = {**SETTINGS, "order": order}
    with (
        dovetail_on(control_plane, settings={"order": order}),
        granted_eviction(control_plane),
        control_on(control_plane, **settings) as url,
    ):
        workload.create_nodes(client, [builders.node(f"n{n}", cpu=8, memory="32Gi") for n in range(2)])
        replica_set(client, "old", 8, queue="a")
        old = settled(client, 30, old=8)["old"]
        replica_set(client, "young", 8, queue="a")
        young = settled(client, 30, young=8)["young"]
        replica_set(client, "late", 10, queue="b")

        # b is sure of a quarter of 16 cores: 4 pods. The others of a stay, and those that were made anew wait.
        now = settled(client, 40, late=4, old=8, young=4)
        assert now["old"].keys() == old.keys(), "none of the older ones went"
        assert now["young"].keys() < young.keys()
        assert reclaims(url) == 4
        gone = young.keys() - now["young"].keys()
        told = workload.wait_until(
            lambda: found if gone <= (found := events(client, "Reclaimed")).keys() else None, 5, "4 events"
        )
        assert {told[name] for name in told.keys() & young.keys()} == {
            "evicted so that queue b gets its minimum share; queue a is above its fair share"
        }


def test_a_pod_disruption_budget_holds(control_plane, client, budgets):
    with dovetail_on(control_plane), granted_eviction(control_plane), control_on(control_plane, **SETTINGS) as url:
        workload.create_nodes(client, [builders.node("n0", cpu=8, memory="32Gi")])
        budgets("most", {"minAvailable": 7, "selector": {"matchLabels": {"app": "first"}}})
        replica_set(client, "first", 8, queue="a")
        before = settled(client, 30, first=8)["first"]
        workload.wait_until(lambda: allowed(client, "most") == 1, 30, "the budget to allow one")
        replica_set(client, "late", 3, queue="b")

        # A quarter of 8 cores are 2 pods, but of the eight only one may go.
        now = settled(client, 40, late=1, first=7)
        assert now["first"].keys() < before.keys()
        assert reclaims(url) == 1


def test_room_is_made_where_the_input_is_though_younger_pods_run_elsewhere(control_plane, client):
    settings = {**SETTINGS, "locality": {"levels": [], "waitSeconds": [600]}}
    with dovetail_on(control_plane), granted_eviction(control_plane), control_on(control_plane, **settings) as url:
        workload.create_nodes(client, [builders.node(f"n{n}", cpu=8, memory="32Gi") for n in range(2)])
        replica_set(client, "old", 8, queue="a", node="n0")
        settled(client, 30, old=8)
        replica_set(client, "young", 8, queue="a", node="n1")
        young = settled(client, 30, young=8)["young"]
        replica_set(client, "late", 6, queue="b", annotations={"dovetail.dev/input": json.dumps({"n0": "1Gi"})})

        # A quarter of 16 cores are 4 pods.
        now = settled(client, 40, late=4, old=4, young=8)
        assert now["young"].keys() == young.keys()
        assert {it["spec"]["nodeName"] for it in now["late"].values()} == {"n0"}
        assert reclaims(url) == 4
        assert reclaims(url, 'dovetail_placements_total{level="node"}') == 4


def test_without_a_timeout_nobody_is_evicted(control_plane, client):
    settings = {**SETTINGS, "reclaim": {}}
    with dovetail_on(control_plane), control_on(control_plane, **settings) as url:
        workload.create_nodes(client, [builders.node("n0", cpu=8, memory="32Gi")])
        replica_set(client, "first", 8, queue="a")
        settled(client, 30, first=8)
        replica_set(client, "late", 3, queue="b")
        settled(client, 10, first=8, late=0)
        assert reclaims(url) == 0


def test_minimum_shares_beyond_the_cluster_are_warned_of_at_start(control_plane):
    queues = [{"name": "a", "minimumShare": 0.9}, {"name": "b", "minimumShare": 0.6}]
    with dovetail_on(control_plane), control_on(control_plane, queues=queues, name="warned-control"):
        lines = map(json.loads, control_plane.log("warned-control").read_text().splitlines())
        (told,) = [it["problem"] for it in lines if it["level"] == "warning" and it["event"] == "settings"]
        assert told.endswith("(a 0.9, b 0.6); they count as a 0.6, b 0.4")
