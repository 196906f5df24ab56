"""The policy that gates pods, put before the API server as the manifests hold it."""

import copy
from contextlib import contextmanager

import pytest
import yaml

from charts.render import ROOT
from lab.controlplane import builders, workload
from lab.controlplane.rest import RequestRefused, request

HOLD = {"name": "dovetail.dev/hold"}
API = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{API}/mutatingadmissionpolicies"
BINDINGS = f"{API}/mutatingadmissionpolicybindings"
MANAGED = {"dovetail.dev/managed": "true"}


def require_policies(control_plane):
    """Skip the test where the API server has no such policies."""
    kinds = {it["name"] for it in request(control_plane.client(), "GET", API)["resources"]}
    if "mutatingadmissionpolicies" not in kinds:
        pytest.skip("this API server has no MutatingAdmissionPolicy in v1: it is there from Kubernetes 1.36")


def policy_objects(mode, without=()):
    """Return policy and binding of one mode, without the conditions of these names."""
    policy, binding = yaml.safe_load_all((ROOT / "manifests" / "gating" / f"{mode}.yaml").read_text())
    conditions = policy["spec"]["matchConditions"]
    assert {it["name"] for it in conditions} >= set(without)
    policy["spec"]["matchConditions"] = [it for it in conditions if it["name"] not in without]
    return [policy, binding]


@contextmanager
def namespace(control_plane, name, labels=MANAGED):
    """Make a namespace, ready for pods; it is emptied and deleted at the end, which goes on after us."""
    client = control_plane.client()
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}
    control_plane.apply([manifest])
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    workload.wait_until(lambda: _there(client, account), 20, f"the namespace {name} to have its account")
    try:
        yield name
    finally:
        request(client, "DELETE", f"/api/v1/namespaces/{name}")


@contextmanager
def policy(control_plane, space, mode="scheduler", without=()):
    """Install the policy, wait until it gates pods of the namespace `space`; take it away again, and wait for that."""
    client = control_plane.client()
    control_plane.apply(policy_objects(mode, without))
    try:
        workload.wait_until(lambda: is_gated(client, space), 30, "the policy to be active")
        yield
    finally:
        for path in (BINDINGS, POLICIES):
            for it in request(client, "GET", path)["items"]:
                request(client, "DELETE", f"{path}/{it['metadata']['name']}")
        workload.wait_until(lambda: not is_gated(client, space), 30, "the policy to be gone")


def is_gated(client, space):
    """Return whether a plain pod would be gated in this namespace now."""
    return HOLD in gates(try_pod(client, builders.pod("probe", namespace=space)))


def try_pod(client, manifest):
    """Return what would become of this pod; it is not created."""
    path = f"/api/v1/namespaces/{manifest['metadata']['namespace']}/pods"
    return request(client, "POST", path, copy.deepcopy(manifest), dryRun="All", fieldValidation="Strict")


def gates(pod):
    """Return the gates of a pod."""
    return pod["spec"].get("schedulingGates", [])


def _there(client, path):
    try:
        return request(client, "GET", path)
    except RequestRefused:
        return None
