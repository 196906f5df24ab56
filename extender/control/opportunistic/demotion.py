"""The writes that make a waiting pod opportunistic, and a pod regular again: as patches of the pod, from its spec.

1. `annotation`: what the pod requests is written down.
2. `resize_to_zero`: its requests of CPU and memory become 0. The QoS class must stay Burstable, which takes a limit:
   where the pod has none at all, one container gets a memory limit. A limit can be raised later, and never removed.
3. `resize_back`: its requests are what they were, and a limit of ours is raised.
4. `no_annotation`: nothing of ours is left but that limit.

Each can be made again at any time: it is None where the pod is so already. Each names the pod's UID, so that no other
pod of the same name is changed. Source: Kubernetes 1.36, the subresource `resize`, by a strategic merge patch.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from extender.cluster.pods.opportunistic import REGULAR_REQUESTS_ANNOTATION, RegularRequests, Resizable
from extender.cluster.resources import CPU, MEMORY, parse_quantity
from extender.errors import BadQuantity

Document = Mapping[str, Any]
"""An object as the API server gives it, decoded from JSON."""

Patch = dict[str, Any]


def requests_of(pod: Document) -> RegularRequests:
    """Return what a pod requests by its spec, and which container would get a limit."""
    spec = part(pod, "spec")
    return RegularRequests(
        containers=_by_name(items(spec, "containers")),
        init_containers=_by_name(items(spec, "initContainers")),
        pod=_requested(spec),
        limited=() if has_limit(pod) else tuple(container["name"] for container in items(spec, "containers")[:1]),
    )


def has_limit(pod: Document) -> bool:
    """Say whether a pod with requests of 0 has a limit that makes it Burstable; pod-level resources decide alone."""
    spec = part(pod, "spec")
    if any(part(part(spec, "resources"), kind) for kind in ("requests", "limits")):
        return bool(_positive(_resizable(spec, "limits")))
    return any(_positive(_resizable(container, "limits")) for container in containers_of(pod))


def annotation(pod: Document) -> Patch | None:
    """Return the merge patch that writes down what a pod requests; None where that is written.

    Raises BadAnnotation where it cannot be written down.
    """
    text = requests_of(pod).written()
    written = part(part(pod, "metadata"), "annotations").get(REGULAR_REQUESTS_ANNOTATION)
    return None if written == text else _annotated(pod, text)


def no_annotation(pod: Document) -> Patch | None:
    """Return the merge patch that removes what is written down; None where nothing is."""
    is_written = REGULAR_REQUESTS_ANNOTATION in part(part(pod, "metadata"), "annotations")
    return _annotated(pod, None) if is_written else None


def resize_to_zero(pod: Document, requests: RegularRequests, memory_bytes: int) -> Patch | None:
    """Return the patch of a pod's `resize` that makes its requests 0; None where they are.

    `requests` is what was written down of the pod. `memory_bytes` is the limit for a container that needs one. Its
    request of memory is written out: a request that is not there would become the limit.
    """
    limited = () if has_limit(pod) else requests.limited

    def change(container: Document) -> Patch:
        zeros = _zeros(container)
        if container.get("name") in limited:
            return {"requests": {**zeros, MEMORY: "0"}, "limits": {MEMORY: str(memory_bytes)}}
        return {"requests": zeros} if zeros else {}

    spec = part(pod, "spec")
    changes = {name: {entry["name"]: change(entry) for entry in items(spec, name)} for name in _LISTS}
    return _resized(pod, changes, _zeros(spec))


def resize_back(pod: Document, requests: RegularRequests, memory_bytes: int) -> Patch | None:
    """Return the patch of a pod's `resize` that brings its `requests` back; None where they are.

    `memory_bytes` is what a limit of ours is raised to: never below what the container requests, or has as its limit.
    """
    spec = part(pod, "spec")

    def change(container: Document, regular: Resizable) -> Patch:
        changed: Patch = {}
        if back := _different(regular, _resizable(container, "requests")):
            changed["requests"] = back
        if container["name"] in requests.limited:
            limit_now = _amount(_resizable(container, "limits").get("memory", "0"), MEMORY)
            limit = max(memory_bytes, _amount(regular.get("memory", "0"), MEMORY))
            if 0 < limit_now < limit:
                changed["limits"] = {MEMORY: str(limit)}
        return changed

    parts = zip(_LISTS, (requests.containers, requests.init_containers), strict=True)
    changes = {
        name: {entry["name"]: change(entry, regular.get(entry["name"], {})) for entry in items(spec, name)}
        for name, regular in parts
    }
    return _resized(pod, changes, _different(requests.pod, _resizable(spec, "requests")))


# -- reading a spec


def part(document: Document, name: str) -> Document:
    """Return an object inside another, empty where it is not there."""
    return document.get(name) or {}


def items(document: Document, name: str) -> Sequence[Document]:
    """Return a list of objects inside another, empty where it is not there."""
    return document.get(name) or ()


def containers_of(pod: Document) -> Iterator[Document]:
    """Return a pod's containers and init containers."""
    for name in _LISTS:
        yield from items(part(pod, "spec"), name)


_LISTS = ("containers", "initContainers")
_NAMES: tuple[Literal["cpu"], Literal["memory"]] = ("cpu", "memory")


def _resizable(container: Document, kind: str) -> Resizable:
    """Return the requests or the limits of a container, or of a pod's spec, that a resize can change."""
    quantities = part(part(container, "resources"), kind)
    return {name: str(quantities[name]) for name in _NAMES if name in quantities}


def _requested(container: Document) -> Resizable:
    return _positive(_resizable(container, "requests"))


def _zeros(container: Document) -> dict[str, str]:
    return dict.fromkeys(_requested(container), "0")


def _positive(quantities: Resizable) -> Resizable:
    return {name: text for name, text in quantities.items() if _amount(text, name)}


def _by_name(containers: Sequence[Document]) -> dict[str, Resizable]:
    requests = {container["name"]: _requested(container) for container in containers}
    return {name: requested for name, requested in requests.items() if requested}


def _different(regular: Resizable, now: Resizable) -> dict[str, str]:
    """Return those requests that are not what they were."""
    return {name: text for name, text in regular.items() if _amount(now.get(name, "0"), name) != _amount(text, name)}


def _amount(text: str, name: str) -> int:
    """Return a quantity in millicores or bytes; what is too large to be counted is larger than all else."""
    try:
        return int(parse_quantity(text, per_unit=1000 if name == CPU else 1))
    except BadQuantity:
        return 2**63 - 1


# -- writing


def _annotated(pod: Document, text: str | None) -> Patch:
    return {"metadata": {"uid": part(pod, "metadata")["uid"], "annotations": {REGULAR_REQUESTS_ANNOTATION: text}}}


def _resized(pod: Document, containers: Mapping[str, Mapping[str, Patch]], pod_level: dict[str, str]) -> Patch | None:
    """Return the patch that changes containers' resources, by list and name, and what the pod as a whole requests."""
    spec: Patch = {}
    for name, changes in containers.items():
        changed = [{"name": container, "resources": change} for container, change in changes.items() if change]
        if changed:
            spec[name] = changed
    if pod_level:
        spec["resources"] = {"requests": pod_level}
    return {"metadata": {"uid": part(pod, "metadata")["uid"]}, "spec": spec} if spec else None
