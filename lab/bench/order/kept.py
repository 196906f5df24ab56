"""Room kept idle, for `bench order`: random clusters with tasks that are hard or impossible to place.

Small tasks of one queue could always use what is free. Beside them wait large ones, gangs, ones that only daemons keep
off every node for ever, and ones that no node could hold. What is measured is what stands empty although a waiting task
would fit there; not what the planner says of itself.
"""

import heapq
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.layout import Layout, layout_of
from extender.cluster.ledger.snapshot import Snapshot, no_nominations
from extender.cluster.model import Node
from extender.cluster.waiting import Jobs, Running, Waiting
from extender.planner import Planner, Policy

_CORE, _NODE_CORES = 1000.0, 16
_WINDOW_SECONDS = 600.0
_DAEMON_CORES = 0.2
_QUEUES = ("small", "large", "gangs", "hopeless")


@dataclass(slots=True)
class _Class:
    """Tasks of one shape: `cores` and `seconds` each, how many wait, since when, and of how many a gang is made."""

    name: str
    queue: int
    cores: float
    seconds: float
    count: int
    since: float
    gang: int = 0


@dataclass(slots=True)
class RandomCluster:
    """A cluster of `nodes` nodes of 16 cores, on some of which a daemon runs, and what arrives there at random.

    `started` counts tasks by queue.
    """

    draw: np.random.Generator
    nodes: int = 24
    now: float = 0.0
    waiting: list[_Class] = field(default_factory=list)
    started: list[int] = field(default_factory=lambda: [0] * len(_QUEUES))
    _layout: Layout = field(init=False)
    _fixed: Floats = field(init=False)
    _ends: list[tuple[float, int, int, float, int]] = field(default_factory=list)
    _made: int = 0

    def __post_init__(self) -> None:
        names = [f"n{index:02}" for index in range(self.nodes)]
        self._layout = layout_of({name: Node(name, {"cpu": _NODE_CORES * _CORE}) for name in names})
        with_daemon = self.draw.random(self.nodes) < self.draw.choice([0.5, 1.0])
        self._fixed = np.zeros(self._layout.capacity.shape)
        self._fixed[:, 0] = np.where(with_daemon, _DAEMON_CORES * _CORE, 0.0)

    def arrive(self) -> None:
        """Add what arrives now: always more small tasks than fit, now and then something hard."""
        self._add(0, float(self.draw.integers(1, 5)), 40)
        if self.draw.random() < 0.5:
            self._add(1, float(self.draw.integers(8, 16)), int(self.draw.integers(1, 4)))
        if self.draw.random() < 0.25:
            self._add(2, 2.0, int(self.draw.integers(2, 8)), gang=True)
        if self.draw.random() < 0.3:
            self._add(3, float(self.draw.choice([_NODE_CORES, _NODE_CORES + 1])), 1)

    def plan(self, planner: Planner) -> None:
        """Start what the planner says."""
        snapshot, waiting = self._snapshot(), self._waiting()
        plan = planner.plan(snapshot, waiting, self.now)
        for row, node in zip(plan.assignments.task_class.tolist(), plan.assignments.node.tolist(), strict=True):
            task_class = self.waiting[row]
            task_class.count, task_class.since = task_class.count - 1, self.now
            self._made += 1
            ends_at = self.now + task_class.seconds * float(self.draw.uniform(0.5, 1.5))
            heapq.heappush(self._ends, (ends_at, self._made, node, task_class.cores, task_class.queue))
            self.started[task_class.queue] += 1
        self.waiting = [task_class for task_class in self.waiting if task_class.count]

    def advance(self, until: float) -> float:
        """Go to the next end, or to `until`, and return the time."""
        self.now = min(self._ends[0][0], until) if self._ends else until
        while self._ends and self._ends[0][0] <= self.now:
            heapq.heappop(self._ends)
        return self.now

    def idle_part(self) -> float:
        """Return the part of the cluster that is free on nodes where some waiting task that is of no gang would fit."""
        free = (self._layout.capacity - self._snapshot().allocated)[:, 0] / _CORE
        least = min((task_class.cores for task_class in self.waiting if not task_class.gang), default=np.inf)
        return float(free[free >= least].sum() / (self.nodes * _NODE_CORES))

    def _add(self, queue: int, cores: float, most: int, *, gang: bool = False) -> None:
        self._made += 1
        tasks = sum(task_class.count for task_class in self.waiting if task_class.queue == queue)
        if tasks < 4 * most:
            seconds = float(self.draw.uniform(20, 200))
            name = f"{_QUEUES[queue]}{self._made:05}"
            self.waiting.append(_Class(name, queue, cores, seconds, most, self.now, most if gang else 0))

    def _snapshot(self) -> Snapshot:
        allocated = self._fixed.copy()
        for _, _, node, cores, _ in self._ends:
            allocated[node, 0] += cores * _CORE
        nobody = no_nominations(len(self._layout.axis))
        return Snapshot(0, 0, self._layout, allocated, np.zeros_like(allocated), nobody)

    def _waiting(self) -> Waiting:
        self.waiting.sort(key=lambda task_class: task_class.name)
        classes, count = self.waiting, len(self.waiting)
        demand = np.zeros((count, len(self._layout.axis)))
        demand[:, 0] = [task_class.cores * _CORE for task_class in classes]
        seconds, left = (
            np.array([task_class.seconds for task_class in classes]),
            np.array([task_class.count for task_class in classes]),
        )
        queue = np.array([task_class.queue for task_class in classes], dtype=np.intp)
        gangs = [row for row, task_class in enumerate(classes) if task_class.gang]
        ends = sorted(self._ends)
        held = np.zeros((len(ends), len(self._layout.axis)))
        held[:, 0] = [cores * _CORE for *_, cores, _ in ends]
        allocated = np.zeros(
            (count + len(_QUEUES), len(self._layout.axis))
        )  # a job each, and one of what runs in each queue
        for *_, cores, queue_row in ends:
            allocated[count + queue_row, 0] += cores * _CORE
        work = seconds * left * demand[:, 0] / (self.nodes * _NODE_CORES * _CORE)
        jobs = Jobs(
            names=[*(task_class.name for task_class in classes), *_QUEUES],
            queue=np.append(queue, np.arange(len(_QUEUES))),
            weight=np.ones(len(allocated)),
            allocated=allocated,
            work=np.append(work, np.zeros(len(_QUEUES))),
            queue_names=_QUEUES,
            queue_weight=np.ones(len(_QUEUES)),
        )
        waiting = Waiting(
            names=[task_class.name for task_class in classes],
            job=np.arange(count),
            count=left,
            demand=demand,
            reading=np.zeros(count),
            inputs=[None] * count,
            duration=seconds,
            since=np.array([task_class.since for task_class in classes]),
            finished=np.zeros(count),
            jobs=jobs,
            running=Running(
                np.array([node for _, _, node, _, _ in ends], dtype=np.intp), np.array([end for end, *_ in ends]), held
            ),
        )
        if not gangs:
            return waiting
        row = np.full(count, -1, dtype=np.intp)
        row[gangs] = np.arange(len(gangs))
        return replace(waiting, gang=row, gang_least=np.array([classes[index].gang for index in gangs]))


@dataclass(frozen=True, slots=True)
class Kept:
    """`idle`: the largest part of the cluster that stood empty though usable, in percent over any ten minutes.

    `started` [4] are the tasks that started, by queue: small, large, gangs, hopeless.
    """

    idle: float
    started: tuple[int, ...]


def measure(seed: int, minutes: float, policy: Policy) -> Kept:
    """Return what came of such a cluster in so many minutes."""
    scene, planner = RandomCluster(np.random.default_rng([seed, 11])), Planner(policy)
    times, idle, due = [0.0], [0.0], 0.0
    while scene.now < minutes * 60:
        if scene.now >= due:
            scene.arrive()
            due = scene.now + 20.0
        scene.plan(planner)
        part = scene.idle_part()
        times.append(scene.advance(due))
        idle.append(idle[-1] + part * (times[-1] - times[-2]))
    at, upto = np.array(times), np.array(idle)
    window = min(_WINDOW_SECONDS, times[-1])
    begins = at[at <= times[-1] - window]
    mean = (np.interp(begins + window, at, upto) - np.interp(begins, at, upto)) / window
    return Kept(100 * float(mean.max(initial=0.0)), tuple(scene.started))
