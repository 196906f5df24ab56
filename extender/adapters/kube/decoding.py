"""Kubernetes' objects -> our Pod, Owner and Group.

Kubernetes' spelling ends here.
"""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from extender.adapters.kube.objects import GroupObject, JobObject, PodMeta, PodObject, PodSpec, PodStatus
from extender.adapters.kube.templates import Template, name_of, template_key, template_of
from extender.cluster.model import Group, Owner, Pod
from extender.cluster.pods.limits import LONGEST_NUMBER

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REJECTIONS = frozenset(
    {"NodeAffinity", "NodePorts", "NodeName", "TopologyAffinityError", "UnexpectedAdmissionError", "TaintToleration"}
)
"""Why kubelets refuse pods that were bound to them (`status.reason`), beside what begins with OutOf."""

_ERROR = "SchedulerError"
"""The reason in a pod's condition where kube-scheduler's try came to no end: an extender or a binding failed."""

_MOST_TEMPLATES, _LONGEST_KEY = 2_000, 4_096
"""So many templates are kept, of pods that state so many bytes of what we use: 8 MiB at most."""


def pod_from(document: PodObject) -> Pod:
    """Return our Pod. A broken annotation leaves its requests and says so in `problem`."""
    return pod_of(document, template_of(document))


def pod_of(document: PodObject, template: Template) -> Pod:
    """Return our Pod, one of this template."""
    meta, spec, status = document.metadata, document.spec, document.status or PodStatus()
    needs, identity, failed = template.needs, template.identity, status.phase == "Failed"
    refusals = [one.reason for one in status.conditions or () if is_refusal(one.type, one.status, one.reason)]
    return Pod(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        demand=template.demand,
        gates=tuple(gate.name for gate in spec.scheduling_gates) if spec.scheduling_gates else (),
        scheduler=spec.scheduler_name or "",
        identity=identity if identity.job else replace(identity, job=meta.uid),
        constraints=template.constraints,
        owner=template.owner.uid,
        owner_kind=template.owner.kind,
        created=epoch(meta.creation_timestamp) or 0.0,
        started=epoch(status.start_time),
        duration=template.duration,
        tasks=template.tasks,
        inputs=template.inputs,
        prefers=template.prefers,
        may_preempt=spec.preemption_policy != "Never",
        promised=name_of(meta.annotations.promised if meta.annotations else None),
        node=spec.node_name or None,
        nominated=status.nominated_node_name or None,
        priority=spec.priority or 0,
        finished=failed or status.phase == "Succeeded",
        failed=failed,
        rejected=failed and _is_rejection(status.reason or ""),
        near=template.near,
        asks_of_pods=template.asks_of_pods,
        device_templates=template.device_templates,
        unschedulable=any(reason != _ERROR for reason in refusals),
        errored=_ERROR in refusals,
        resource_version=version_number(meta.resource_version),
        problem=template.problem,
        leaving=meta.deletion_timestamp is not None,
        leaves_at=epoch(meta.deletion_timestamp) or 0.0,
        claims=_claims(meta, spec) if spec.volumes else (),
        owner_name=name_of(template.owner.name) or "",
        opportunistic=needs.opportunistic,
        regular_requests=needs.regular_requests,
        choice=needs.choice,
        ungranted=needs.ungranted,
    )


class PodReader:
    """Reads pods from JSON, each as `pod_from` would; keeps `most` templates. One thread at a time."""

    def __init__(self, most: int = _MOST_TEMPLATES) -> None:
        self._most = most
        self._decode = msgspec.json.Decoder(PodObject).decode
        self._templates: dict[bytes, Template] = {}

    def read(self, raw: msgspec.Raw) -> Pod:
        """Return a pod. Raises msgspec.DecodeError."""
        document = self._decode(raw)
        key = template_key(document)
        template = self._templates.get(key)
        if template is None:
            template = template_of(document)
            if len(key) <= _LONGEST_KEY:
                self._keep(key, template)
        return pod_of(document, template)

    def _keep(self, key: bytes, template: Template) -> None:
        self._templates[key] = template
        if len(self._templates) > self._most:
            del self._templates[next(iter(self._templates))]


def owner_from(job: JobObject) -> Owner:
    """Return our Owner: of a Job without completions, as many are left as it runs at a time."""
    total = job.spec.completions if job.spec.completions is not None else job.spec.parallelism or 1
    created = epoch(job.metadata.creation_timestamp) or 0.0
    return Owner(job.metadata.uid, max(total - job.status.succeeded, 0), total, created)


def group_from(group: GroupObject, source: str) -> Group:
    """Return our Group."""
    spec, meta = group.spec, group.metadata
    gang = spec.scheduling_policy.gang if spec.scheduling_policy else None
    return Group(f"{meta.namespace}/{meta.name}", gang.min_count if gang else spec.min_member, source)


def _claims(meta: PodMeta, spec: PodSpec) -> tuple[str, ...]:
    """Return the claims that a pod uses; one made for it alone bears its name and that of the volume."""
    claims = []
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.append(f"{meta.namespace}/{volume.persistent_volume_claim.claim_name}")
        elif volume.ephemeral is not None:
            claims.append(f"{meta.namespace}/{meta.name}-{volume.name}")
    return tuple(claims)


def _is_rejection(reason: str) -> bool:
    """Say whether a pod failed because its kubelet would not have it."""
    return reason.startswith("OutOf") or reason in _REJECTIONS


def is_refusal(kind: str, status: str, reason: str | None) -> bool:
    """Say whether a condition is kube-scheduler's refusal, which that of a gated pod is not."""
    return kind == "PodScheduled" and status == "False" and reason != "SchedulingGated"


def epoch(moment: str | None) -> float | None:
    """Return the seconds since the epoch of an RFC 3339 time; None where it is none, or before the epoch."""
    if not moment or len(moment) > LONGEST_NUMBER:
        return None
    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return read.timestamp() if read.tzinfo is not None and read >= _EPOCH else None


def version_number(text: str) -> int:
    """Return a resource version as a number, 0 where it is none; they grow with time."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
