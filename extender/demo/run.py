"""One run: a fresh control plane, one scheduler, the whole workload until its last pod has ended."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from extender.controlplane import workload as cluster
from extender.controlplane.configurations import dovetail_configuration, stock_configuration
from extender.controlplane.running import ControlPlane
from extender.demo.room import MachineRoom, Times
from extender.demo.workload import Workload
from extender.errors import ControlPlaneError

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
        _add_scheduler(control_plane, contender)
        with MachineRoom(client, workload) as room:
            cluster.create_pods(client, workload.pod_manifests())
            _wait(room, len(workload.tasks), show)
            return Outcome(contender, room.times(), control_plane.version())


def _add_scheduler(control_plane: ControlPlane, contender: Contender) -> None:
    if contender.with_dovetail:
        control_plane.add_scheduler(dovetail_configuration(control_plane.add_extender()))
    else:
        control_plane.add_scheduler(stock_configuration())


def _wait(room: MachineRoom, pods: int, show: Show) -> None:
    begun = time.monotonic()
    while (finished := room.finished) < pods:
        show(finished, room.running)
        if time.monotonic() - begun > _LONGEST_SECONDS:
            raise ControlPlaneError(f"only {finished} of {pods} pods had finished after {_LONGEST_SECONDS} s")
        time.sleep(_LOOK_SECONDS)
    show(finished, 0)
