"""The chart's admission policies on a real API server: who gets our gate at creation."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import yaml
from kubernetes.client import ApiClient

from charts.render import GATING_API, NAMESPACE, VALUES, template
from lab.controlplane import pins, workload
from lab.controlplane.building import build
from lab.controlplane.rest import RequestRefused, request
from lab.controlplane.running import ControlPlane

_API = "/apis/admissionregistration.k8s.io/v1"
_KIND = "CustomResourceDefinition"
_PATHS = {
    "MutatingAdmissionPolicyBinding": f"{_API}/mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": f"{_API}/mutatingadmissionpolicies",
    _KIND: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}
_MANAGED = "dovetail.dev/managed"


@contextmanager
def gating(control_plane: ControlPlane, order: str) -> Iterator[None]:
    """Have pods of the namespace `default` gated as the chart does it with this order; take all of it away again.

    On a Kubernetes that has no such policies (before 1.36) nothing is gated, as with the chart. The Lease of whoever
    runs beside must be in the chart's namespace, which is made: the policies look for what belongs to it.
    """
    client = control_plane.client()
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {_MANAGED: "true"}}},
    ]
    control_plane.apply(namespaces)
    objects = [document for document in chart_objects("scheduler", order) if document["kind"] in _PATHS]
    if not install(control_plane, objects):
        objects = []
    try:
        yield
    finally:
        for kind, path in _PATHS.items():
            for document in objects:
                if document["kind"] == kind:
                    _delete(client, f"{path}/{document['metadata']['name']}")
        labels = {"metadata": {"labels": {_MANAGED: None}}}
        request(client, "PATCH", "/api/v1/namespaces/default", labels, content="application/merge-patch+json")


def _delete(client: ApiClient, path: str) -> None:
    """Delete an object; a request whose answer was lost is repeated, and then it is gone already."""
    try:
        request(client, "DELETE", path)
    except RequestRefused as refused:
        if refused.status != 404:
            raise


def install(control_plane: ControlPlane, objects: Sequence[dict[str, Any]]) -> bool:
    """Install policies, and first the kinds that they read; return False where the API server knows no policies."""
    if not policies_are_served(control_plane):
        return False
    kinds = [document for document in objects if document["kind"] == _KIND]
    control_plane.apply(kinds)
    for kind in kinds:
        workload.wait_served(control_plane.client(), kind)
    control_plane.apply([document for document in objects if document not in kinds])
    return True


def policies_are_served(control_plane: ControlPlane) -> bool:
    """Tell whether the API server knows MutatingAdmissionPolicies (Kubernetes 1.36)."""
    return "mutatingadmissionpolicies" in control_plane.resources(_API)


@cache
def chart_objects(mode: str, order: str) -> list[dict[str, Any]]:
    """Return all that the chart renders in this mode with this order, but for hooks. Not to be changed."""
    helm = build.provide([pins.helm()], cache=build.default_cache(os.environ))["helm"].path
    values = {**VALUES[mode], "config": {"order": order}}
    documents = yaml.safe_load_all(template(helm, values, "--api-versions", GATING_API, "--no-hooks"))
    return [document for document in documents if document]
