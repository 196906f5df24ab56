"""What pods that were made alike have alike, of their JSON: needs, constraints, identity, annotations. Pure.

The pods of a job mostly come of one template, so this is worked out once for them (`decoding.PodReader`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from extender.adapters.kube.objects import (
    ContainerSpec,
    ContainerStatus,
    Expression,
    OwnerReference,
    PodAffinity,
    PodAnnotations,
    PodMeta,
    PodObject,
    PodSpec,
    PodStatus,
    Quantities,
    Requests,
    Selector,
    SelectorTerm,
)
from extender.cluster.eligibility import ANYWHERE, Constraints, Requirement, Term, Terms, Toleration
from extender.cluster.model import EVERY_NAMESPACE
from extender.cluster.pods.demand import Container, PodResources, counted, declared, requested, seconds
from extender.cluster.pods.identity import LABELS, Identity, identify
from extender.cluster.pods.limits import LONGEST_NAME, shortened
from extender.cluster.pods.opportunistic import ALLOWED, NEVER, ONLY, Needs, chosen, demoted, outright, regular_requests
from extender.cluster.pods.preference import InputHolders, Preferences, declared_input
from extender.cluster.resources import (
    DEVICE_CLAIMS,
    DIMENSIONS,
    IO_DIMENSIONS,
    PODS,
    Amounts,
    countable,
    greatest,
)
from extender.errors import BadAnnotation

_Value = TypeVar("_Value")
_NO_ANNOTATIONS: Mapping[str, str] = {}
_MOST_NAMESPACES = 16
_RESIZE_PENDING = "PodResizePending"


@dataclass(frozen=True, slots=True)
class Template:
    """What pods that were made alike have alike. `identity` has no job where each pod is one of its own."""

    needs: Needs
    demand: Amounts
    constraints: Constraints
    prefers: Preferences
    near: tuple[str, ...]
    asks_of_pods: bool
    device_templates: tuple[str, ...]
    owner: OwnerReference
    identity: Identity
    duration: float | None
    tasks: int | None
    inputs: InputHolders
    problem: str | None


def template_of(document: PodObject) -> Template:
    """Return what is in a pod that others may have in the same way."""
    meta, spec = document.metadata, document.spec
    annotations = meta.annotations or PodAnnotations()
    problems = _too_long(meta)
    needs = _needs(_resources(spec, document.status or PodStatus()), annotations, problems)
    demand = {**needs.demand, PODS: 1.0, DEVICE_CLAIMS: float(len(spec.resource_claims or ()))}
    owner = _controller(meta) or OwnerReference()
    return Template(
        needs=needs,
        demand={name: amount for name, amount in demand.items() if amount > 0},
        constraints=_constraints(spec),
        prefers=_preferences(spec),
        near=_near(meta.namespace, spec),
        asks_of_pods=_asks_of_pods(spec),
        device_templates=_device_templates(spec),
        owner=owner,
        identity=_identity(meta, spec, owner.uid or None),
        duration=_read(seconds, annotations.duration, problems),
        tasks=_read(counted, annotations.tasks, problems),
        inputs=_read(declared_input, annotations.input, problems) or (),
        problem="; ".join(problems) or None,
    )


def template_key(document: PodObject) -> bytes:
    """Return all of a pod that its template is made of: pods of one key have one template."""
    meta, spec, status = document.metadata, document.spec, document.status or PodStatus()
    annotations, labels = meta.annotations, meta.labels or {}
    if annotations is not None and annotations.promised is not None:
        annotations = replace(annotations, promised=None)
    return msgspec.json.encode(
        (
            meta.namespace,
            [(name, labels[name]) for name in labels if name in LABELS],
            annotations,
            meta.owner_references,
            replace(spec, node_name=None, scheduling_gates=None, volumes=None),
            status.container_statuses,
            status.init_container_statuses,
            status.resources,
            status.allocated_resources,
            [condition for condition in status.conditions or () if condition.type == _RESIZE_PENDING],
        )
    )


def _needs(pod: PodResources, annotations: PodAnnotations, problems: list[str]) -> Needs:
    """Return what a pod needs, by what it requests and what its annotations say of that.

    A choice that cannot be understood, or cannot be met, counts as NEVER.
    """
    choice = _read(chosen, annotations.opportunistic, problems)
    dimensions = DIMENSIONS if choice == ONLY else IO_DIMENSIONS
    amounts = _read(partial(declared, dimensions=dimensions), annotations.demand, problems) or {}
    if choice == ONLY and (needs := _read(lambda _: outright(pod, amounts), ONLY, problems)) is not None:
        return needs
    rates = {name: amount for name, amount in amounts.items() if name in IO_DIMENSIONS}
    if choice != ALLOWED:
        choice = None if annotations.opportunistic is None else NEVER
    if annotations.regular_requests is None:
        return Needs({**requested(pod), **rates}, choice=choice)
    requests = _read(partial(regular_requests, pod=pod), annotations.regular_requests, problems)
    return demoted(pod, requests, rates, choice)


def _controller(meta: PodMeta) -> OwnerReference | None:
    """Return a pod's controlling owner, if any; one with a "/" in its UID would pass for a job of another namespace."""
    owners = (owner for owner in meta.owner_references or () if owner.controller)
    return next((owner for owner in owners if len(owner.uid) <= LONGEST_NAME and "/" not in owner.uid), None)


def _too_long(meta: PodMeta) -> list[str]:
    """Return what is wrong with annotations that name groups and queues: such names are not taken."""
    names = meta.annotations.names() if meta.annotations else _NO_ANNOTATIONS
    return [
        f"annotation {name}: {len(text)} characters; accepted: at most {LONGEST_NAME}"
        for name, text in names.items()
        if len(text) > LONGEST_NAME
    ]


def _identity(meta: PodMeta, spec: PodSpec, owner: str | None) -> Identity:
    annotations = meta.annotations.names() if meta.annotations else _NO_ANNOTATIONS
    short = {name: text for name, text in annotations.items() if len(text) <= LONGEST_NAME}
    group = spec.scheduling_group.pod_group_name if spec.scheduling_group else None
    names = {**short, **(meta.labels or {})}
    return identify(meta.namespace, names, pod_group=group, owner=owner)


def _near(namespace: str, spec: PodSpec) -> tuple[str, ...]:
    """Return the namespaces of the pods that a running pod draws near, or would rather have elsewhere; "*": of all.

    Its preferred terms do so, and its required affinity (kube-scheduler's InterPodAffinity).
    """
    affinity = spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return ()
    towards, away = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    weighted = [*(towards.preferred or ()), *(away.preferred or ())]
    terms = [*(towards.required or ()), *(term.pod_affinity_term for term in weighted)]
    if any(term.namespace_selector is not None for term in terms):
        return (EVERY_NAMESPACE,)
    named = {name for term in terms for name in term.namespaces or (namespace,)}
    return tuple(sorted(named)) if len(named) <= _MOST_NAMESPACES else (EVERY_NAMESPACE,)


def _asks_of_pods(spec: PodSpec) -> bool:
    """Say whether a pod's nodes depend on which pods are there: by required affinity, required spread, or ports."""
    affinities = (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity) if spec.affinity else ()
    spreads = spec.topology_spread_constraints or ()
    return (
        any(one is not None and one.required for one in affinities)
        or any(one.when_unsatisfiable == "DoNotSchedule" for one in spreads)
        or _has_host_ports(spec)
    )


def _device_templates(spec: PodSpec) -> tuple[str, ...]:
    """Return the templates of a pod's device claims. Claims by name say nothing: each pod may have its own."""
    names = (claim.resource_claim_template_name for claim in spec.resource_claims or ())
    return tuple(sorted(name for name in names if name))


def _constraints(spec: PodSpec) -> Constraints:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required if affinity else None
    if not (spec.node_selector or required or spec.tolerations):
        return ANYWHERE
    return Constraints(
        selector=tuple(sorted((spec.node_selector or {}).items())),
        terms=terms_from(required) if required is not None else None,
        tolerations=tuple(
            Toleration(entry.key or "", entry.operator or "Equal", entry.value or "", entry.effect or "")
            for entry in spec.tolerations or ()
        ),
    )


def _preferences(spec: PodSpec) -> Preferences:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    preferred = affinity.preferred if affinity else None
    return tuple((term.weight, _term(term.preference)) for term in preferred or ())


def terms_from(selector: Selector) -> Terms:
    """Return the terms of a node selector."""
    return tuple(_term(term) for term in selector.node_selector_terms or ())


def _term(term: SelectorTerm) -> Term:
    return (*_requirements(term.match_expressions), *_requirements(term.match_fields, field=True))


def _requirements(expressions: Sequence[Expression] | None, *, field: bool = False) -> tuple[Requirement, ...]:
    return tuple(Requirement(one.key, one.operator, tuple(one.values or ()), field) for one in expressions or ())


def _resources(spec: PodSpec, status: PodStatus) -> PodResources:
    reported = {s.name: s for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    pending = next((c for c in status.conditions or () if c.type == _RESIZE_PENDING), None)
    level = countable((spec.resources.requests if spec.resources else None) or {})
    return PodResources(
        containers=[_container(c, reported.get(c.name)) for c in spec.containers or ()],
        init_containers=[_container(c, reported.get(c.name)) for c in spec.init_containers or ()],
        overhead=countable(spec.overhead or {}),
        pod_level=level,
        pod_level_reported=_reported(status.resources, status.allocated_resources),
        resize_infeasible=pending is not None and pending.reason == "Infeasible",
        resize_pending=pending is not None,
        host_ports=_has_host_ports(spec),
    )


def _has_host_ports(spec: PodSpec) -> bool:
    ports = (port for one in (*(spec.containers or ()), *(spec.init_containers or ())) for port in one.ports or ())
    return any(spec.host_network or port.host_port for port in ports)


def _container(spec: ContainerSpec, status: ContainerStatus | None) -> Container:
    return Container(
        requests=countable((spec.resources.requests if spec.resources else None) or {}),
        reported=_reported(status.resources, status.allocated_resources) if status else None,
        sidecar=spec.restart_policy == "Always",
        name=spec.name,
    )


def _reported(actuated: Requests | None, allocated: Quantities | None) -> Amounts | None:
    if actuated is None:
        return None
    return greatest((countable(actuated.requests or {}), countable(allocated or {})))


def _read(read: Callable[[str | None], _Value], annotation: str | None, problems: list[str]) -> _Value | None:
    """Return what an annotation says; None, and a problem more, where it cannot be understood.

    It raises nothing, whatever stands there: one pod's annotation must not end the watch of all pods.
    """
    try:
        return read(annotation)
    except BadAnnotation as error:
        problems.append(shortened(str(error)))
    except Exception as error:
        problems.append(shortened(f"an annotation cannot be read: {error}"))
    return None


def name_of(text: str | None) -> str | None:
    """Return a name; None where there is none, or one that is too long."""
    return text if text and len(text) <= LONGEST_NAME else None
