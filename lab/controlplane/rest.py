"""JSON requests to the API server as one user, and every manifest applied by its kind."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from kubernetes import config
from kubernetes.client import ApiClient

from lab.errors import ControlPlaneError

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class RequestRefused(ControlPlaneError):
    """The API server answered with an error; `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def client(kubeconfig: Path) -> ApiClient:
    """Return a client for the current context of a kubeconfig."""
    opened: ApiClient = config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]
    return opened


def request(
    client: ApiClient,
    method: str,
    path: str,
    body: object = None,
    *,
    content: str = "application/json",
    **query: object,
) -> Any:  # noqa: ANN401 - whatever JSON the server answers
    """Send one request and return the decoded answer; raise `RequestRefused` on an error.

    The typed models are left out on purpose: they cost several times what the request does.
    """
    address = client.configuration.host + path + (f"?{urlencode(query)}" if query else "")
    headers = {"Accept": "application/json", "Content-Type": content}
    encoded = None if body is None else json.dumps(body)
    answer = client.rest_client.pool_manager.request(method, address, body=encoded, headers=headers)
    if answer.status >= 300:
        raise RequestRefused(answer.status, f"{method} {path}: {_message(answer.data)}")
    return json.loads(answer.data)


def apply(client: ApiClient, manifests: Iterable[Mapping[str, Any]], **query: object) -> list[dict[str, Any]]:
    """Apply manifests on the server's side, in order; `dryRun="All"` only has them checked."""
    kinds: dict[str, dict[str, tuple[str, bool]]] = {}
    answers = []
    for manifest in manifests:
        version = manifest["apiVersion"]
        if version not in kinds:
            kinds[version] = _kinds(client, version, manifest["kind"])
        path = _path(manifest, kinds[version])
        answers.append(
            request(client, "PATCH", path, manifest, content=APPLY, fieldManager="dovetail", force="true", **query)
        )
    return answers


def _path(manifest: Mapping[str, Any], kinds: Mapping[str, tuple[str, bool]]) -> str:
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    if kind not in kinds:
        raise ControlPlaneError(
            f"the API server knows no kind {kind!r} in {version}; it has {', '.join(sorted(kinds))}"
        )
    plural, namespaced = kinds[kind]
    space = f"/namespaces/{metadata.get('namespace', 'default')}" if namespaced else ""
    return f"{_root(version)}{space}/{plural}/{metadata['name']}"


def _kinds(client: ApiClient, version: str, wanted: str) -> dict[str, tuple[str, bool]]:
    try:
        resources = request(client, "GET", _root(version))["resources"]
    except RequestRefused as error:
        if error.status != 404:
            raise
        raise ControlPlaneError(
            f"the API server knows no {wanted!r} of {version}: its CustomResourceDefinition is not installed there"
        ) from error
    return {
        resource["kind"]: (resource["name"], resource["namespaced"])
        for resource in resources
        if "/" not in resource["name"]
    }


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _message(data: bytes) -> str:
    try:
        return str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        return data.decode(errors="replace")[:500]
