"""Helm itself against a real API server: what it installs there, and how it goes when it is removed.

KWOK only pretends to run the pods: what the drain hook does is tested in test_draining.
"""

import json
import os
import subprocess

import pytest

from charts.render import CHART, NAMESPACE, VALUES
from lab.controlplane import builders, pins, workload
from lab.controlplane.building import build
from lab.controlplane.rest import RequestRefused, request
from tests.integration.gating import CRDS, MANAGED, POLICIES, is_gated, namespace, require_policies

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
OURS = {"labelSelector": "app.kubernetes.io/name=dovetail"}
CLUSTER_WIDE = ("clusterroles", "clusterrolebindings")


@pytest.fixture
def helm(control_plane):
    """Return what runs helm on the release `dovetail`, with the values of a second scheduler and these."""
    program = build.provide([pins.helm()], cache=build.default_cache(os.environ))["helm"].path
    place = ("--namespace", NAMESPACE, "--kubeconfig", control_plane.admin)

    def run(verb, *flags, release="dovetail", **values):
        given = {"image": {"tag": "test"}, **VALUES["scheduler"], **values}
        more = (CHART, "--values", "-", "--create-namespace") if verb == "install" else ()
        command = [program, verb, release, *more, *place, *flags]
        return subprocess.run(
            [str(word) for word in command],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    yield run
    run("uninstall", "--no-hooks", "--ignore-not-found")
    for path in leftovers(control_plane.client()):
        request(control_plane.client(), "DELETE", path, propagationPolicy="Background")


def leftovers(client):
    """Return the paths of what is there of ours, but for pods, which go with their owners."""
    kinds = [f"/apis/rbac.authorization.k8s.io/v1/{it}" for it in CLUSTER_WIDE]
    kinds += [f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"]
    kinds += [f"/api/v1/namespaces/{NAMESPACE}/configmaps", DEPLOYMENTS, POLICIES, CRDS]
    found = []
    for kind in kinds:
        try:
            listed = request(client, "GET", kind, **OURS)["items"]
        except RequestRefused:  # no policies before 1.36
            listed = []
        found += [f"{kind}/{it['metadata']['name']}" for it in listed]
    return found


def names(client, path):
    return {it["metadata"]["name"] for it in request(client, "GET", path, **OURS)["items"]}


def test_on_a_cluster_that_has_them_helm_installs_the_policy_by_itself(control_plane, helm):
    require_policies(control_plane)
    client = control_plane.client()

    done = helm("install")

    assert done.returncode == 0, done.stderr
    assert names(client, DEPLOYMENTS) == {"dovetail", "dovetail-control"}
    assert "kubectl label namespace NAME dovetail.dev/managed=true" in done.stdout
    with namespace(control_plane, "by-helm", MANAGED) as space:
        gang = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
        workload.wait_until(lambda: is_gated(client, space, **gang), 30, "the policy to be active")


def test_on_an_older_cluster_helm_installs_the_rest_and_says_what_is_missing(control_plane, helm):
    try:
        require_policies(control_plane)
    except pytest.skip.Exception:
        pass
    else:
        pytest.skip("this API server has MutatingAdmissionPolicies: run with --kubernetes 1.34")

    refused = helm("install", gating={"policy": {"enabled": True}})
    assert refused.returncode != 0
    assert "which is there from Kubernetes 1.36" in refused.stderr

    done = helm("install")
    assert done.returncode == 0, done.stderr
    assert "No policy gates pods: this cluster (Kubernetes v1.34" in done.stdout


def test_a_second_release_is_refused(control_plane, helm):
    assert helm("install").returncode == 0

    refused = helm("install", release="another", gating={"policy": {"enabled": False}})

    assert refused.returncode != 0
    assert 'ClusterRole "dovetail-extender"' in refused.stderr
    assert names(control_plane.client(), DEPLOYMENTS) == {"dovetail", "dovetail-control"}


def test_an_uninstall_waits_for_the_hook_and_leaves_nothing(control_plane, start_scheduler, helm):
    client = control_plane.client()
    start_scheduler()
    workload.create_nodes(client, [builders.node("node-1")])
    # By this annotation KWOK lets pods end well after a second.
    done = helm("install", podAnnotations={"dovetail.dev/duration": "1"})
    assert done.returncode == 0, done.stderr

    done = helm("uninstall", "--timeout", "60s")

    assert done.returncode == 0, done.stderr
    events = request(client, "GET", f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    jobs = {it["reason"] for it in events if it["involvedObject"]["name"] == "dovetail-drain"}
    assert "Completed" in jobs
    assert workload.wait_until(lambda: not leftovers(client), 20, "everything to be gone")


def test_a_hook_that_cannot_run_stops_the_uninstall_and_nothing_is_removed(control_plane, helm):
    client = control_plane.client()
    assert helm("install").returncode == 0
    installed = set(leftovers(client))

    done = helm("uninstall", "--timeout", "3s")  # there is no node, so its pod stays Pending

    assert done.returncode != 0
    assert installed <= set(leftovers(client))
    hooks = {path.rpartition("/")[2] for path in set(leftovers(client)) - installed}
    assert hooks == {"dovetail-drain"}

    done = helm("uninstall", "--no-hooks")
    assert done.returncode == 0, done.stderr
    left = {"dovetail-drain"}  # a CustomResourceDefinition takes a moment to go
    workload.wait_until(lambda: {path.rpartition("/")[2] for path in leftovers(client)} == left, 20, "the rest to go")
