"""The manifests of the workload: nodes with racks, and a pod for each task with all that a user would declare."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from extender.arrays import Rows
from extender.cluster.pods.demand import DURATION_ANNOTATION, TASKS_ANNOTATION
from extender.cluster.pods.preference import INPUT_ANNOTATION
from extender.cluster.resources import CPU, DIMENSIONS, IO_DIMENSIONS, MEMORY
from lab.controlplane import builders
from lab.controlplane.builders import Manifest
from lab.sim.workloads.stages import StageTable
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, SOURCES, Machines

RACK_LABEL = "topology.dovetail.dev/rack"
_HINT_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class ClusterContender:
    """A way to schedule. `hinted`: maps prefer their block's nodes by node affinity."""

    name: str
    hinted: bool = False


DOVETAIL = ClusterContender("Dovetail")
"""`serve` and `control`; maps say where their input is by our annotation."""
STOCK = ClusterContender("stock", hinted=True)
PLAIN = ClusterContender("plain stock")
"""The default scheduler, which is not told where blocks are."""


def node_names(cluster: Machines) -> list[str]:
    """Return the nodes' names, in the order of their names."""
    return [f"node-{row:03d}" for row in range(len(cluster.capacity))]


def node_manifests(cluster: Machines) -> list[Manifest]:
    """Return the nodes, with disk and network capacity and their rack."""
    racks = cluster.racks if cluster.racks is not None else np.zeros(len(cluster.capacity), dtype=np.intp)
    manifests = []
    for name, row, rack in zip(node_names(cluster), cluster.capacity.tolist(), racks.tolist(), strict=True):
        offers = dict(zip(DIMENSIONS, row, strict=True))
        manifests.append(
            builders.node(
                name,
                cpu=f"{offers[CPU]:.0f}m",
                memory=f"{offers[MEMORY]:.0f}",
                capacity={name: f"{offers[name]:.0f}" for name in IO_DIMENSIONS},
                labels={RACK_LABEL: f"rack-{rack}"},
            )
        )
    return manifests


class Pods:
    """The pods of all tasks [T] of a table; a task is a row of it, and so is its pod."""

    def __init__(self, table: StageTable, copies: Rows, nodes: list[str]) -> None:
        """Take the machines that hold each task's block, `copies` [T, K], and the names of the nodes."""
        self._table, self._copies, self._nodes = table, copies, nodes
        self.stage = table.stage_of_task
        self.index = np.arange(len(self.stage)) - table.first_task[self.stage]
        self.names = [
            f"{table.names[stage].replace('/', '-')}-{index:03d}"
            for stage, index in zip(self.stage.tolist(), self.index.tolist(), strict=True)
        ]
        self.rows = {name: row for row, name in enumerate(self.names)}

    def of_stage(self, stage: int) -> list[int]:
        """Return the tasks of a stage, in order."""
        first = int(self._table.first_task[stage])
        return list(range(first, first + int(self._table.tasks[stage])))

    def manifest(
        self, row: int, contender: ClusterContender, given: Mapping[str, Any] = MappingProxyType({})
    ) -> Manifest:
        """Return the pod of a task; what is `given` goes into its spec."""
        table, stage = self._table, int(self.stage[row])
        job, name = table.names[stage].split("/")
        demand = dict(zip(DIMENSIONS, table.demand[stage].tolist(), strict=True))
        # With its unit: a bare number would be read as the time at which to end the pod.
        annotations = {DURATION_ANNOTATION: f"{table.expected[stage]:g}s", TASKS_ANNOTATION: str(table.tasks[stage])}
        spec = dict(given)
        if table.source[stage] == SOURCES.index(BLOCKS):
            holders = self._holders(row)
            size = f"{table.reading[stage] * table.expected[stage]:.0f}"
            annotations[INPUT_ANNOTATION] = json.dumps(dict.fromkeys(holders, size))
            spec |= _affinity(holders) if contender.hinted else {}
        return builders.pod(
            self.names[row],
            cpu=f"{demand[CPU]:.0f}m",
            memory=f"{demand[MEMORY]:.0f}",
            demand=self._rates(stage),
            labels={
                "dovetail.dev/queue": table.queue_names[table.job_queue[table.job[stage]]],
                "dovetail.dev/job": job,
                "dovetail.dev/stage": name,
            },
            annotations=annotations,
            spec=spec,
        )

    def _holders(self, row: int) -> list[str]:
        return [self._nodes[node] for node in sorted(self._copies[row].tolist()) if node >= 0]

    def _rates(self, stage: int) -> dict[str, str]:
        """Return the rates that a task declares: blocks are read from its node's disk, shuffles over the network."""
        rates = dict(zip(DIMENSIONS, self._table.demand[stage].tolist(), strict=True))
        shuffles = self._table.source[stage] == SOURCES.index(SHUFFLE)
        rates["network-in" if shuffles else "disk-read"] += float(self._table.reading[stage])
        return {name: f"{rates[name]:.0f}" for name in IO_DIMENSIONS if rates[name] > 0}


def _affinity(holders: list[str]) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": holders}
    term = {"weight": _HINT_WEIGHT, "preference": {"matchExpressions": [expression]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}
