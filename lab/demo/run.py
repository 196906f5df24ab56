"""Runs on one control plane, in turn: one scheduler, and the whole workload until its last pod has ended."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from kubernetes.client import ApiClient

from lab.controlplane import builders
from lab.controlplane import workload as cluster
from lab.controlplane.processes import Load, LoadMeter
from lab.controlplane.running import ControlPlane
from lab.demo.room import Running, Times
from lab.demo.workload import QUEUES, DemoWorkload
from lab.errors import ControlPlaneError
from lab.live.room import MachineRoom
from lab.live.schedulers import add_dovetail, add_stock, remove, settings_for

_LONGEST_SECONDS = 300
_LOOK_SECONDS = 0.1
_WARM_UP_PODS = 8
_WARM_UP_SECONDS = 60.0

Show = Callable[[int, int], None]
"""Takes how many pods have finished, and how many run now."""


@dataclass(frozen=True)
class DemoContender:
    """A way to schedule: its name for people, and whether Dovetail is asked."""

    name: str
    with_dovetail: bool


STOCK = DemoContender("stock scheduler", with_dovetail=False)
DOVETAIL = DemoContender("Dovetail", with_dovetail=True)


@dataclass(frozen=True)
class RunOutcome:
    """What became of a run."""

    contender: DemoContender
    times: Times
    kubernetes: str
    load: Load


@contextmanager
def cluster_of(programs: Mapping[str, Path], workload: DemoWorkload) -> Iterator[ControlPlane]:
    """Start a control plane with the workload's nodes. Raises ControlPlaneError."""
    with ControlPlane(programs) as control_plane:
        cluster.create_nodes(control_plane.client(), workload.node_manifests())
        yield control_plane


def run(control_plane: ControlPlane, workload: DemoWorkload, contender: DemoContender, show: Show) -> RunOutcome:
    """Run the workload to its end on its nodes, and leave these empty.

    Raises ControlPlaneError where that fails or takes too long.
    """
    client = control_plane.client()
    spec: Mapping[str, Any] = {}
    if contender.with_dovetail:
        spec = add_dovetail(control_plane, settings_for(QUEUES))
    else:
        add_stock(control_plane)
    _warm_up(client, contender.name, spec)
    pods = Running(workload)
    meter = LoadMeter(control_plane.pids)
    with MachineRoom(client, pods) as room:
        creating = threading.Thread(target=_create, args=(client, workload, spec), daemon=True)
        creating.start()
        _wait(room, pods, len(workload.tasks), show)
    load = meter.load()
    remove(control_plane)
    cluster.delete_all_pods(client)
    return RunOutcome(contender, pods.times(), control_plane.version(), load)


def _warm_up(client: ApiClient, name: str, spec: Mapping[str, Any]) -> None:
    """Have a few pods scheduled, so that everything is connected and a leader is elected."""
    pods = [builders.pod(f"warm-{number}", cpu="100m", memory="64Mi", spec=spec) for number in range(_WARM_UP_PODS)]
    cluster.create_pods(client, pods)
    purpose = f"{_WARM_UP_PODS} pods to be bound by {name}"
    cluster.wait_until(lambda: len(cluster.bound_pods(client)) == _WARM_UP_PODS, _WARM_UP_SECONDS, purpose)
    cluster.delete_all_pods(client)


def _create(client: ApiClient, workload: DemoWorkload, spec: Mapping[str, Any]) -> None:
    """Create each pod when its time has come; those of one moment in a burst, in their order."""
    begun = time.monotonic()
    manifests = workload.pod_manifests(spec)
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
            ended = f"only {finished} of {total} pods had finished after {_LONGEST_SECONDS} s"
            raise ControlPlaneError(f"{ended}; run it alone on the machine, or with fewer --pods")
        time.sleep(_LOOK_SECONDS)
    show(finished, 0)
