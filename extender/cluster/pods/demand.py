"""What a pod needs: Kubernetes' own rules for its requests, and what its annotation declares beyond them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from extender.cluster.pods.limits import LONGEST_NUMBER, LONGEST_RATES, bad_json, require_at_most
from extender.cluster.resources import (
    CPU,
    HUGEPAGES,
    IO_DIMENSIONS,
    LARGEST,
    MEMORY,
    Amounts,
    add,
    declared_amounts,
    greatest,
)
from extender.errors import BadAnnotation, BadQuantity

DEMAND_ANNOTATION = "dovetail.dev/demand"
CAPACITY_ANNOTATION = "dovetail.dev/capacity"
DURATION_ANNOTATION = "dovetail.dev/duration"
TASKS_ANNOTATION = "dovetail.dev/tasks"

_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.001, 1e9
_MOST_TASKS = 10**9
_MOST_DIGITS = len(str(_MOST_TASKS))
_DIGITS_OF_A_FLOAT = frozenset("0123456789.eE+-")


@dataclass(frozen=True, slots=True)
class Container:
    """One container: what its spec requests, and what its status reports once the kubelet has acted."""

    requests: Amounts
    reported: Amounts | None = None
    sidecar: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class PodResources:
    """Everything about a pod that its requests are counted from, and whether it holds ports of its node."""

    containers: Sequence[Container]
    init_containers: Sequence[Container] = ()
    overhead: Amounts = field(default_factory=dict)
    pod_level: Amounts = field(default_factory=dict)
    pod_level_reported: Amounts | None = None
    resize_infeasible: bool = False
    resize_pending: bool = False
    host_ports: bool = False


def requested(pod: PodResources) -> Amounts:
    """Return what kube-scheduler counts for the pod.

    Containers and sidecars add up; an init container runs beside the sidecars started before it, and the largest such
    moment counts if it is larger. Pod-level CPU, memory and huge pages replace the sum. Overhead comes on top. A
    running container counts as the largest of spec, actuated and allocated, so that a resize never frees what is still
    held. No amount is above what is counted exactly (`resources.LARGEST`): no node has so much.
    Source: k8s.io/component-helpers resource.PodRequests, with UseStatusResources.
    """
    sidecars: dict[str, float] = {}
    starting: dict[str, float] = {}
    for container in pod.init_containers:
        if container.sidecar:
            _add_to(sidecars, _effective(container.requests, container.reported, pod.resize_infeasible))
        else:
            for name, amount in container.requests.items():
                starting[name] = max(starting.get(name, 0.0), amount + sidecars.get(name, 0.0))
    running = sidecars
    for container in pod.containers:
        _add_to(running, _effective(container.requests, container.reported, pod.resize_infeasible))
    total = greatest((running, starting))
    total |= _pod_level(pod)
    total = add(total, pod.overhead) if pod.overhead else total
    return {name: min(amount, LARGEST - 1) for name, amount in total.items()}


def declared(
    annotation: str | None, name: str = DEMAND_ANNOTATION, dimensions: Sequence[str] = IO_DIMENSIONS
) -> Amounts:
    """Return what an annotation declares: disk and network rates, in bytes per second; none without annotation.

    Other `dimensions` may be accepted. Raises BadAnnotation, which names the annotation, what is wrong, and what is
    accepted.
    """
    if annotation is None:
        return {}
    require_at_most(LONGEST_RATES, annotation, name)
    try:
        return declared_amounts(msgspec.json.decode(annotation, type=Mapping[str, str | int | float]), dimensions)
    except (msgspec.DecodeError, BadQuantity, RecursionError) as error:
        accepted = 'a JSON object such as {"network-in": "125M", "disk-read": "100Mi"}'
        raise bad_json(name, error, accepted) from None


def seconds(annotation: str | None) -> float | None:
    """Return the seconds that an annotation declares, 0.001 to 1e9; None without annotation. Raises BadAnnotation."""
    if annotation is None:
        return None
    require_at_most(LONGEST_NUMBER, annotation, DURATION_ANNOTATION)
    text = annotation.strip().removesuffix("s")
    try:
        declared_seconds = float(text) if _DIGITS_OF_A_FLOAT.issuperset(text) else 0.0
    except ValueError:
        declared_seconds = 0.0
    if not _SHORTEST_SECONDS <= declared_seconds <= _LONGEST_SECONDS:
        accepted = 'seconds from 0.001 to 1e9, such as "90" or "2.5s"'
        raise BadAnnotation(f"annotation {DURATION_ANNOTATION}: {annotation!r}; accepted: {accepted}")
    return declared_seconds


def counted(annotation: str | None) -> int | None:
    """Return the number of tasks that an annotation declares; None without annotation. Raises BadAnnotation."""
    if annotation is None:
        return None
    require_at_most(LONGEST_NUMBER, annotation, TASKS_ANNOTATION)
    text = annotation.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and 1 <= int(text) <= _MOST_TASKS):
        raise BadAnnotation(f'annotation {TASKS_ANNOTATION}: {annotation!r}; accepted: a whole number, such as "200"')
    return int(text)


def _add_to(total: dict[str, float], amounts: Amounts) -> None:
    """Add to a total in place: a new one for each container would cost the square of their number."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0.0) + amount


def _effective(requests: Amounts, reported: Amounts | None, resize_infeasible: bool) -> Amounts:
    if reported is None:
        return requests
    return reported if resize_infeasible else greatest((requests, reported))


def _pod_level(pod: PodResources) -> dict[str, float]:
    level = {
        name: amount for name, amount in pod.pod_level.items() if name in (CPU, MEMORY) or name.startswith(HUGEPAGES)
    }
    effective = _effective(level, pod.pod_level_reported, pod.resize_infeasible)
    return {name: effective.get(name, 0.0) for name in level}
