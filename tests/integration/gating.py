"""The policies that gate pods, put before the API server as the chart renders them."""

import copy
from contextlib import contextmanager, suppress

import pytest

from charts.render import NAMESPACE
from extender.adapters.kube.holding import HELD_LABEL, NAMESPACE_LABEL, namespace_of
from lab.controlplane import builders, workload
from lab.controlplane.gating import chart_objects
from lab.controlplane.rest import RequestRefused, request

HOLD = {"name": "dovetail.dev/hold"}
API = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{API}/mutatingadmissionpolicies"
BINDINGS = f"{API}/mutatingadmissionpolicybindings"
MANAGED = {"dovetail.dev/managed": "true"}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/holds.dovetail.dev"
HOLDS = "/apis/dovetail.dev/v1alpha1/holds"
HOLD_OBJECT = f"{HOLDS}/{NAMESPACE}.dovetail-control"


def require_policies(control_plane):
    """Skip the test where the API server has no such policies."""
    kinds = {it["name"] for it in request(control_plane.client(), "GET", API)["resources"]}
    if "mutatingadmissionpolicies" not in kinds:
        pytest.skip("this API server has no MutatingAdmissionPolicy in v1: it is there from Kubernetes 1.36")


def policy_objects(mode, without=()):
    """Return policy and binding of one mode with `order: gates`, without the conditions of these names."""
    kinds = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    policy, binding = copy.deepcopy(of_kinds(chart_objects(mode, "gates"), *kinds))
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


def of_kinds(objects, *kinds):
    """Return the objects of these kinds."""
    return [it for it in objects if it["kind"] in kinds]


@contextmanager
def auto_policies(control_plane, space, mode="scheduler"):
    """Install the policies of `order: auto`, without the kind; wait until they hold a gang; take them away again."""
    client = control_plane.client()
    gang = {"labels": {"scheduling.x-k8s.io/pod-group": "probe"}}
    kinds = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    control_plane.apply(of_kinds(chart_objects(mode, "auto"), *kinds))
    try:
        workload.wait_until(lambda: is_gated(client, space, **gang), 30, "the policy to be active")
        yield
    finally:
        for path in (BINDINGS, POLICIES):
            for it in request(client, "GET", path)["items"]:
                request(client, "DELETE", f"{path}/{it['metadata']['name']}")
        workload.wait_until(lambda: not is_gated(client, space, **gang), 30, "the policies to be gone")


@contextmanager
def hold_kind(control_plane):
    """Have the API server serve the kind Hold for the length of the block."""
    client = control_plane.client()
    control_plane.apply(of_kinds(chart_objects("scheduler", "auto"), "CustomResourceDefinition"))
    try:
        workload.wait_until(lambda: _there(client, HOLDS), 20, "the kind Hold to be served")
        yield
    finally:
        request(client, "DELETE", CRD)
        workload.wait_until(lambda: _there(client, CRD) is None, 20, "the kind Hold to be gone")


def write_hold(client, held):
    """Write the object as `dovetail control` does, as the administrator."""
    with suppress(RequestRefused):
        request(client, "DELETE", HOLD_OBJECT)
    body = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "Hold", "spec": {"held": held}}
    name = HOLD_OBJECT.rpartition("/")[2]
    labels = {HELD_LABEL: str(held).lower(), NAMESPACE_LABEL: namespace_of(name)}
    request(client, "POST", HOLDS, {**body, "metadata": {"name": name, "labels": labels}})


def is_gated(client, space, **told):
    """Return whether a plain pod, or one like this, would be gated in this namespace now."""
    return HOLD in gates(try_pod(client, builders.pod("probe", namespace=space, **told)))


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
