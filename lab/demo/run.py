"""One run: a fresh control plane, one scheduler, the whole workload until its last pod has ended."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kubernetes.client import ApiClient

from extender.errors import ControlPlaneError
from lab.controlplane import workload as cluster
from lab.controlplane.running import ControlPlane
from lab.demo.room import Running, Times
from lab.demo.workload import QUEUES, Workload
from lab.live.room import MachineRoom
from lab.live.schedulers import add_dovetail, add_stock, settings_for

_LONGEST_SECONDS = 300
_LOOK_SECONDS = 0.1

Show = Callable[[int, int], None]
"""Takes how many pods have finished, and how many run now."""


@dataclass(frozen=True)
class Contender:
    """A way to schedule: its name for people, and whether Dovetail is asked."""

    name: str
    with_dovetail: bool


STOCK = Contender("stock scheduler", with_dovetail=False)
DOVETAIL = Contender("Dovetail", with_dovetail=True)


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    contender: Contender
    times: Times
    kubernetes: str


def run(programs: Mapping[str, Path], workload: Workload, contender: Contender, show: Show) -> Outcome:
    """Run the workload to its end. Raises ControlPlaneError where that fails or takes too long."""
    with ControlPlane(programs) as control_plane:
        client = control_plane.client()
        cluster.create_nodes(client, workload.node_manifests())
        if contender.with_dovetail:
            add_dovetail(control_plane, settings_for(QUEUES))
        else:
            add_stock(control_plane)
        pods = Running(workload)
        with MachineRoom(client, pods) as room:
            creating = threading.Thread(target=_create, args=(client, workload, contender), daemon=True)
            creating.start()
            _wait(room, pods, len(workload.tasks), show)
            return Outcome(contender, pods.times(), control_plane.version())


def _create(client: ApiClient, workload: Workload, contender: Contender) -> None:
    """Create each pod when its time has come; those of one moment in a burst, in their order."""
    begun = time.monotonic()
    manifests = workload.pod_manifests(held=contender.with_dovetail)
    arrivals = workload.arrivals
    for moment in np.unique(arrivals).tolist():
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        cluster.create_pods(client, [manifests[row] for row in (arrivals == moment).nonzero()[0].tolist()])


def _wait(room: MachineRoom, pods: Running, total: int, show: Show) -> None:
    begun = time.monotonic()
    while (finished := pods.finished) < total:
        room.check()
        show(finished, pods.running)
        if time.monotonic() - begun > _LONGEST_SECONDS:
            raise ControlPlaneError(f"only {finished} of {total} pods had finished after {_LONGEST_SECONDS} s")
        time.sleep(_LOOK_SECONDS)
    show(finished, 0)
