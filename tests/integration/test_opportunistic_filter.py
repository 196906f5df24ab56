"""Opportunistic pods on a real kube-scheduler: what they count fits anywhere, and they go where they were promised."""

import pytest

from extender.adapters.http.request_context import NO_PROMISE
from extender.control.opportunistic.demotion import annotation, requests_of, resize_to_zero
from lab.controlplane import builders, workload
from lab.controlplane.rest import MERGE, STRATEGIC, request
from tests.integration.dovetail import dovetail_on

HOLD = "dovetail.dev/hold"
GIB = 2**30


@pytest.fixture
def client(control_plane):
    return control_plane.client()


def demote(client, name, *, promised=None, nominated=False):
    """Make a held pod opportunistic as `control` does, and take its gate away."""
    path, document = f"/api/v1/namespaces/default/pods/{name}", workload.pod(client, name)
    requests = requests_of(document)
    request(client, "PATCH", path, annotation(document), content=MERGE)
    document = request(
        client, "PATCH", f"{path}/resize", resize_to_zero(document, requests, 8 * GIB), content=STRATEGIC
    )
    assert document["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "0"
    if promised:
        promise = {"metadata": {"annotations": {"dovetail.dev/nominated": promised}}}
        promise |= {"status": {"nominatedNodeName": promised}} if nominated else {}
        request(client, "PATCH", f"{path}/status", promise, content=MERGE)
    request(client, "PATCH", path, {"spec": {"schedulingGates": None}}, content=MERGE)


def test_on_full_nodes_opportunistic_pods_are_bound_where_they_were_promised_and_else_wait(control_plane, client):
    with dovetail_on(control_plane) as dovetail:
        nodes = [f"node-{n}" for n in range(2)]
        workload.create_nodes(client, [builders.node(name, cpu=4, memory="8Gi") for name in nodes])
        workload.create_pods(
            client, [builders.pod(f"full-{n}", cpu=4, memory="8Gi", scheduler_name="dovetail") for n in range(2)]
        )
        workload.wait_until(lambda: len(workload.bound_pods(client)) == 2, 30, "the nodes to be full")
        # Which nodes, the promise alone says for the first four: nothing else would keep them from the other.
        wanted = {f"demoted-{n}": nodes[n % 2] for n in range(4)} | {"nominated": nodes[1]}
        held = {"schedulingGates": [{"name": HOLD}]}
        workload.create_pods(
            client,
            [
                builders.pod(name, cpu=2, memory="2Gi", scheduler_name="dovetail", spec=held)
                for name in (*wanted, "unpromised")
            ],
        )

        demote(client, "unpromised")
        for name, node in wanted.items():
            demote(client, name, promised=node, nominated=name == "nominated")

        workload.wait_until(lambda: len(workload.bound_pods(client)) >= 7, 30, "the promised pods to be bound")
        found = workload.bound_pods(client)
        assert {name: found.get(name) for name in wanted} == wanted
        assert "unpromised" not in found
        refused = workload.pod(client, "unpromised")["status"]["conditions"][0]
        assert (refused["reason"], NO_PROMISE in refused["message"]) == ("Unschedulable", True), refused["message"]
        calls = [line for line in dovetail.decisions("filter") if line["pod"] == "default/unpromised"]
        assert len(calls) <= 12, "a constant refusal is no hot loop: one call for each event at most"
