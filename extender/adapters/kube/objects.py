"""Kubernetes' objects as JSON: the fields that are used, by Kubernetes' names. Whatever else is there is skipped."""

import msgspec

from extender.cluster.model import PROMISED_ANNOTATION
from extender.cluster.pods.demand import DEMAND_ANNOTATION, DURATION_ANNOTATION, TASKS_ANNOTATION
from extender.cluster.pods.opportunistic import OPPORTUNISTIC_ANNOTATION, REGULAR_REQUESTS_ANNOTATION
from extender.cluster.pods.preference import INPUT_ANNOTATION

Quantities = dict[str, str]


class Requests(msgspec.Struct):
    """ResourceRequirements."""

    requests: Quantities | None = None


class ContainerPort(msgspec.Struct, rename="camel"):
    """ContainerPort."""

    host_port: int | None = None


class ContainerSpec(msgspec.Struct, rename="camel"):
    """Container."""

    name: str = ""
    resources: Requests | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None


class ContainerStatus(msgspec.Struct, rename="camel"):
    """ContainerStatus."""

    name: str = ""
    resources: Requests | None = None
    allocated_resources: Quantities | None = None


class Condition(msgspec.Struct):
    """PodCondition."""

    type: str = ""
    status: str = ""
    reason: str | None = None


class PodAnnotations(msgspec.Struct):
    """Those of a pod's annotations that are used: ours, and those of the ecosystem that name groups and queues."""

    demand: str | None = msgspec.field(default=None, name=DEMAND_ANNOTATION)
    duration: str | None = msgspec.field(default=None, name=DURATION_ANNOTATION)
    tasks: str | None = msgspec.field(default=None, name=TASKS_ANNOTATION)
    input: str | None = msgspec.field(default=None, name=INPUT_ANNOTATION)
    promised: str | None = msgspec.field(default=None, name=PROMISED_ANNOTATION)
    regular_requests: str | None = msgspec.field(default=None, name=REGULAR_REQUESTS_ANNOTATION)
    opportunistic: str | None = msgspec.field(default=None, name=OPPORTUNISTIC_ANNOTATION)
    group_name: str | None = msgspec.field(default=None, name="scheduling.k8s.io/group-name")
    volcano_group: str | None = msgspec.field(default=None, name="scheduling.volcano.sh/group-name")
    volcano_queue: str | None = msgspec.field(default=None, name="scheduling.volcano.sh/queue-name")
    volcano_least: str | None = msgspec.field(default=None, name="scheduling.volcano.sh/group-min-member")
    koordinator_group: str | None = msgspec.field(default=None, name="gang.scheduling.koordinator.sh/name")
    koordinator_least: str | None = msgspec.field(default=None, name="gang.scheduling.koordinator.sh/min-available")
    kueue_count: str | None = msgspec.field(default=None, name="kueue.x-k8s.io/pod-group-total-count")
    yunikorn_app: str | None = msgspec.field(default=None, name="yunikorn.apache.org/app-id")
    yunikorn_queue: str | None = msgspec.field(default=None, name="yunikorn.apache.org/queue")

    def names(self) -> dict[str, str]:
        """Return what the ecosystem's annotations say that are there, by the annotation's name."""
        values = ((name, getattr(self, field)) for field, name in _ECOSYSTEM)
        return {name: value for name, value in values if value is not None}


_ECOSYSTEM = tuple(
    (field.name, field.encode_name)
    for field in msgspec.structs.fields(PodAnnotations)
    if not field.encode_name.startswith("dovetail.dev/")
)


class OwnerReference(msgspec.Struct):
    """OwnerReference."""

    uid: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class SchedulingGate(msgspec.Struct):
    """PodSchedulingGate."""

    name: str = ""


class TolerationSpec(msgspec.Struct):
    """Toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Expression(msgspec.Struct):
    """NodeSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class SelectorTerm(msgspec.Struct, rename="camel"):
    """NodeSelectorTerm."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class Selector(msgspec.Struct, rename="camel"):
    """NodeSelector."""

    node_selector_terms: list[SelectorTerm] | None = None


class PreferredTerm(msgspec.Struct):
    """PreferredSchedulingTerm."""

    weight: int = 0
    preference: SelectorTerm = msgspec.field(default_factory=SelectorTerm)


class NodeAffinity(msgspec.Struct):
    """NodeAffinity."""

    required: Selector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Anything(msgspec.Struct):
    """An object of which it only counts that it is there."""


class PodAffinityTerm(msgspec.Struct, rename="camel"):
    """PodAffinityTerm: the namespaces of the pods that it is about; which pods there is not read."""

    namespaces: list[str] | None = None
    namespace_selector: Anything | None = None


class WeightedPodAffinityTerm(msgspec.Struct, rename="camel"):
    """WeightedPodAffinityTerm."""

    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(msgspec.Struct):
    """PodAffinity, and PodAntiAffinity."""

    required: list[PodAffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(msgspec.Struct, rename="camel"):
    """Affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(msgspec.Struct, rename="camel"):
    """TopologySpreadConstraint."""

    when_unsatisfiable: str = ""


class SchedulingGroup(msgspec.Struct, rename="camel"):
    """PodSchedulingGroup (1.36)."""

    pod_group_name: str | None = None


class PodMeta(msgspec.Struct, rename="camel"):
    """A pod's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: PodAnnotations | None = None
    owner_references: list[OwnerReference] | None = None


class ClaimSource(msgspec.Struct, rename="camel"):
    """PersistentVolumeClaimVolumeSource."""

    claim_name: str = ""


class EphemeralSource(msgspec.Struct):
    """EphemeralVolumeSource: that it is there says what its claim is called."""


class VolumeSource(msgspec.Struct, rename="camel"):
    """Volume of a pod."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None


class DeviceClaim(msgspec.Struct, rename="camel"):
    """PodResourceClaim: that it is there, and the template of which it is made, where it is made for the pod alone."""

    resource_claim_template_name: str | None = None


class PodSpec(msgspec.Struct, rename="camel"):
    """PodSpec."""

    node_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    scheduling_group: SchedulingGroup | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[TolerationSpec] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None
    volumes: list[VolumeSource] | None = None
    containers: list[ContainerSpec] | None = None
    init_containers: list[ContainerSpec] | None = None
    host_network: bool | None = None
    overhead: Quantities | None = None
    resources: Requests | None = None
    resource_claims: list[DeviceClaim] | None = None


class PodStatus(msgspec.Struct, rename="camel"):
    """PodStatus."""

    phase: str | None = None
    reason: str | None = None
    start_time: str | None = None
    nominated_node_name: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: Requests | None = None
    allocated_resources: Quantities | None = None


class PodObject(msgspec.Struct):
    """Pod."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus | None = None


class JobSpec(msgspec.Struct):
    """JobSpec."""

    completions: int | None = None
    parallelism: int | None = None


class JobStatus(msgspec.Struct):
    """JobStatus."""

    succeeded: int = 0


class JobMeta(msgspec.Struct, rename="camel"):
    """A Job's metadata."""

    uid: str = ""
    creation_timestamp: str | None = None


class JobObject(msgspec.Struct):
    """Job."""

    metadata: JobMeta = msgspec.field(default_factory=JobMeta)
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class GangPolicy(msgspec.Struct, rename="camel"):
    """GangSchedulingPolicy."""

    min_count: int = 0


class GroupPolicy(msgspec.Struct):
    """PodGroupSchedulingPolicy."""

    gang: GangPolicy | None = None


class GroupSpec(msgspec.Struct, rename="camel"):
    """PodGroupSpec, of Kubernetes itself, of the scheduler plugins and of Volcano."""

    min_member: int = 0
    scheduling_policy: GroupPolicy | None = None


class GroupMeta(msgspec.Struct):
    """A pod group's metadata."""

    name: str = ""
    namespace: str = ""


class GroupObject(msgspec.Struct):
    """PodGroup."""

    metadata: GroupMeta = msgspec.field(default_factory=GroupMeta)
    spec: GroupSpec = msgspec.field(default_factory=GroupSpec)
