"""Dovetail in the simulator as it is on a cluster: the same pods, seen and released through the room `control`.

What it knows is what the pods say and where they were put: where a map's copies are, but not which one it reads from
afar, and of a reduce how much comes over the network, but not from where.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from extender.adapters.kube.decoding import node_from, pod_from
from extender.adapters.kube.objects import NodeObject, PodObject
from extender.app.ordering import backlog_of, input_builder_of, policy_of
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Event, NodesListed, Pod, PodSeen
from extender.cluster.waiting import Waiting
from extender.control.backlog.backlog import TaskClass
from extender.control.plan_input.builder import pods_of
from extender.planner import Assignments, Plan, Planner
from extender.settings import Settings
from lab.experiments.cluster.pod_run import source_of
from lab.experiments.cluster.pods import DOVETAIL, Pods, node_manifests, node_names
from lab.sim.engine.world import World
from lab.sim.workloads.workload import Machines

_NEVER = float("inf")
_DEFAULT_SCHEDULER = "default-scheduler"


class SimulatedControl:
    """A scheduler of the simulator (`planner.Scheduler`); `begin` hands it the world that it is to follow."""

    def __init__(self, settings: Settings, machines: Machines) -> None:
        self._machines = machines
        self._planner = Planner(policy_of(settings))
        self._ledger = Ledger(in_flight_seconds=settings.placement.in_flight_seconds)
        self._backlog = backlog_of(settings)
        self._rounds = input_builder_of(settings, self._backlog)
        self._made: set[int] = set()
        self._running: dict[int, Pod] = {}
        self._started: dict[int, int] = {}
        self._world: World | None = None

    def begin(self, world: World) -> None:
        """Take the world whose tasks are to be pods."""
        self._world = world
        self._pods = Pods(world.table, world.backlog.copies, node_names(self._machines))
        nodes = [node_from(_decoded(it, NodeObject), ()) for it in node_manifests(self._machines)]
        self._apply(NodesListed(nodes), 0.0)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:  # noqa: ARG002 - it has its own
        """Return what to start now."""
        world = self._there()
        self._end(world, now)
        self._make(world, now)
        seen = self._ledger.snapshot(now)
        made = self._rounds.next(seen.layout, now)
        plan = self._planner.plan(seen, made.waiting, now)
        going = zip(pods_of(made, plan), plan.assignments.node.tolist(), strict=True)
        started = [
            self._start(world, self._taken(made.classes[row], pod, now), node, now) for (row, pod), node in going
        ]
        return Plan(Assignments(*np.array(started, dtype=np.intp).reshape(-1, 4).T), again_at=plan.again_at)

    def _there(self) -> World:
        if self._world is None:
            raise RuntimeError("begin comes first")
        return self._world

    def _apply(self, event: Event, now: float) -> None:
        self._backlog.apply(event, now)
        self._ledger.apply(event)

    def _make(self, world: World, now: float) -> None:
        """Make the pods of stages that have opened."""
        for stage in world.backlog.classes.tolist():
            if stage not in self._made:
                self._made.add(stage)
                for row in self._pods.of_stage(stage):
                    manifest = self._pods.manifest(row, DOVETAIL)
                    manifest["metadata"]["uid"] = self._pods.names[row]  # both as the API server fills them in
                    manifest["spec"]["schedulerName"] = _DEFAULT_SCHEDULER
                    self._apply(PodSeen(replace(pod_from(_decoded(manifest, PodObject)), created=now)), now)

    def _end(self, world: World, now: float) -> None:
        """End the pods whose tasks have ended."""
        for task in sorted(self._running.keys() - set(world.tasks.tasks.tolist())):
            pod = self._running.pop(task)
            self._apply(PodSeen(replace(pod, finished=True, resource_version=pod.resource_version + 1)), now)

    def _taken(self, of: TaskClass, named: Pod | None, now: float) -> Pod:
        """Return the pod that goes, as the release loop takes it."""
        pod = self._backlog.take(of, now, _NEVER, named.uid if named is not None else None)
        if pod is None:
            raise RuntimeError(f"{of.name}: the plan starts a pod that does not wait")
        return pod

    def _start(self, world: World, pod: Pod, node: int, now: float) -> Sequence[int]:
        """Bind a pod; return its assignment in the simulator's rows."""
        row = self._pods.rows[pod.name]
        stage = int(self._pods.stage[row])
        name = node_names(self._machines)[node]
        bound = replace(pod, node=name, gates=(), started=now, resource_version=pod.resource_version + 1)
        self._apply(PodSeen(bound), now)
        place = int(np.searchsorted(world.backlog.classes, stage))
        if (world.backlog.copies[row] >= 0).any():
            self._running[row] = bound
            return place, node, int(self._pods.index[row]), source_of(world, row, node, self._machines.racks)
        count = self._started[stage] = self._started.get(stage, 0) + 1
        self._running[int(world.table.first_task[stage]) + count - 1] = bound
        return place, node, -1, -1


def _decoded(manifest: dict[str, Any], kind: type[Any]) -> Any:  # noqa: ANN401 - a NodeObject or a PodObject
    return msgspec.json.decode(json.dumps(manifest), type=kind)
