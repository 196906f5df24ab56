"""Whether a pod is regular or opportunistic, and what it needs where its spec requests nothing any more.

A pod is made opportunistic in two writes: first the annotation that says what it requests, then a resize to 0. So:

1. What kube-scheduler counts decides: a pod with the annotation is opportunistic while no CPU and no memory counts.
   Between the two writes, and once its requests have come back, it is regular.
2. Its demand is the same before, between and after: what it requests by its spec, or else by the annotation.
3. A pod whose user wrote it without requests is opportunistic where it says `only`, and declares what it needs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from extender.cluster.pods.demand import DEMAND_ANNOTATION, Container, PodResources, requested
from extender.cluster.pods.limits import LONGEST_REQUESTS, bad_json, require_at_most
from extender.cluster.resources import CPU, MEMORY, Amounts, parse_quantity
from extender.errors import BadAnnotation, BadQuantity

REGULAR_REQUESTS_ANNOTATION = "dovetail.dev/regular-requests"
OPPORTUNISTIC_ANNOTATION = "dovetail.dev/opportunistic"

ONLY, NEVER, ALLOWED = "only", "never", "allowed"
"""What a pod may choose: it never is regular, it never is opportunistic, or it may be although it never ends."""

TENANT_CHOICES = (ALLOWED, NEVER)
"""What a namespace or a queue may choose for the pods that choose nothing."""

Resizable = Mapping[Literal["cpu", "memory"], str]
"""What is requested of what a resize can change, as it stands in a spec; what is 0 is left out."""


class RegularRequests(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """What a pod requests as a regular one: each container by its name, and the pod where its spec has that.

    `limited` are the containers that got a memory limit only so that their requests could become 0.
    """

    containers: dict[str, Resizable] = {}
    init_containers: dict[str, Resizable] = {}
    pod: Resizable = {}
    limited: tuple[str, ...] = ()

    @property
    def parts(self) -> Sequence[Resizable]:
        """What is requested, part by part."""
        return (*self.containers.values(), *self.init_containers.values(), self.pod)

    def written(self) -> str:
        """Return the text of the annotation. Raises BadAnnotation where it could not be read back."""
        text = msgspec.json.encode(self).decode()
        regular_requests(text)
        return text


_decode = msgspec.json.Decoder(RegularRequests).decode


@dataclass(frozen=True, slots=True)
class Needs:
    """What a pod needs, and whether it is opportunistic; `regular_requests` where it may become regular again.

    `ungranted`: its requests came back, and its node has not given it any of them (Deferred or Infeasible).
    """

    demand: Amounts
    opportunistic: bool = False
    regular_requests: RegularRequests | None = None
    choice: str | None = None
    ungranted: bool = False


def chosen(annotation: str | None) -> str | None:
    """Return what an annotation chooses, one of three; None without annotation. Raises BadAnnotation."""
    if annotation not in (None, ONLY, NEVER, ALLOWED):
        raise BadAnnotation(
            f"annotation {OPPORTUNISTIC_ANNOTATION}: {annotation[:64]!r}; accepted: {ONLY}, {NEVER}, {ALLOWED}"
        )
    return annotation


def regular_requests(annotation: str | None, pod: PodResources | None = None) -> RegularRequests | None:
    """Return what an annotation says that a pod requests as a regular one; None without annotation.

    Raises BadAnnotation, also where it names containers that the `pod` does not have.
    """
    if annotation is None:
        return None
    require_at_most(LONGEST_REQUESTS, annotation, REGULAR_REQUESTS_ANNOTATION)
    try:
        requests = _decode(annotation)
        if not any(requests.parts):
            raise BadQuantity("no request in it; accepted: one or more")
        for part in requests.parts:
            if not all(_amounts(part).values()):
                raise BadQuantity("a request of 0; accepted: above 0")
        if pod is not None:
            _require_known(requests, pod)
    except (msgspec.DecodeError, BadQuantity, RecursionError) as error:
        accepted = 'a JSON object such as {"containers": {"main": {"cpu": "2", "memory": "4Gi"}}}'
        raise bad_json(REGULAR_REQUESTS_ANNOTATION, error, accepted) from None
    return requests


def counts_nothing(pod: PodResources) -> bool:
    """Say whether kube-scheduler counts no CPU and no memory for a pod."""
    counts = requested(pod)
    return not counts.get(CPU) and not counts.get(MEMORY)


def outright(pod: PodResources, declared: Amounts) -> Needs:
    """Return what a pod needs that never is regular.

    Raises BadAnnotation where it requests or does not declare it, or has a port of its node, which a regular pod needs.
    """
    if pod.host_ports:
        raise BadAnnotation(
            f"annotation {OPPORTUNISTIC_ANNOTATION}: {ONLY!r} with a port of the node; accepted: pods without "
            "hostPort, and without hostNetwork where they have ports"
        )
    if not counts_nothing(pod) or not (declared.get(CPU) and declared.get(MEMORY)):
        raise BadAnnotation(
            f"annotation {OPPORTUNISTIC_ANNOTATION}: {ONLY!r}; accepted: with cpu and memory in {DEMAND_ANNOTATION}, "
            "and requests of 0"
        )
    return Needs({**requested(pod), **declared}, opportunistic=True, choice=ONLY)


def demoted(pod: PodResources, requests: RegularRequests | None, declared: Amounts, choice: str | None) -> Needs:
    """Return what a pod with the annotation needs; `requests` is None where that is broken."""
    opportunistic = counts_nothing(pod)
    if requests is None:
        return Needs({**requested(pod), **declared}, opportunistic, None, choice)
    if opportunistic or _requests_nothing(pod):
        whole = _as_regular(pod, requests)
    else:  # by its spec, also where the node cannot grant that
        whole = replace(pod, resize_infeasible=False)
    has_nothing = counts_nothing(replace(pod, resize_infeasible=True))
    ungranted = pod.resize_pending and has_nothing and not _requests_nothing(pod)
    return Needs({**requested(whole), **declared}, opportunistic, requests, choice, ungranted)


def _require_known(requests: RegularRequests, pod: PodResources) -> None:
    containers = {container.name for container in pod.containers}
    init_containers = {container.name for container in pod.init_containers}
    unknown = (requests.containers.keys() - containers) | (requests.init_containers.keys() - init_containers)
    unknown |= set(requests.limited) - containers - init_containers
    if unknown:
        raise BadQuantity(f"the pod has no container {min(unknown)!r} there; accepted: names of its containers")


def _requests_nothing(pod: PodResources) -> bool:
    """Say whether the spec, whatever the kubelet has done of it, requests no CPU and no memory."""
    parts = (pod.pod_level, *(container.requests for container in (*pod.containers, *pod.init_containers)))
    return not any(part.get(CPU) or part.get(MEMORY) for part in parts)


def _as_regular(pod: PodResources, requests: RegularRequests) -> PodResources:
    """Return a pod as it was before its requests became 0."""
    return replace(
        pod,
        containers=_with(pod.containers, requests.containers),
        init_containers=_with(pod.init_containers, requests.init_containers),
        pod_level={**pod.pod_level, **_amounts(requests.pod)},
        pod_level_reported=None,
    )


def _with(containers: Iterable[Container], requests: Mapping[str, Resizable]) -> list[Container]:
    return [
        replace(container, requests={**container.requests, **_amounts(requests.get(container.name, {}))}, reported=None)
        for container in containers
    ]


def _amounts(requests: Resizable) -> Amounts:
    return {name: parse_quantity(text, per_unit=1000 if name == CPU else 1) for name, text in requests.items()}
