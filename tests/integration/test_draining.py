"""The way out, under exactly the rights of the hook that runs before an uninstall."""

import json
import subprocess
import sys
import threading
from collections import Counter

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import STRATEGIC, request
from tests.chart.rbac import CONTROL_ACCOUNT, granted, granted_drain
from tests.integration.dovetail import BY_ORDER
from tests.integration.gating import BINDINGS, HOLD, POLICIES, gates, is_gated, namespace, policy, require_policies

OTHERS = {"name": "example.com/quota"}
PROMISED = "dovetail.dev/nominated"
WRITTEN_DOWN = "dovetail.dev/regular-requests"


@pytest.fixture
def drain(control_plane):
    """Return what runs `dovetail drain` as the hook's account, and gives what it said."""
    with granted_drain(control_plane) as account:
        kubeconfig = control_plane.kubeconfig(account)

        def run(*flags):
            command = [sys.executable, "-m", "extender", "drain", "--kubeconfig", str(kubeconfig), *flags]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout) if "--json" in flags else done.stdout

        yield run


def held_pods(count, space="default", *, gate=(), **told):
    """Return pods of which every fourth carries a gate of somebody else's as well."""
    for number in range(count):
        worn = [*gate, *([OTHERS] if number % 4 == 0 else [])]
        spec = {"schedulingGates": worn} if worn else {}
        yield builders.pod(f"pod-{number:03d}", namespace=space, spec=spec, **told)


def nominate(client, pod, node, promised):
    """Write a nomination, and the annotation by which we know ours."""
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
    body = {"metadata": {"annotations": {PROMISED: promised}}, "status": {"nominatedNodeName": node}}
    request(client, "PATCH", path, body, content=STRATEGIC)


def worn(client):
    """Return how many pods carry each set of gates."""
    return Counter(tuple(sorted(it["name"] for it in gates(pod))) for pod in workload.pods(client))


def test_drain_leaves_no_gate_nomination_or_policy_of_ours_and_all_of_others(control_plane, drain):
    client = control_plane.client()
    require_policies(control_plane)
    both, ours, theirs = (OTHERS["name"], HOLD["name"]), (HOLD["name"],), (OTHERS["name"],)
    both = tuple(sorted(both))
    with namespace(control_plane, "drained") as space, policy(control_plane, space):
        pods = workload.create_pods(client, held_pods(200, space))
        for number, pod in enumerate(pods[:60]):  # 40 nominations of ours, 20 that somebody else has overwritten
            nominate(client, pod, "node-1" if number % 3 else "node-2", promised="node-1")
        assert worn(client) == {ours: 150, both: 50}

        plan = drain("--dry-run", "--json")
        assert (plan["policies"], plan["gates"], plan["nominations"]) == (["dovetail-gating"], 200, 40)
        assert worn(client) == {ours: 150, both: 50}

        told = drain("--yes", "--json")

        assert not is_gated(client, space)  # at once, not some seconds later
        assert worn(client) == {(): 150, theirs: 50}
        assert [request(client, "GET", path)["items"] for path in (POLICIES, BINDINGS)] == [[], []]
        left = Counter(pod["status"].get("nominatedNodeName") for pod in workload.pods(client))
        assert left == {None: 180, "node-2": 20}
        assert not [pod for pod in workload.pods(client) if PROMISED in pod["metadata"].get("annotations", {})]
        assert {key: told[key] for key in ("policies", "gates", "nominations", "left", "waitingForOurScheduler")} == {
            "policies": ["dovetail-gating"],
            "gates": 200,
            "nominations": 40,
            "left": {},
            "waitingForOurScheduler": 200,  # nothing runs here that would bind them
        }

        before = {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in workload.pods(client)}
        again = drain("--yes", "--json")
        assert (again["policies"], again["gates"], again["nominations"], again["left"]) == ([], 0, 0, {})
        assert before == {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in workload.pods(client)}


def test_pods_that_are_created_while_it_drains_are_not_left_behind(control_plane, drain):
    client = control_plane.client()
    require_policies(control_plane)
    enough = threading.Event()

    def keep_creating(space):
        number = 0
        while not enough.wait(0.02):
            workload.create_pods(client, [builders.pod(f"late-{number:04d}", namespace=space)])
            number += 1

    with namespace(control_plane, "busy") as space, policy(control_plane, space):
        creating = threading.Thread(target=keep_creating, args=(space,))
        creating.start()
        try:
            workload.wait_until(lambda: worn(client)[(HOLD["name"],)] > 10, 20, "pods that are gated")
            told = drain("--yes", "--json")
        finally:
            enough.set()
            creating.join()

        assert told["gates"] > 10
        assert worn(client).keys() == {()}


@BY_ORDER
def test_it_may_run_while_control_releases(control_plane, start_scheduler, drain, order):
    """Half of 80 pods fit at once (4 nodes of 10 cores); the others wait gated, and then just Pending."""
    client = control_plane.client()
    start_scheduler()
    workload.create_nodes(client, [builders.node(f"node-{number}", cpu=10) for number in range(4)])
    settings = {"order": order, "control": {"schedulers": ["default-scheduler"]}}
    with granted(control_plane, "scheduler"):
        control_plane.add_control(settings, user=CONTROL_ACCOUNT)
        try:
            gated = {"schedulingGates": [HOLD]}
            workload.create_pods(client, [builders.pod(f"pod-{number:02d}", cpu=1, spec=gated) for number in range(80)])
            workload.wait_until(lambda: workload.bound_pods(client), 30, "the first release")

            told = drain("--yes", "--json")

            assert told["left"] == {}
            workload.wait_until(lambda: len(workload.bound_pods(client)) == 40, 30, "the nodes to be full")
            waiting = [it for it in workload.pods(client) if not it["spec"].get("nodeName")]
            assert [gates(pod) for pod in waiting] == [[]] * 40
            assert not [pod for pod in waiting if PROMISED in pod["metadata"].get("annotations", {})]
            assert not [pod for pod in waiting if "nominatedNodeName" in pod["status"]]
            assert "forbidden" not in control_plane.log("dovetail-control").read_text().lower()
        finally:
            control_plane.remove_scheduler("dovetail-control")


def test_a_tenant_s_quota_and_templates_that_carry_the_gate_keep_nobody_from_an_uninstall(control_plane, drain):
    """A pod asks for 2 cores of a quota of 1, and lost its requests; others are made with the gate all the time."""
    client = control_plane.client()
    enough = threading.Event()

    def keep_creating(space):
        number = 0
        while not enough.wait(0.02):
            made = [builders.pod(f"again-{number}", namespace=space, spec={"schedulingGates": [HOLD]})]
            workload.create_pods(client, made)
            number += 1

    with namespace(control_plane, "capped") as capped, namespace(control_plane, "stubborn") as stubborn:
        quota = {"metadata": {"name": "bounds"}, "spec": {"hard": {"requests.cpu": "1"}}}
        request(client, "POST", f"/api/v1/namespaces/{capped}/resourcequotas", quota)
        path = f"/api/v1/namespaces/{capped}/resourcequotas/bounds"
        workload.wait_until(lambda: request(client, "GET", path)["status"].get("used"), 20, "the quota to count")
        workload.create_nodes(client, [builders.node("n1")])
        wanted = {WRITTEN_DOWN: json.dumps({"containers": {"main": {"cpu": "2"}}})}
        nothing = {"cpu": "0", "memory": "0", "limits": {"memory": "1Gi"}}
        specs = {"held": {"schedulingGates": [HOLD]}, "runs": {"nodeName": "n1"}}
        workload.create_pods(
            client,
            [builders.pod(name, namespace=capped, annotations=wanted, spec=specs[name], **nothing) for name in specs],
        )
        creating = threading.Thread(target=keep_creating, args=(stubborn,))
        creating.start()
        try:
            workload.wait_until(lambda: worn(client)[(HOLD["name"],)] > 10, 20, "pods with the gate")
            told = drain("--yes", "--json")
        finally:
            enough.set()
            creating.join()

        assert told["left"] == {}
        assert set(told["withoutRequests"]) == {f"{capped}/held", f"{capped}/runs"}
        reasons = [reason.partition(":")[2] for reason in told["withoutRequests"].values()]
        assert all("exceeded quota: bounds" in reason for reason in reasons), reasons
        kept = {pod["metadata"]["name"]: pod for pod in workload.pods(client)}
        assert gates(kept["held"]) == []
        assert not any(WRITTEN_DOWN in kept[name]["metadata"].get("annotations", {}) for name in ("held", "runs"))


def test_without_a_policy_gates_from_templates_are_removed_and_it_is_said_who_still_waits(control_plane, drain):
    client = control_plane.client()
    workload.create_pods(client, held_pods(8, gate=[HOLD], scheduler_name="dovetail"))

    told = drain("--yes")

    assert worn(client) == {(): 6, (OTHERS["name"],): 2}
    assert "gates removed                   8" in told
    assert "pods that wait for dovetail: 8. If that scheduler is removed too, nobody places them" in told
