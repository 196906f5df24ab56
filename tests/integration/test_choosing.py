"""`filter` chooses nodes for a real kube-scheduler, which binds there, or leaves it the choice where others count."""

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import request
from tests.integration.dovetail import dovetail_on, equal_nodes, over_allocated
from tests.integration.test_placement import place

POLICY = "no-binding-there"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture
def client(control_plane):
    return control_plane.client()


@pytest.fixture
def no_binding_to(client):
    """Have the API server refuse every binding to one node."""
    made = []

    def refuse(node):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
        policy = {
            "metadata": {"name": POLICY},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": f"object.target.name != '{node}'"}],
            },
        }
        binding = {"metadata": {"name": POLICY}, "spec": {"policyName": POLICY, "validationActions": ["Deny"]}}
        for kind, body in (("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)):
            request(client, "POST", f"{ADMISSION}/{kind}", body)
            made.append(f"{ADMISSION}/{kind}/{POLICY}")
        workload.wait_until(lambda: _is_refused(client, node), 30, "the policy to be active")

    yield refuse
    for path in made:
        request(client, "DELETE", path)


def _is_refused(client, node):
    """Say whether a binding to the node is refused by now, tried out without doing it."""
    workload.create_pods(client, [builders.pod("probe", cpu=1, scheduler_name="nobody")])
    body = {"metadata": {"name": "probe"}, "target": {"kind": "Node", "name": node}}
    try:
        request(client, "POST", "/api/v1/namespaces/default/pods/probe/binding", body, dryRun="All")
    except Exception as error:
        return POLICY in str(error)
    finally:
        request(client, "DELETE", "/api/v1/namespaces/default/pods/probe", gracePeriodSeconds=0)
    return False


def ours(name, **options):
    return builders.pod(name, scheduler_name="dovetail", **{"cpu": 1, "memory": "4Gi", **options})


def test_pods_go_where_filter_chose_and_kube_scheduler_scores_nothing(control_plane, client):
    with dovetail_on(control_plane) as dovetail:
        workload.create_nodes(client, equal_nodes(builders, 20, capacity=None))  # of the pods' own shape
        bound = place(client, *(ours(f"chosen-{count:02d}") for count in range(40)), seconds=60)
        name_of = {f"default/{name}": name for name in bound}  # the log has the pods of other tests as well
        assert not [it for it in dovetail.decisions("prioritize") if it["pod"] in name_of]
        decisions = [it for it in dovetail.decisions("filter") if it["pod"] in name_of and "node" in it]
        chosen = {name_of[it["pod"]]: it["node"] for it in decisions}
        assert chosen == {name: bound[name] for name in chosen}
        assert len(chosen) >= 39  # all but one, perhaps, that had a single node left
        assert len(set(bound.values())) == 3  # 16 on each: the first fills before another is begun
        assert not over_allocated(client)


@pytest.mark.parametrize("order", ["gates", "auto"])
def test_a_binding_that_is_refused_is_not_tried_again_on_that_node_and_its_room_is_free(
    control_plane, client, no_binding_to, order
):
    with dovetail_on(control_plane, settings={"order": order}) as dovetail:
        nodes = equal_nodes(builders, 3)
        nodes[0]["metadata"]["labels"]["fuller"] = "yes"
        workload.create_nodes(client, nodes)
        place(client, ours("filler", spec={"nodeSelector": {"fuller": "yes"}}))
        no_binding_to("node-000")
        bound = place(client, *(ours(f"large-{count}", cpu=15, memory="60Gi") for count in range(2)), seconds=60)
        assert sorted(bound.values()) == ["node-001", "node-002"]
        chosen = [it for it in dovetail.decisions("filter") if it["pod"].startswith("default/large-")]
        assert len([it for it in chosen if it.get("node") == "node-000"]) <= 2  # each of the two once at most
        dovetail.wait_current()
        assert dovetail.metric("dovetail_pods", state="in_flight") == 0


def test_a_preferred_node_and_replicas_are_left_to_kube_scheduler(control_plane, client):
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-002"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
    with dovetail_on(control_plane) as dovetail:
        nodes = equal_nodes(builders, 3)
        for node in nodes:
            node["metadata"]["labels"]["kubernetes.io/hostname"] = node["metadata"]["name"]
        workload.create_nodes(client, nodes)
        assert place(client, ours("drawn", spec={"affinity": {"nodeAffinity": preferred}})) == {"drawn": "node-002"}
        service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
        request(client, "POST", "/api/v1/namespaces/default/services", service)
        try:
            workload.wait_until(lambda: _is_spread(dovetail), 15, "the Service to be known")
            bound = place(client, *(ours(f"web-{count}", labels={"app": "web"}) for count in range(3)))
        finally:
            request(client, "DELETE", "/api/v1/namespaces/default/services/web")
        assert sorted(bound.values()) == ["node-000", "node-001", "node-002"]
        assert dovetail.metric("dovetail_choices_total", by="spread") >= 3


def _is_spread(dovetail):
    meta = {"name": "probe", "namespace": "default", "uid": "probe", "labels": {"app": "web"}}
    asked = {"Pod": {"metadata": meta, "spec": {"containers": []}}, "NodeNames": ["node-000", "node-001"]}
    return len(dovetail.call("filter", asked)[1]["NodeNames"]) == 2
