"""What keeping the order takes, whoever keeps it: the planner's tuning, and the pod groups of this API server."""

import structlog

from extender.adapters.kube import Api, Refused
from extender.adapters.watching import Resource, pod_groups
from extender.errors import ClusterError
from extender.planner import Policy
from extender.settings import PolicySettings

POD_GROUPS = (
    "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    "/apis/scheduling.volcano.sh/v1beta1/podgroups",
)
log = structlog.get_logger()


def policy_of(settings: PolicySettings) -> Policy:
    """Return the planner's tuning that settings state."""
    return Policy(
        rule=settings.rule,
        srtf=settings.srtf,
        sharing=settings.sharing,
        fairness=settings.fairness,
        barrier=settings.barrier,
        starved_after=settings.starved_after_seconds,
        reservable=settings.reservable,
    )


def pod_groups_of(api: Api) -> list[Resource]:
    """Return the kinds of pod groups that this API server has and lets us read."""
    found = []
    for path in POD_GROUPS:
        try:
            api.read(path, [("limit", "1")])
            found.append(pod_groups(path))
        except Refused as refusal:
            log.info("no pod groups", path=path, status=refusal.status)
        except ClusterError as error:
            log.warning("no pod groups", path=path, error=str(error))
    return found
