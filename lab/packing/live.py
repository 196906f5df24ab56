"""The cluster as it is now: its nodes and pods, read once by the service's own client; nothing is written."""

import time
from typing import TYPE_CHECKING, cast

from extender.adapters.kube.api import Api
from extender.adapters.kube.nodes import nodes
from extender.adapters.kube.observed import observed_pods
from extender.adapters.kube.watching import listed
from extender.cluster.recording.recorder import Recorder
from extender.settings import Settings
from lab.packing.moment import Moment, moment_of

if TYPE_CHECKING:
    from extender.cluster.recording.lines import Checkpoint


def read_cluster(api: Api, settings: Settings, source: str) -> Moment:
    """Return the cluster as `dovetail record` would write it now. Raises ClusterError where it cannot be read."""
    now = time.time()
    recorder = Recorder(now)
    for kind in (nodes(settings.capacity_rules(), settings.opportunistic.evict_at_memory), observed_pods()):
        list(recorder.take(kind.listed(listed(api, kind.path)[0]), now))
    return moment_of(cast("Checkpoint", recorder.checkpoint(now)), source)
