"""What became of pods, counted from the API server's manifests and by nothing that schedulers share."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable

from kubernetes.utils import parse_quantity

from extender.cluster.model import PROMISED_ANNOTATION
from lab.controlplane.builders import CAPACITY, DEMAND, Manifest

_ENDED = ("Succeeded", "Failed")


def over_allocated(nodes: Iterable[Manifest], pods: Iterable[Manifest]) -> dict[tuple[str, str], float]:
    """Return by how much each (node, dimension) is over-allocated; empty where nothing is.

    For pods of plain containers that were not resized.
    """
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        if pod["spec"].get("nodeName") and pod["status"]["phase"] not in _ENDED:
            held[pod["spec"]["nodeName"]].update(_demand(pod))
    over: dict[tuple[str, str], float] = {}
    for node in nodes:
        name = node["metadata"]["name"]
        over |= {
            (name, dimension): held[name][dimension] - limit
            for dimension, limit in _offer(node).items()
            if held[name][dimension] > limit
        }
    return over


def off_nominated(pods: Iterable[Manifest]) -> int:
    """Return how many pods are bound to another node than the one that we nominated for them."""
    return sum(_promise(pod) not in (None, pod["spec"].get("nodeName")) for pod in pods)


def _promise(pod: Manifest) -> str | None:
    promised: str | None = pod["metadata"].get("annotations", {}).get(PROMISED_ANNOTATION)
    return promised


def _demand(pod: Manifest) -> Counter[str]:
    demand = Counter({"pods": 1.0})
    demand.update(_annotated(pod, DEMAND))
    for container in pod["spec"]["containers"]:
        demand.update(_amounts(container["resources"].get("requests", {})))
    return demand


def _offer(node: Manifest) -> dict[str, float]:
    allocatable = node["status"]["allocatable"]
    return {**_amounts(allocatable), "pods": float(allocatable["pods"]), **_annotated(node, CAPACITY)}


def _annotated(manifest: Manifest, annotation: str) -> dict[str, float]:
    """Return bytes per second."""
    declared = json.loads(manifest["metadata"].get("annotations", {}).get(annotation, "{}"))
    return {name: _amount(quantity) for name, quantity in declared.items()}


def _amounts(quantities: Manifest) -> dict[str, float]:
    """Return CPU in millicores (whole numbers, so that sums are exact) and memory in bytes."""
    parts = {"cpu": 1000, "memory": 1}
    return {name: _amount(quantities[name], count) for name, count in parts.items() if name in quantities}


def _amount(quantity: str | int, parts: int = 1) -> float:
    return float(parse_quantity(quantity) * parts)  # type: ignore[no-untyped-call]
