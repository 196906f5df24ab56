"""What `serve` and `control` need alike to keep the order: the backlog, the input of plans, what may be read."""

import structlog

from extender.adapters.kube.api import Api, Refused
from extender.adapters.kube.namespaces import namespaces
from extender.adapters.kube.volumes import claims, volumes
from extender.adapters.kube.watching import Resource, pod_groups
from extender.control.backlog.backlog import Backlog
from extender.control.locality.target_wait import Target, TargetWait
from extender.control.plan_input.builder import PlanInputBuilder
from extender.errors import ClusterError
from extender.settings import Settings

POD_GROUPS = (
    "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    "/apis/scheduling.volcano.sh/v1beta1/podgroups",
)
_NOT_THERE = (403, 404)
_PROBE_SECONDS = 5.0
"""How long the API server may take to say whether a kind may be read."""

log = structlog.get_logger()


def waits_of(settings: Settings) -> TargetWait:
    """Return the waits for locality that settings state, to be computed anew where they state a target."""
    locality = settings.locality
    target = Target(locality.target, locality.max_wait_seconds) if locality.target else None
    return TargetWait(locality.wait_seconds, target)


def input_builder_of(settings: Settings, backlog: Backlog) -> PlanInputBuilder:
    """Return what makes the planner's input of a backlog, as settings state."""
    return PlanInputBuilder(
        backlog,
        settings.declared_queues(),
        starved_after=settings.policy.starved_after_seconds,
        levels=settings.locality.levels,
        long_tasks=settings.locality.long_task_seconds > 0,
        undeclared_weight=settings.undeclared_weight,
    )


def backlog_of(settings: Settings, *, by_filter: bool = False) -> Backlog:
    """Return an empty backlog for the schedulers and queues that settings state."""
    return Backlog(settings.control.schedulers, by_filter=by_filter, queues=settings.declared_queues())


def optional_kinds(api: Api, *, labels: bool) -> list[Resource]:
    """Return the kinds, beside pods, nodes and Jobs, that the order depends on and that we may read here.

    `labels` says whether labels of namespaces count.
    """
    probe = api.apart(_PROBE_SECONDS)
    return [*pod_groups_of(probe), *volumes_of(probe), *(namespaces_of(probe) if labels else ())]


def pod_groups_of(api: Api) -> list[Resource]:
    """Return the kinds of pod groups to follow: all but those that this API server lacks or does not let us read."""
    return [pod_groups(path) for path in POD_GROUPS if _may_read(api, path, "pod groups")]


def volumes_of(api: Api) -> list[Resource]:
    """Return claims and volumes, or neither: one without the other says nothing."""
    kinds = [claims(), volumes()]
    return kinds if all(_may_read(api, kind.path, kind.name) for kind in kinds) else []


def namespaces_of(api: Api) -> list[Resource]:
    """Return namespaces. Where they may not be read, none has a label."""
    kind = namespaces()
    return [kind] if _may_read(api, kind.path, kind.name) else []


def serve_asks_for_labels(settings: Settings) -> bool:
    """Say whether labels of namespaces count for the order alone: they say who may use a queue."""
    return any(queue.asks_for_labels for queue in settings.declared_queues())


def control_asks_for_labels(settings: Settings) -> bool:
    """Say whether they count for control: it decides whose pods may be opportunistic too."""
    return settings.opportunistic.enabled or serve_asks_for_labels(settings)


def _may_read(api: Api, path: str, name: str) -> bool:
    """Say whether a kind is to be followed. Where the server does not answer now, it is: its watch tries for ever."""
    try:
        api.read(path, [("limit", "1")])
    except ClusterError as error:
        if isinstance(error, Refused) and error.status in _NOT_THERE:
            log.info("goes on without", what=name, path=path, status=error.status)
            return False
        log.warning("cannot tell whether this may be read", what=name, path=path, error=str(error))
    return True
