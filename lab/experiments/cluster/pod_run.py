"""A run on real pods: the simulator's machines and jobs, on the wall clock.

The life of a task:

1. Its stage opens, and `create` makes its pod.
2. The API server shows the pod as running: the task starts in the simulated world, on that node.
3. The simulated world says that its work is done: `done` returns the pod, and the caller ends it through the API.
4. The API server shows the pod as ended: the backlog learns of it, and opens the stages that waited, as a workflow
   engine would.
"""

from collections.abc import Callable, Sequence

import numpy as np

from extender.arrays import Rows
from extender.cluster.events import Event, PodGone, PodSeen, PodsListed
from extender.cluster.model import Pod
from extender.errors import DovetailError
from extender.planner import Assignments
from lab.experiments.cluster.history import History
from lab.experiments.cluster.pods import Pods
from lab.sim.engine.running import Ends
from lab.sim.engine.world import World
from lab.sim.schedulers.random_source import random_copy
from lab.sim.workloads.workload import BLOCKS, SOURCES

Create = Callable[[Sequence[int]], None]
"""Creates the pods of these tasks, now or soon."""


class PodRun:
    """A run on its way (`live.room.Machinery`); `zero` is its beginning on the monotonic clock."""

    def __init__(self, world: World, pods: Pods, nodes: Sequence[str], racks: Rows | None, create: Create) -> None:
        self.world, self.pods = world, pods
        self.history = History(len(pods.names))
        self._node_rows = {name: row for row, name in enumerate(nodes)}
        self._racks, self._create = racks, create
        self._zero = np.inf
        self._pod_of: dict[int, int] = {}
        self._task_of: dict[int, int] = {}
        self._ends: dict[int, Ends] = {}
        self._shown: set[int] = set()
        self._due: list[int] = []
        self._created: set[int] = set()

    def begin(self, now: float) -> None:
        """Let the clock of the workload start."""
        self._zero = now

    @property
    def next_at(self) -> float:
        """When the next job arrives, or the next task is done if nothing else happens."""
        return self._zero + min(self.world.backlog.next_arrival, self.world.tasks.next_at)

    @property
    def over(self) -> bool:
        """Whether every task has ended."""
        return self.history.finished == len(self.pods.names)

    def take(self, event: Event, now: float) -> None:
        """Handle an event of the API server."""
        match event:
            case PodSeen(pod):
                self._see(pod, now - self._zero)
            case PodsListed(pods):
                for pod in pods:
                    self._see(pod, now - self._zero)
            case PodGone(uid):
                self.history.gone(uid)

    def done(self, now: float) -> list[str]:
        """Return the names of the pods whose work is done by now, and create the pods of jobs that have arrived."""
        if now < self._zero:
            return []
        self._pass_to(now - self._zero)
        self.world.share()
        due, self._due = self._due, []
        return [self.pods.names[row] for row in due]

    def _pass_to(self, now: float) -> None:
        """Go on to a time; a time in the past changes nothing, because events come one after the other."""
        ends = self.world.pass_to(max(now, self.world.now))
        if ends is not None:
            for place, task in enumerate(ends.task.tolist()):
                row = self._pod_of[task]
                self._ends[row] = _single(ends, place)
                self.history.done[row] = ends.at[place]
                self._due.append(row)
        if self.world.backlog.arrive(self.world.now):
            self._create_pods()

    def _see(self, pod: Pod, now: float) -> None:
        row = self.pods.rows.get(pod.name)
        if row is None:
            return
        self.history.see(row, pod, now)
        if pod.finished:
            self._confirm(row, now)
        elif pod.node is not None and pod.started is not None and row not in self._task_of:
            self._start(row, self._node_rows[pod.node], now)

    def _start(self, row: int, node: int, now: float) -> None:
        """Start a pod's task. A map is the task of its block; any other pod is the next task of its stage."""
        self._pass_to(now)
        world, stage = self.world, int(self.pods.stage[row])
        task = source = -1
        if world.table.source[stage] == SOURCES.index(BLOCKS):
            task, source = int(self.pods.index[row]), source_of(world, row, node, self._racks)
        place = int(np.searchsorted(world.backlog.classes, stage))
        started = world.start(Assignments(*(np.array([row], dtype=np.intp) for row in (place, node, task, source))))
        self._task_of[row] = int(started.task[0])
        self._pod_of[int(started.task[0])] = row
        world.share()

    def _confirm(self, row: int, now: float) -> None:
        """Note that the API server shows a pod's end, and create the pods of the stages that waited for it."""
        ends = self._ends.pop(row, None)
        if ends is None:
            if row not in self._shown:
                raise DovetailError(f"{self.pods.names[row]} has ended before its work was done")
            return
        self._shown.add(row)
        self._pass_to(now)
        self.world.backlog.end(ends, self.world.now)
        self._create_pods()

    def _create_pods(self) -> None:
        """Create the pods of stages that have opened."""
        stages = [stage for stage in self.world.backlog.classes.tolist() if stage not in self._created]
        self._created.update(stages)
        rows = [row for stage in stages for row in self.pods.of_stage(stage)]
        if rows:
            self.history.opened[rows] = self.world.now
            self._create(rows)


def source_of(world: World, row: int, node: int, racks: Rows | None) -> int:
    """Return the node that a map reads from: its own, else one in its rack, else any; the same in every run."""
    return random_copy(world.backlog.copies[row], node, racks, np.random.default_rng(row))


def _single(ends: Ends, place: int) -> Ends:
    row = slice(place, place + 1)
    return Ends(ends.stage[row], ends.task[row], ends.at[row], ends.job_demand[:, row])
