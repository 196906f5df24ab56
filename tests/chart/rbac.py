"""The rights that the chart ships, for tests that act as its ServiceAccount."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from charts.render import NAMESPACE, ROOT
from lab.controlplane.rest import request
from lab.controlplane.running import ControlPlane

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:dovetail"
"""The user name that the bindings mean; a client certificate with this common name has exactly their rights."""

CONTROL_ACCOUNT = f"{ACCOUNT}-control"
"""Who `dovetail control` is."""

DRAIN_ACCOUNT = f"{ACCOUNT}-drain"
"""Who the hook is that runs `dovetail drain` before an uninstall."""

EVICT = {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}
"""The rule that the chart adds to those of `dovetail control` where a timeout of reclaim is on (test_order)."""

ON_IDLE = [
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]},
    {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get"]},
    {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]},
    {"apiGroups": ["autoscaling.k8s.io"], "resources": ["verticalpodautoscalers"], "verbs": ["list"]},
]
"""The rules that the chart adds to those of `dovetail control` where pods run on idle resources, beside EVICT."""

ORDER_RULES = [
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "watch"]},
    {
        "apiGroups": ["scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.k8s.io"],
        "resources": ["podgroups"],
        "verbs": ["list", "watch"],
    },
    {"apiGroups": [""], "resources": ["persistentvolumeclaims", "persistentvolumes"], "verbs": ["list", "watch"]},
]
"""What the extender may read besides with `order: filter` and `auto`."""

HOLD_RULE = {
    "apiGroups": ["dovetail.dev"],
    "resources": ["holds"],
    "resourceNames": [f"{NAMESPACE}.dovetail-control"],
    "verbs": ["get", "patch"],
}
"""What extender and control may do besides with `order: auto`; control may also create a Hold."""

_RBAC_KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def rendered_rbac(file: str) -> list[dict[str, Any]]:
    """Return the namespace, and the roles and bindings that `manifests/FILE.yaml` ships.

    A file is a mode, "scheduler" or "existing" (extender and control), or "drain". They come from `manifests/`, which
    another test holds equal to the chart, so this needs no helm.
    """
    text = (ROOT / "manifests" / f"{file}.yaml").read_text(encoding="utf-8")
    return [found for found in yaml.safe_load_all(text) if found["kind"] in ("Namespace", *_RBAC_KINDS)]


@contextmanager
def granted(control_plane: ControlPlane, mode: str, objects: list[dict[str, Any]] | None = None) -> Iterator[str]:
    """Give ACCOUNT the rights that the chart ships in `mode`, and CONTROL_ACCOUNT its own; take them away at the end.

    Gives ACCOUNT, the name of the extender's user; `dovetail control` runs beside it as CONTROL_ACCOUNT. Not to be
    nested: "scheduler" holds the rights of "existing". Instead of what `manifests/` have, `objects` are the namespace,
    roles and bindings that the chart renders with other values.
    """
    with _there(control_plane, objects or rendered_rbac(mode)):
        yield ACCOUNT


@contextmanager
def granted_drain(control_plane: ControlPlane) -> Iterator[str]:
    """Give DRAIN_ACCOUNT the rights of the hook that runs before an uninstall, and take them away at the end."""
    with _applied(control_plane, "drain"):
        yield DRAIN_ACCOUNT


@contextmanager
def granted_eviction(control_plane: ControlPlane) -> Iterator[None]:
    """Give CONTROL_ACCOUNT the right that the chart adds where a timeout of reclaim is on; take it away at the end."""
    with _granted_more(control_plane, "dovetail-control-evicts", [EVICT]):
        yield


@contextmanager
def granted_opportunistic(control_plane: ControlPlane) -> Iterator[None]:
    """Give CONTROL_ACCOUNT the rights that the chart adds for pods on idle resources; take them away at the end."""
    with _granted_more(control_plane, "dovetail-control-resizes", [*ON_IDLE, EVICT]):
        yield


@contextmanager
def _granted_more(control_plane: ControlPlane, name: str, rules: list[dict[str, Any]]) -> Iterator[None]:
    """Give CONTROL_ACCOUNT further rights by a ClusterRole of this name, and take them away at the end."""
    named = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    role = {**named, "kind": "ClusterRole", "rules": rules}
    binding = {
        **named,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": CONTROL_ACCOUNT}],
    }
    with _there(control_plane, [role, binding]):
        yield


@contextmanager
def _applied(control_plane: ControlPlane, file: str) -> Iterator[None]:
    with _there(control_plane, rendered_rbac(file)):
        yield


@contextmanager
def _there(control_plane: ControlPlane, objects: list[dict[str, Any]]) -> Iterator[None]:
    control_plane.apply(objects)
    try:
        yield
    finally:
        for it in reversed(objects):
            if it["kind"] in _RBAC_KINDS:
                request(control_plane.client(), "DELETE", _path(it))


def _path(of: dict[str, Any]) -> str:
    space = f"/namespaces/{of['metadata']['namespace']}" if "namespace" in of["metadata"] else ""
    return f"/apis/{of['apiVersion']}{space}/{of['kind'].lower()}s/{of['metadata']['name']}"
