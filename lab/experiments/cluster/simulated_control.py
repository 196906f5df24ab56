"""Dovetail in the simulator as on a cluster: the same pods, planned through the backlog and the input of `control`.

It knows only what the pods declare and where they run: where the copies of a map's block are, but not which one a
remote map reads; how much a reduce reads over the network, but not from where.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.nodes import NodeObject, node_from
from extender.adapters.kube.objects import PodObject
from extender.app.ordering import backlog_of, input_builder_of
from extender.app.tuning import policy_of
from extender.cluster.events import Event, NodesListed, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.waiting import Waiting
from extender.control.backlog.backlog import TaskClass
from extender.control.plan_input.builder import pods_of
from extender.planner import Assignments, Plan, Planner
from extender.settings import Settings
from lab.experiments.cluster.pod_run import source_of
from lab.experiments.cluster.pods import DOVETAIL, Pods, node_manifests, node_names
from lab.live.schedulers import HOLD
from lab.sim.engine.world import World
from lab.sim.workloads.workload import Machines

_NEVER = float("inf")
_DEFAULT_SCHEDULER = "default-scheduler"


class SimulatedControl:
    """A scheduler of the simulator (`planner.Scheduler`); `begin` gives it the world that it follows."""

    def __init__(self, settings: Settings, machines: Machines) -> None:
        self._machines = machines
        self._planner = Planner(policy_of(settings))
        self._ledger = Ledger(in_flight_seconds=settings.placement.in_flight_seconds)
        self._backlog = backlog_of(settings)
        self._input_builder = input_builder_of(settings, self._backlog)
        self._created: set[int] = set()
        self._running: dict[int, Pod] = {}
        self._started: dict[int, int] = {}
        self._world: World | None = None

    def begin(self, world: World) -> None:
        """Take the world whose tasks are to be pods."""
        self._world = world
        self._pods = Pods(world.table, world.backlog.copies, node_names(self._machines))
        nodes = [node_from(_decoded(manifest, NodeObject), ()) for manifest in node_manifests(self._machines)]
        self._apply(NodesListed(nodes), 0.0)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:  # noqa: ARG002 - it has its own
        """Return what to start now."""
        # 1. Bring the pods up to date with the world: ended tasks, and stages that have opened.
        world = self._begun_world()
        self._end(world, now)
        self._create(world, now)
        # 2. Plan as the release loop does.
        ledger_snapshot = self._ledger.snapshot(now)
        plan_input = self._input_builder.build(ledger_snapshot, now)
        plan = self._planner.plan(ledger_snapshot, plan_input.waiting, now)
        # 3. Release and bind the planned pods; their tasks start in the world.
        planned = zip(pods_of(plan_input, plan), plan.assignments.node.tolist(), strict=True)
        started = [
            self._start(world, self._release(plan_input.classes[row], pod, now), node, now)
            for (row, pod), node in planned
        ]
        return Plan(Assignments(*np.array(started, dtype=np.intp).reshape(-1, 4).T), again_at=plan.again_at)

    def _begun_world(self) -> World:
        if self._world is None:
            raise RuntimeError("begin comes first")
        return self._world

    def _apply(self, event: Event, now: float) -> None:
        self._backlog.apply(event, now)
        self._ledger.apply(event)

    def _create(self, world: World, now: float) -> None:
        """Create the pods of stages that have opened."""
        for stage in world.backlog.classes.tolist():
            if stage not in self._created:
                self._created.add(stage)
                for row in self._pods.of_stage(stage):
                    manifest = self._pods.manifest(row, DOVETAIL, HOLD)
                    manifest["metadata"]["uid"] = self._pods.names[row]  # both as the API server fills them in
                    manifest["spec"]["schedulerName"] = _DEFAULT_SCHEDULER
                    self._apply(PodSeen(replace(pod_from(_decoded(manifest, PodObject)), created=now)), now)

    def _end(self, world: World, now: float) -> None:
        """End the pods whose tasks have ended."""
        for task in sorted(self._running.keys() - set(world.tasks.tasks.tolist())):
            pod = self._running.pop(task)
            self._apply(PodSeen(replace(pod, finished=True, resource_version=pod.resource_version + 1)), now)

    def _release(self, task_class: TaskClass, named: Pod | None, now: float) -> Pod:
        """Take the named pod, or the next of the class, off the backlog as the release loop does; return it."""
        pod = self._backlog.take(task_class, now, _NEVER, named.uid if named is not None else None)
        if pod is None:
            raise RuntimeError(f"{task_class.name}: the plan starts a pod that does not wait")
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
