"""The demo's machinery: how fast pods run is up to `machines`; here is when each started and ended, and where."""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.events import Event, PodSeen, PodsListed
from extender.cluster.model import Pod
from lab.demo.machines import DemoMachines
from lab.demo.workload import DemoWorkload


@dataclass(frozen=True)
class Times:
    """When each pod started and ended, in seconds since the first one started, and on which node [P each]."""

    started: Floats
    ended: Floats
    node: Rows


class Running:
    """A run on its way (`live.room.Machinery`): pods that run are put on the machines, which say when they are done."""

    def __init__(self, workload: DemoWorkload) -> None:
        self._workload = workload
        self._pods = {task.name: row for row, task in enumerate(workload.tasks)}
        self._nodes = {machine.name: row for row, machine in enumerate(workload.machines)}
        self._machines = DemoMachines(workload.capacity)
        count = len(workload.tasks)
        self._started, self._ended = np.full(count, np.nan), np.full(count, np.nan)
        self._node = np.full(count, -1, dtype=np.intp)
        self._confirmed: set[str] = set()

    @property
    def next_at(self) -> float:
        """When the next pod is done if nothing else happens."""
        return self._machines.next_end

    @property
    def finished(self) -> int:
        """How many pods the API server shows as succeeded."""
        return len(self._confirmed)

    @property
    def running(self) -> int:
        """How many pods run now."""
        return int((~np.isnan(self._started)).sum() - (~np.isnan(self._ended)).sum())

    def times(self) -> Times:
        """Return when what happened; not a number where it has not."""
        zero = np.nanmin(self._started)
        return Times(self._started - zero, self._ended - zero, self._node.copy())

    def take(self, event: Event, now: float) -> None:
        """Take in what the API server shows."""
        match event:
            case PodSeen(pod):
                self._see(now, pod)
            case PodsListed(pods):
                for pod in pods:
                    self._see(now, pod)

    def done(self, now: float) -> list[str]:
        """Return the names of the pods whose work is done by now."""
        rows = self._machines.end_due(now)
        self._ended[rows] = now
        return [self._workload.tasks[row].name for row in rows]

    def _see(self, now: float, pod: Pod) -> None:
        row = self._pods.get(pod.name)
        if row is None:
            return
        if pod.finished and not pod.failed:
            self._confirmed.add(pod.name)
        elif pod.node is not None and pod.started is not None and np.isnan(self._started[row]):
            node = self._node[row] = self._nodes[pod.node]
            self._started[row] = now
            self._machines.start(int(node), row, self._workload.demand[row], self._workload.work[row], now)
