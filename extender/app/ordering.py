"""What keeping the order takes, whoever keeps it: the planner's tuning, and what the API server lets us read for it."""

import math

import structlog

from extender.adapters.kube.api import Api, Refused
from extender.adapters.kube.namespaces import namespaces
from extender.adapters.kube.volumes import claims, volumes
from extender.adapters.kube.watching import Resource, pod_groups
from extender.control.backlog.backlog import Backlog
from extender.control.locality.target_wait import Target, TargetWait
from extender.control.plan_input.builder import PlanInputBuilder
from extender.errors import ClusterError
from extender.planner import Policy
from extender.settings import Settings

POD_GROUPS = (
    "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    "/apis/scheduling.volcano.sh/v1beta1/podgroups",
)
_NOT_THERE = (403, 404)
_PROBE_SECONDS = 5.0
"""So long the API server has to say whether a kind may be read."""

log = structlog.get_logger()


def policy_of(settings: Settings) -> Policy:
    """Return the planner's tuning that settings state."""
    told, near = settings.policy, settings.locality
    return Policy(
        rule=told.rule,
        srtf=told.srtf,
        sharing=told.sharing,
        fairness=told.fairness,
        barrier=told.barrier,
        starved_after=told.starved_after_seconds,
        reservable=told.reservable,
        remote_penalty=near.remote_penalty,
        locality_waits=near.wait_seconds,
        long_task=near.long_task_seconds or math.inf,
    )


def waits_of(settings: Settings) -> TargetWait:
    """Return the waits for locality that settings state, to be computed anew where they state a target."""
    near = settings.locality
    return TargetWait(near.wait_seconds, Target(near.target, near.max_wait_seconds) if near.target else None)


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


def optional_kinds(api: Api, settings: Settings) -> list[Resource]:
    """Return the kinds beside pods, nodes and Jobs that the order is made of, as far as they are there to be read."""
    hasty = api.apart(_PROBE_SECONDS)
    return [*pod_groups_of(hasty), *volumes_of(hasty), *namespaces_of(settings, hasty)]


def pod_groups_of(api: Api) -> list[Resource]:
    """Return the kinds of pod groups to follow: all but those that this API server lacks or does not let us read."""
    return [pod_groups(path) for path in POD_GROUPS if _may_read(api, path, "pod groups")]


def volumes_of(api: Api) -> list[Resource]:
    """Return claims and volumes unless one of them may not be read, as one without the other says nothing."""
    found = [claims(), volumes()]
    return found if all(_may_read(api, it.path, it.name) for it in found) else []


def namespaces_of(settings: Settings, api: Api) -> list[Resource]:
    """Return namespaces where labels of theirs say who may use a queue; asks as above. Unread, nobody has a label."""
    wanted = any(queue.asks_for_labels for queue in settings.declared_queues())
    found = namespaces()
    return [found] if wanted and _may_read(api, found.path, found.name) else []


def _may_read(api: Api, path: str, name: str) -> bool:
    """Say whether a kind is to be followed. Where that cannot be told now it is: its watch tries for ever."""
    try:
        api.read(path, [("limit", "1")])
    except ClusterError as error:
        if isinstance(error, Refused) and error.status in _NOT_THERE:
            log.info("goes on without", what=name, path=path, status=error.status)
            return False
        log.warning("cannot tell whether this may be read", what=name, path=path, error=str(error))
    return True
