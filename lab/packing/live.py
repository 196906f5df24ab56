"""The cluster as it is now: its nodes, pods and volumes, read once by the service's own client; nothing is written."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from extender.adapters.kube.api import Api
from extender.adapters.kube.nodes import nodes
from extender.adapters.kube.observed import observed_pods
from extender.adapters.kube.watching import listed
from extender.cluster.recording.recorder import ClusterRecorder
from extender.errors import ClusterError
from extender.settings import Settings
from lab.packing.budgets import exhausted_budgets
from lab.packing.moment import ClusterMoment, moment_of
from lab.packing.volumes import read_bound

if TYPE_CHECKING:
    from extender.cluster.recording.lines import Checkpoint
    from extender.cluster.recording.observed import PodsObserved


def read_cluster(api: Api, settings: Settings, source: str) -> ClusterMoment:
    """Return the cluster as `dovetail record` would write it now. Raises ClusterError where it cannot be read."""
    now = time.time()
    recorder, kind = ClusterRecorder(now), nodes(settings.capacity_rules(), settings.opportunistic.evict_at_memory)
    list(recorder.take(kind.listed(listed(api, kind.path)[0]), now))
    pods, unread = _pods(api)
    list(recorder.take(pods, now))
    moment = moment_of(cast("Checkpoint", recorder.checkpoint(now)), source)
    try:
        moment = replace(moment, guards=exhausted_budgets(api))
    except ClusterError as error:
        unread.append(f"PodDisruptionBudgets ({error})")
    return replace(moment, not_modelled=[*moment.not_modelled, *unread])


def _pods(api: Api) -> "tuple[PodsObserved, list[str]]":
    """Return all pods, each tied to the nodes that can use its volumes, and what could not be read for that."""
    kind = observed_pods()
    pods = cast("PodsObserved", kind.listed(listed(api, kind.path)[0]))
    if not any(pod.claims for pod in pods.pods):
        return pods, []
    try:
        return read_bound(api).tied(pods), []
    except ClusterError as error:
        return pods, [f"claims and volumes ({error})"]
