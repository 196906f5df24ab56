"""Many nodes and pods at once, what became of them, and waiting for it."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kubernetes.client import ApiClient

from lab.controlplane.builders import Manifest
from lab.controlplane.rest import RequestRefused, request
from lab.errors import ControlPlaneError

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"

_THREADS = 8
_PAGE = 5000
_Result = TypeVar("_Result")


def create_nodes(client: ApiClient, manifests: Iterable[Manifest], *, ready: float | None = 60) -> list[Manifest]:
    """Create nodes, eight at a time, and wait up to `ready` seconds until pods may go to all of them.

    A new node carries a not-ready taint from admission until the controller manager has seen that it is ready.
    """
    created = _in_threads(lambda manifest: request(client, "POST", NODES, manifest), manifests)
    if ready is not None:
        names = {node["metadata"]["name"] for node in created}
        wait_until(lambda: names <= _untainted(client), ready, f"{len(names)} nodes to lose their not-ready taint")
    return created


def create_pods(client: ApiClient, manifests: Iterable[Manifest]) -> list[Manifest]:
    """Create pods, eight at a time; they reach the server in nearly this order."""
    return _in_threads(lambda manifest: create_pod(client, manifest), manifests)


def create_pod(client: ApiClient, manifest: Manifest) -> Manifest:
    """Create one pod, and return it as the API server has it."""
    return dict(request(client, "POST", _pods_of(manifest["metadata"]["namespace"]), manifest))


def pods(client: ApiClient, **query: object) -> list[Manifest]:
    """Return all pods of all namespaces; `fieldSelector` and `labelSelector` may narrow them."""
    return _all_pages(client, PODS, query)


def nodes(client: ApiClient, **query: object) -> list[Manifest]:
    """Return all nodes."""
    return _all_pages(client, NODES, query)


def pod(client: ApiClient, name: str, namespace: str = "default") -> Manifest:
    """Return one pod."""
    return dict(request(client, "GET", f"{_pods_of(namespace)}/{name}"))


def bound_pods(client: ApiClient) -> dict[str, str]:
    """Return the node's name by pod's name, for every pod that has one."""
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods(client) if pod["spec"].get("nodeName")}


def phases(client: ApiClient) -> dict[str, str]:
    """Return the phase by pod's name."""
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in pods(client)}


def resize(client: ApiClient, name: str, **requests: str | int) -> Manifest:
    """Change the requests of the container `main` of a pod in place, as in `resize(client, "a", cpu="2")`."""
    amounts = {key: str(value) for key, value in requests.items()}
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": amounts}}]}}
    path = f"{_pods_of('default')}/{name}/resize"
    return dict(request(client, "PATCH", path, patch, content="application/strategic-merge-patch+json"))


def delete_all_pods(client: ApiClient, *, seconds: float = 60) -> None:
    """Delete every pod of every namespace at once and wait until they are gone."""
    _delete(client, PODS, pods, seconds)


def delete_pods(client: ApiClient, namespace: str, label: str) -> None:
    """Delete the pods of a namespace that have a label, and wait until they are gone."""
    request(client, "DELETE", _pods_of(namespace), gracePeriodSeconds=0, labelSelector=label)
    wait_until(lambda: not pods(client, labelSelector=label), 60, f"the pods labelled {label} to be deleted")


def delete_all_nodes(client: ApiClient) -> None:
    """Delete every node and wait until they are gone."""
    _delete(client, NODES, nodes, 60)


def wait_served(client: ApiClient, kind: Manifest) -> None:
    """Wait until the API server serves the objects of a CustomResourceDefinition."""
    spec = kind["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    wait_until(lambda: _is_there(client, path), 60, f"{path} to be served")


def wait_until(condition: Callable[[], _Result], seconds: float, what: str, *, every: float = 0.1) -> _Result:
    """Return the condition's first true result; raise if that takes longer than `seconds`."""
    limit = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > limit:
            raise ControlPlaneError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(every)
    return result


def _delete(client: ApiClient, path: str, remaining: Callable[[ApiClient], list[Manifest]], seconds: float) -> None:
    def gone() -> bool:
        left = remaining(client)
        collections = {_collection(path, manifest) for manifest in left}
        for collection in collections:
            request(client, "DELETE", collection, gracePeriodSeconds=0)
        return not left

    wait_until(gone, seconds, f"everything at {path} to be deleted")


def _collection(path: str, manifest: Manifest) -> str:
    namespace = manifest["metadata"].get("namespace")
    return path if namespace is None else _pods_of(namespace)


def _is_there(client: ApiClient, path: str) -> bool:
    try:
        request(client, "GET", path)
    except RequestRefused:
        return False
    return True


def _pods_of(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def _untainted(client: ApiClient) -> set[str]:
    return {
        node["metadata"]["name"]
        for node in nodes(client)
        if not any(taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints", ()))
    }


def _all_pages(client: ApiClient, path: str, query: dict[str, object]) -> list[Manifest]:
    manifests: list[Manifest] = []
    page: dict[str, Any] = {"limit": _PAGE, **query}
    while True:
        answer = request(client, "GET", path, **page)
        manifests += answer["items"]
        if not answer["metadata"].get("continue"):
            return manifests
        page["continue"] = answer["metadata"]["continue"]


def _in_threads(send: Callable[[Manifest], Any], manifests: Iterable[Manifest]) -> list[Manifest]:
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(send, manifests))
