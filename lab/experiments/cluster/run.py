"""One run: a fresh control plane, one scheduler, the whole workload; or the same workload in the simulator."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient

from extender.planner import Scheduler
from extender.settings import Settings, parse
from lab.controlplane import builders
from lab.controlplane import workload as cluster
from lab.controlplane.running import ControlPlane
from lab.experiments.cluster import workload as drawn
from lab.experiments.cluster.history import History
from lab.experiments.cluster.pod_run import PodRun
from lab.experiments.cluster.pods import DOVETAIL, RACK_LABEL, ClusterContender, Pods, node_manifests, node_names
from lab.experiments.cluster.simulated_control import SimulatedControl
from lab.live.making import PodMaker
from lab.live.room import MachineRoom
from lab.live.schedulers import add_dovetail, add_stock, settings_for
from lab.sim.engine import clock as engine
from lab.sim.engine.outcome import Outcome, Speed
from lab.sim.engine.world import World
from lab.sim.workloads.workload import Machines, Workload

_LOOK_SECONDS = 0.1
_WARM_UP_PODS = 8
_WARM_UP_SECONDS = 60.0
_POINTS = 2000

Show = Callable[[int, int], None]
"""Shows how many tasks have ended, of how many."""


@dataclass(frozen=True, slots=True)
class ClusterSetup:
    """The jobs and machines of every contender, the locality waits in seconds, and how long a run may take."""

    seed: int
    machines: Machines
    workload: Workload
    waits: tuple[float, ...]
    limit_seconds: float

    @classmethod
    def of(cls, size: drawn.WorkloadSize, seed: int) -> "ClusterSetup":
        """Return the setup of a seed."""
        machines = drawn.machines(size)
        jobs = drawn.workload(size, machines, seed)
        return cls(seed, machines, jobs, drawn.waits(jobs, machines), size.limit_seconds)

    def world(self) -> World:
        """Return the jobs and machines at the beginning."""
        settings = engine.SimulationSettings(points=_POINTS)
        return World(
            self.workload,
            self.machines,
            seed=self.seed,
            begin=0.0,
            loss=settings.loss,
            sample_seconds=settings.sample_seconds,
            points=settings.points,
        )

    def settings(self) -> dict[str, Any]:
        """Return Dovetail's settings."""
        return {**settings_for(drawn.QUEUES), "locality": {"levels": [RACK_LABEL], "waitSeconds": list(self.waits)}}


@dataclass(frozen=True, slots=True)
class Observed:
    """A run on a cluster; `outcome` is None if not every task has ended in time."""

    history: History
    outcome: Outcome | None
    kubernetes: str


def run(programs: Mapping[str, Path], setup: ClusterSetup, contender: ClusterContender, show: Show) -> Observed:
    """Run the workload on a cluster, until all of it has ended or its time is over."""
    with ControlPlane(programs) as control_plane:
        client = control_plane.client()
        cluster.create_nodes(client, node_manifests(setup.machines))
        spec: Mapping[str, Any] = {}
        if contender is DOVETAIL:
            spec = add_dovetail(control_plane, setup.settings())
        else:
            add_stock(control_plane)
        _warm_up(client, contender, spec)
        course = _run(client, setup, contender, spec, show)
        outcome = course.world.outcome(contender.name, Speed(0, 0, 0, 0.0, 0.0)) if course.over else None
        return Observed(course.history, outcome, control_plane.version())


def settings_of(setup: ClusterSetup) -> Settings:
    """Return the settings that the cluster's Dovetail reads."""
    return parse({"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"} | setup.settings())


def simulate(setup: ClusterSetup, scheduler: Scheduler, name: str, heartbeat_seconds: float = 0.0) -> Outcome:
    """Return the outcome of the same workload in the simulator; `heartbeat_seconds` 0: every event is seen at once."""
    settings = engine.SimulationSettings(heartbeat_seconds=heartbeat_seconds, points=_POINTS)
    return engine.run(
        setup.workload,
        setup.machines,
        scheduler,
        seed=setup.seed,
        settings=settings,
        policy=name,
        follow=scheduler.begin if isinstance(scheduler, SimulatedControl) else None,
    )


def _run(
    client: ApiClient, setup: ClusterSetup, contender: ClusterContender, spec: Mapping[str, Any], show: Show
) -> PodRun:
    world, nodes = setup.world(), node_names(setup.machines)
    pods = Pods(world.table, world.backlog.copies, nodes)
    with PodMaker(client) as maker:

        def create(rows: Sequence[int]) -> None:
            maker.make([pods.manifest(row, contender, spec) for row in rows])

        course = PodRun(world, pods, nodes, setup.machines.racks, create)
        with MachineRoom(client, course) as room:
            begun = time.monotonic()
            course.begin(begun)
            while not course.over and time.monotonic() - begun < setup.limit_seconds:
                room.check()
                maker.check()
                show(course.history.finished, len(pods.names))
                time.sleep(_LOOK_SECONDS)
        show(course.history.finished, len(pods.names))
        return course


def _warm_up(client: ApiClient, contender: ClusterContender, spec: Mapping[str, Any]) -> None:
    """Have a few pods scheduled, so that everything is connected and a leader is elected."""
    pods = [builders.pod(f"warm-{number}", cpu="100m", memory="64Mi", spec=spec) for number in range(_WARM_UP_PODS)]
    cluster.create_pods(client, pods)
    purpose = f"{_WARM_UP_PODS} pods to be bound by {contender.name}"
    cluster.wait_until(lambda: len(cluster.bound_pods(client)) == _WARM_UP_PODS, _WARM_UP_SECONDS, purpose)
    cluster.delete_all_pods(client)
