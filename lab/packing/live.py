"""The cluster as it is now: its nodes and pods, read once by the service's own client; nothing is written."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from extender.adapters.kube.api import Api
from extender.adapters.kube.nodes import nodes
from extender.adapters.kube.observed import observed_pods
from extender.adapters.kube.watching import listed
from extender.cluster.recording.recorder import Recorder
from extender.errors import ClusterError
from extender.settings import Settings
from lab.packing.budgets import exhausted_budgets
from lab.packing.moment import Moment, moment_of

if TYPE_CHECKING:
    from extender.cluster.recording.lines import Checkpoint


def read_cluster(api: Api, settings: Settings, source: str) -> Moment:
    """Return the cluster as `dovetail record` would write it now. Raises ClusterError where it cannot be read."""
    now = time.time()
    recorder = Recorder(now)
    for kind in (nodes(settings.capacity_rules(), settings.opportunistic.evict_at_memory), observed_pods()):
        list(recorder.take(kind.listed(listed(api, kind.path)[0]), now))
    moment = moment_of(cast("Checkpoint", recorder.checkpoint(now)), source)
    try:
        guards = exhausted_budgets(api)
    except ClusterError as error:
        return replace(moment, not_modelled=[*moment.not_modelled, f"PodDisruptionBudgets ({error})"])
    return replace(moment, guards=guards)
