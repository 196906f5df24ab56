"""What a pod needs: Kubernetes' own rules for its requests, and what its annotation declares beyond them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from extender.cluster.resources import CPU, HUGEPAGES, MEMORY, Amounts, add, greatest, io_amounts
from extender.errors import BadAnnotation, BadQuantity

DEMAND_ANNOTATION = "dovetail.dev/demand"
CAPACITY_ANNOTATION = "dovetail.dev/capacity"
DURATION_ANNOTATION = "dovetail.dev/duration"
TASKS_ANNOTATION = "dovetail.dev/tasks"

_LONGEST_SECONDS = 1e9
_MOST_TASKS = 10**9
_MOST_DIGITS = len(str(_MOST_TASKS))


@dataclass(frozen=True, slots=True)
class Container:
    """One container: what its spec requests, and what its status reports once the kubelet has acted."""

    requests: Amounts
    reported: Amounts | None = None
    sidecar: bool = False


@dataclass(frozen=True, slots=True)
class PodResources:
    """Everything about a pod that its requests are counted from."""

    containers: Sequence[Container]
    init_containers: Sequence[Container] = ()
    overhead: Amounts = field(default_factory=dict)
    pod_level: Amounts = field(default_factory=dict)
    pod_level_reported: Amounts | None = None
    resize_infeasible: bool = False


def requested(pod: PodResources) -> Amounts:
    """Return what kube-scheduler counts for the pod.

    Containers and sidecars add up; an init container runs beside the sidecars started before it, and the largest such
    moment counts if it is larger. Pod-level CPU, memory and huge pages replace the sum. Overhead comes on top. A
    running container counts as the largest of spec, actuated and allocated, so that a resize never frees what is still
    held.
    Source: k8s.io/component-helpers resource.PodRequests, with UseStatusResources.
    """
    running: Amounts = {}
    for container in pod.containers:
        running = add(running, _effective(container.requests, container.reported, pod.resize_infeasible))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in pod.init_containers:
        if container.sidecar:
            held = _effective(container.requests, container.reported, pod.resize_infeasible)
            running, sidecars = add(running, held), add(sidecars, held)
            starting = greatest((starting, sidecars))
        else:
            starting = greatest((starting, add(container.requests, sidecars)))
    total = greatest((running, starting))
    total |= _pod_level(pod)
    return add(total, pod.overhead) if pod.overhead else total


def declared(annotation: str | None, name: str = DEMAND_ANNOTATION) -> Amounts:
    """Return the disk and network rates that an annotation declares, in bytes per second; none without annotation.

    Raises BadAnnotation, which names the annotation, what is wrong, and what is accepted.
    """
    if annotation is None:
        return {}
    try:
        return io_amounts(msgspec.json.decode(annotation, type=Mapping[str, str | int | float]))
    except (msgspec.DecodeError, BadQuantity, RecursionError) as error:
        accepted = 'a JSON object such as {"network-in": "125M", "disk-read": "100Mi"}'
        raise BadAnnotation(f"annotation {name}: {error}; accepted: {accepted}") from None


def seconds(annotation: str | None, name: str = DURATION_ANNOTATION) -> float | None:
    """Return the seconds that an annotation declares, above 0; None without annotation. Raises BadAnnotation."""
    if annotation is None:
        return None
    try:
        found = float(annotation.strip().removesuffix("s"))
    except ValueError:
        found = math.nan
    if not 0 < found <= _LONGEST_SECONDS:
        raise BadAnnotation(f'annotation {name}: {annotation!r}; accepted: seconds above 0, such as "90" or "2.5s"')
    return found


def counted(annotation: str | None, name: str = TASKS_ANNOTATION) -> int | None:
    """Return the number of tasks that an annotation declares; None without annotation. Raises BadAnnotation."""
    if annotation is None:
        return None
    text = annotation.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and 1 <= int(text) <= _MOST_TASKS):
        raise BadAnnotation(f'annotation {name}: {annotation!r}; accepted: a whole number, such as "200"')
    return int(text)


def _effective(requests: Amounts, reported: Amounts | None, resize_infeasible: bool) -> Amounts:
    if reported is None:
        return requests
    return reported if resize_infeasible else greatest((requests, reported))


def _pod_level(pod: PodResources) -> dict[str, float]:
    level = {
        name: amount for name, amount in pod.pod_level.items() if name in (CPU, MEMORY) or name.startswith(HUGEPAGES)
    }
    if not level or pod.pod_level_reported is None:
        return level
    effective = _effective(level, pod.pod_level_reported, pod.resize_infeasible)
    return {name: effective.get(name, 0.0) for name in level}
