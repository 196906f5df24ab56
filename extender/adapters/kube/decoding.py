"""Kubernetes' objects -> our Pod, Owner and Group. Pure.

Kubernetes' spelling ends here.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from extender.adapters.kube.objects import (
    Condition,
    ContainerSpec,
    ContainerStatus,
    Expression,
    GroupObject,
    JobObject,
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
from extender.cluster.model import EVERY_NAMESPACE, Group, Owner, Pod
from extender.cluster.pods.demand import Container, PodResources, counted, declared, requested, seconds
from extender.cluster.pods.identity import Identity, identify
from extender.cluster.pods.limits import LONGEST_NAME, LONGEST_NUMBER, shortened
from extender.cluster.pods.opportunistic import ALLOWED, NEVER, ONLY, Needs, chosen, demoted, outright, regular_requests
from extender.cluster.pods.preference import Preferences, declared_input
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
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_ANNOTATIONS: Mapping[str, str] = {}
_MOST_NAMESPACES = 16
_REJECTIONS = frozenset(
    {"NodeAffinity", "NodePorts", "NodeName", "TopologyAffinityError", "UnexpectedAdmissionError", "TaintToleration"}
)
"""Why kubelets refuse pods that were bound to them (`status.reason`), beside what begins with OutOf."""


def pod_from(document: PodObject) -> Pod:
    """Return our Pod. A broken annotation leaves its requests and says so in `problem`."""
    meta, spec, status = document.metadata, document.spec, document.status or PodStatus()
    annotations = meta.annotations
    problems = _too_long(meta)
    needs = _needs(_resources(spec, status), annotations or PodAnnotations(), problems)
    claims = float(len(spec.resource_claims or ()))
    demand = {**needs.demand, PODS: 1.0, DEVICE_CLAIMS: claims}
    owner = _controller(meta)
    return Pod(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        demand={name: amount for name, amount in demand.items() if amount > 0},
        gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
        scheduler=spec.scheduler_name or "",
        identity=_identity(meta, spec, owner.uid if owner else None),
        constraints=_constraints(spec),
        owner=owner.uid if owner else "",
        owner_kind=owner.kind if owner else "",
        created=_epoch(meta.creation_timestamp) or 0.0,
        started=_epoch(status.start_time),
        duration=_read(seconds, annotations.duration if annotations else None, problems),
        tasks=_read(counted, annotations.tasks if annotations else None, problems),
        inputs=_read(declared_input, annotations.input if annotations else None, problems) or (),
        prefers=_preferences(spec),
        may_preempt=spec.preemption_policy != "Never",
        promised=_name(annotations.promised if annotations else None),
        node=spec.node_name or None,
        nominated=status.nominated_node_name or None,
        priority=spec.priority or 0,
        finished=status.phase in ("Succeeded", "Failed"),
        failed=status.phase == "Failed",
        rejected=status.phase == "Failed" and _is_rejection(status.reason or ""),
        near=_near(meta.namespace, spec),
        unschedulable=any(_is_refusal(condition) for condition in status.conditions or ()),
        resource_version=version_number(meta.resource_version),
        problem="; ".join(problems) or None,
        leaving=meta.deletion_timestamp is not None,
        claims=_claims(meta, spec),
        owner_name=_name(owner.name if owner else None) or "",
        opportunistic=needs.opportunistic,
        regular_requests=needs.regular_requests,
        choice=needs.choice,
        ungranted=needs.ungranted,
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
    """Return a pod's controlling owner, if any."""
    owners = meta.owner_references or ()
    return next((owner for owner in owners if owner.controller and len(owner.uid) <= LONGEST_NAME), None)


def owner_from(job: JobObject) -> Owner:
    """Return our Owner: of a Job without completions, as many are left as it runs at a time."""
    total = job.spec.completions if job.spec.completions is not None else job.spec.parallelism or 1
    created = _epoch(job.metadata.creation_timestamp) or 0.0
    return Owner(job.metadata.uid, max(total - job.status.succeeded, 0), total, created)


def group_from(group: GroupObject, source: str) -> Group:
    """Return our Group."""
    spec, meta = group.spec, group.metadata
    gang = spec.scheduling_policy.gang if spec.scheduling_policy else None
    return Group(f"{meta.namespace}/{meta.name}", gang.min_count if gang else spec.min_member, source)


def terms_from(selector: Selector) -> Terms:
    """Return the terms of a node selector."""
    return tuple(_term(term) for term in selector.node_selector_terms or ())


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
    return identify(meta.namespace, meta.uid, names, pod_group=group, owner=owner)


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


def _is_rejection(reason: str) -> bool:
    """Say whether a pod failed because its kubelet would not have it."""
    return reason.startswith("OutOf") or reason in _REJECTIONS


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


def _claims(meta: PodMeta, spec: PodSpec) -> tuple[str, ...]:
    """Return the claims that a pod uses; one made for it alone bears its name and that of the volume."""
    claims = []
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.append(f"{meta.namespace}/{volume.persistent_volume_claim.claim_name}")
        elif volume.ephemeral is not None:
            claims.append(f"{meta.namespace}/{meta.name}-{volume.name}")
    return tuple(claims)


def _preferences(spec: PodSpec) -> Preferences:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    preferred = affinity.preferred if affinity else None
    return tuple((term.weight, _term(term.preference)) for term in preferred or ())


def _term(term: SelectorTerm) -> Term:
    return (*_requirements(term.match_expressions), *_requirements(term.match_fields, field=True))


def _requirements(expressions: Sequence[Expression] | None, *, field: bool = False) -> tuple[Requirement, ...]:
    return tuple(Requirement(one.key, one.operator, tuple(one.values or ()), field) for one in expressions or ())


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


def _name(text: str | None) -> str | None:
    return text if text and len(text) <= LONGEST_NAME else None


def _epoch(moment: str | None) -> float | None:
    """Return the seconds since the epoch of an RFC 3339 time; None where it is none, or before the epoch."""
    if not moment or len(moment) > LONGEST_NUMBER:
        return None
    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return read.timestamp() if read.tzinfo is not None and read >= _EPOCH else None


def _is_refusal(condition: Condition) -> bool:
    """Say whether this is kube-scheduler's refusal, which the condition of a gated pod is not."""
    return condition.type == "PodScheduled" and condition.status == "False" and condition.reason != "SchedulingGated"


def _resources(spec: PodSpec, status: PodStatus) -> PodResources:
    reported = {s.name: s for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    pending = next((c for c in status.conditions or () if c.type == "PodResizePending"), None)
    level = countable(quantities_of(spec.resources.requests if spec.resources else None))
    return PodResources(
        containers=[_container(c, reported.get(c.name)) for c in spec.containers or ()],
        init_containers=[_container(c, reported.get(c.name)) for c in spec.init_containers or ()],
        overhead=countable(quantities_of(spec.overhead)),
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
        requests=countable(quantities_of(spec.resources.requests if spec.resources else None)),
        reported=_reported(status.resources, status.allocated_resources) if status else None,
        sidecar=spec.restart_policy == "Always",
        name=spec.name,
    )


def _reported(actuated: Requests | None, allocated: Quantities | None) -> Amounts | None:
    if actuated is None:
        return None
    return greatest((countable(quantities_of(actuated.requests)), countable(quantities_of(allocated))))


def quantities_of(quantities: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return quantities as they are, none where they are not there."""
    return quantities or {}


def version_number(text: str) -> int:
    """Return a resource version as a number, 0 where it is none; they grow with time."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
