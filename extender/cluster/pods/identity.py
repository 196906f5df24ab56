"""Whose pod is it: the job, stage and queue that a pod belongs to, and the group that must start together.

Ours first, then what the ecosystem writes. A name counts inside its namespace; the queue is the cluster's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

JOB_LABEL, STAGE_LABEL, QUEUE_LABEL = "dovetail.dev/job", "dovetail.dev/stage", "dovetail.dev/queue"

GROUPS = (
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.x-k8s.io/pod-group",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "volcano.sh/job-name",
    "gang.scheduling.koordinator.sh/name",
)
_JOBS = (
    "yunikorn.apache.org/app-id",
    "applicationId",
    "spark-app-selector",
    "ray.io/cluster",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
    "batch.kubernetes.io/job-name",
)
_STAGES = (STAGE_LABEL, "volcano.sh/task-spec", "training.kubeflow.org/replica-type", "spark-role")
_QUEUES = (
    QUEUE_LABEL,
    "kueue.x-k8s.io/queue-name",
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name",
    "yunikorn.apache.org/queue",
)
_LEAST = (
    "kueue.x-k8s.io/pod-group-total-count",
    "pod-group.scheduling.sigs.k8s.io/min-available",
    "gang.scheduling.koordinator.sh/min-available",
    "scheduling.volcano.sh/group-min-member",
)

LABELS = frozenset({JOB_LABEL, *GROUPS, *_JOBS, *_STAGES, *_QUEUES, *_LEAST})
"""All names above: those of the labels that count."""


@dataclass(frozen=True, slots=True)
class Identity:
    """`stage` is empty where only the demand tells stages apart; `group` is the pod group, if any.

    `least` is how many of the group must start together by what the pod itself says, 0 where it does not. `named` is
    the queue that it names, "" for none; `queue` is the one that it counts in.
    """

    job: str = ""
    stage: str = ""
    queue: str = ""
    group: str = ""
    least: int = 0
    named: str = ""


NOBODY = Identity()


def identify(
    namespace: str, texts: Mapping[str, str], *, pod_group: str | None = None, owner: str | None = None
) -> Identity:
    """Return a pod's identity from the `texts` of its labels and annotations.

    `pod_group` is spec.schedulingGroup.podGroupName, `owner` the UID of the controlling owner. `job` is empty
    for a pod without either: it is a job of its own.
    """
    group = pod_group or _first(texts, GROUPS)
    job = texts.get(JOB_LABEL) or group or _first(texts, _JOBS)
    named = _first(texts, _QUEUES)
    return Identity(
        job=f"{namespace}/{job}" if job else owner or "",
        stage=_first(texts, _STAGES),
        queue=named or namespace,
        group=f"{namespace}/{group}" if group else "",
        least=_count(_first(texts, _LEAST)) if group else 0,
        named=named,
    )


def _first(texts: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((texts[name] for name in names if texts.get(name)), "")


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
