"""The rights that the chart ships, for tests that act as its ServiceAccount."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from charts.render import NAMESPACE, ROOT
from extender.controlplane.rest import request
from extender.controlplane.running import ControlPlane

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:dovetail"
"""The user name that the bindings mean; a client certificate with this common name has exactly their rights."""

_RBAC_KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def rendered_rbac(mode: str) -> list[dict[str, Any]]:
    """Return the namespace, and the roles and bindings that the chart ships in `mode` ("scheduler" or "existing").

    They come from `manifests/`, which another test holds equal to the chart, so this needs no helm.
    """
    text = (ROOT / "manifests" / f"{mode}.yaml").read_text(encoding="utf-8")
    return [found for found in yaml.safe_load_all(text) if found["kind"] in ("Namespace", *_RBAC_KINDS)]


@contextmanager
def granted(control_plane: ControlPlane, mode: str) -> Iterator[str]:
    """Apply `rendered_rbac(mode)`, give the user name that has these rights now, and take them away at the end.

    Not to be nested: "scheduler" holds the rights of "existing".
    """
    objects = rendered_rbac(mode)
    control_plane.apply(objects)
    try:
        yield ACCOUNT
    finally:
        for it in reversed(objects):
            if it["kind"] in _RBAC_KINDS:
                request(control_plane.client(), "DELETE", _path(it))


def _path(of: dict[str, Any]) -> str:
    space = f"/namespaces/{of['metadata']['namespace']}" if "namespace" in of["metadata"] else ""
    return f"/apis/{of['apiVersion']}{space}/{of['kind'].lower()}s/{of['metadata']['name']}"
