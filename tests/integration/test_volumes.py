"""Held pods with local volumes, on a real control plane: they are nominated for the nodes of their volumes."""

import json
import subprocess
import sys
import time

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import RequestRefused, request
from tests.chart.rbac import CONTROL_ACCOUNT
from tests.integration.dovetail import control_on, dovetail_on
from tests.integration.test_order_by_filter import ordered, pod
from tests.integration.test_placement import refusal
from tests.integration.test_release import bound, held

CLAIMS, VOLUMES = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/dovetail-control"
STORAGE = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}


@pytest.fixture
def client(control_plane):
    return control_plane.client()


@pytest.fixture
def local(client):
    """Return what makes a volume that is on one node, and its claim, which the volume controller binds."""
    made = []

    def make(name, node):
        on = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec = {
            **STORAGE, "capacity": {"storage": "1Gi"}, "local": {"path": "/data"},
            "claimRef": {"namespace": "default", "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on]}]}},
        }  # fmt: skip
        request(client, "POST", VOLUMES, {"metadata": {"name": name}, "spec": spec})
        made.append(f"{VOLUMES}/{name}")
        asked = {**STORAGE, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
        request(client, "POST", CLAIMS, {"metadata": {"name": name}, "spec": asked})
        made.append(f"{CLAIMS}/{name}")
        workload.wait_until(
            lambda: request(client, "GET", f"{CLAIMS}/{name}")["status"]["phase"] == "Bound", 30, f"{name} to be bound"
        )

    yield make
    workload.delete_all_pods(client)
    for path in reversed(made):
        request(client, "DELETE", path)
        workload.wait_until(lambda path=path: _is_gone(client, path), 30, f"{path} to go")


def _is_gone(client, path):
    try:
        request(client, "GET", path)
    except RequestRefused as refusal:
        return refusal.status == 404
    return False


def user(name, claim, **more):
    made = held(name, **more)
    made["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return made


def explained(control_plane, name):
    command = [sys.executable, "-m", "extender", "explain", "pod", f"default/{name}", "--json"]
    ran = subprocess.run(
        [*command, f"--kubeconfig={control_plane.admin}"], capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(ran.stdout)


def nodes(*cpu):
    return [builders.node(f"node-{number}", cpu=cores, memory="64Gi") for number, cores in enumerate(cpu)]


def test_a_held_pod_goes_to_the_node_of_its_volume_and_one_whose_node_is_full_waits_for_it(
    control_plane, client, local
):
    with dovetail_on(control_plane), control_on(control_plane):
        workload.create_nodes(client, nodes(2, 16))
        local("first", "node-0")
        local("second", "node-0")
        workload.create_pods(client, [held("plain", cpu=4), user("one", "first", cpu="1500m")])
        bound(client, 2)
        assert workload.bound_pods(client) == {"plain": "node-1", "one": "node-0"}
        told = workload.pod(client, "one")["metadata"]["annotations"]
        assert told["dovetail.dev/nominated"] == "node-0"

        workload.create_pods(client, [user("two", "second")])  # half a core is left on node-0, 12 on node-1
        time.sleep(2)
        two = workload.pod(client, "two")
        assert [it["name"] for it in two["spec"]["schedulingGates"]] == ["dovetail.dev/hold"]
        assert "dovetail.dev/nominated" not in two["metadata"].get("annotations", {})
        found = explained(control_plane, "two")
        assert found["reason"] == {
            "kind": "no-room",
            "text": "the nodes with room do not allow it: node selector, affinity, taints, cordons or volumes;"
            " on those that do, mostly cpu is short",
        }
        assert [(it["name"], it["allowed"]) for it in found["nodes"]] == [("node-0", True), ("node-1", False)]
        assert found["change"] == ["0.5 cores more free on node node-0"]

        request(client, "DELETE", "/api/v1/namespaces/default/pods/one", gracePeriodSeconds=0)
        workload.wait_until(lambda: workload.bound_pods(client).get("two") == "node-0", 20, "the pod to have its node")


def test_volumes_that_are_bound_while_pods_wait_are_heard_of(control_plane, client, local):
    places = {f"late-{number}": f"node-{number}" for number in range(3)}
    with dovetail_on(control_plane), control_on(control_plane):
        workload.create_nodes(client, nodes(16, 16, 16))
        gates = ("dovetail.dev/hold", "example.com/data")
        workload.create_pods(client, [user(name, name, gates=gates) for name in places])
        time.sleep(0.5)
        for name, node in places.items():
            local(name, node)
        ours = {"spec": {"schedulingGates": [{"name": "dovetail.dev/hold"}]}}
        for name in places:
            path = f"/api/v1/namespaces/default/pods/{name}"
            request(client, "PATCH", path, ours, content="application/merge-patch+json")
        bound(client, 3)
        assert workload.bound_pods(client) == places
        told = {it["metadata"]["name"]: it["metadata"]["annotations"] for it in workload.pods(client)}
        assert {name: it["dovetail.dev/nominated"] for name, it in told.items()} == places


def test_with_order_by_filter_a_pod_that_its_volume_keeps_from_room_keeps_nobody_else_from_it(
    control_plane, client, local
):
    with ordered(control_plane, control=False, queues=[{"name": "q", "policy": "fifo"}]) as dovetail:
        workload.create_nodes(client, nodes(1, 1))
        local("fourth", "node-0")
        workload.create_pods(client, [pod("blocker", on="node-0")])
        bound(client, 1)
        first = pod("first")
        first["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "fourth"}}]
        workload.create_pods(client, [first])
        workload.wait_until(lambda: refusal(client, "first"), 20, "the first in line to be refused")
        time.sleep(1)  # its age is in whole seconds
        workload.create_pods(client, [pod("second")])
        # A plan that put the first one on node-1 would keep that for it for twenty seconds, as it is never asked about.
        workload.wait_until(lambda: workload.bound_pods(client).get("second") == "node-1", 10, "the second to go")
        assert {it["resource"] for it in dovetail.decisions("listed")} >= {
            "persistentvolumeclaims",
            "persistentvolumes",
        }


def test_who_may_not_read_volumes_goes_on_without(control_plane, client):
    with dovetail_on(control_plane):
        rules = request(client, "GET", ROLE)["rules"]
        without = [it for it in rules if "persistentvolumes" not in it["resources"]]
        assert len(without) == len(rules) - 1
        request(client, "PATCH", ROLE, {"rules": without}, content="application/merge-patch+json")
        control = control_plane.client(CONTROL_ACCOUNT)
        workload.wait_until(lambda: _refuses(control, VOLUMES), 20, "the rights to be gone")
        with control_on(control_plane, name="control-without"):
            workload.create_nodes(client, nodes(2))
            workload.create_pods(client, [held("plain")])
            bound(client, 1)
            text = control_plane.log("control-without").read_text()
        log = [json.loads(line) for line in text.splitlines() if line]
        assert [it["what"] for it in log if it["event"] == "goes on without" and it["status"] == 403] == [
            "persistentvolumeclaims"
        ]


def _refuses(client, path):
    try:
        request(client, "GET", path)
    except RequestRefused as refusal:
        return refusal.status == 403
    return False
