"""kube-scheduler: its default profile, and with Dovetail as its extender, as the chart configures it.

Pods go one after the other as kube-scheduler's queue has them (`kube_queue.py`). A pod that fits nowhere is skipped.
Ties are broken at random, here by the seed (Kubernetes 1.36, pkg/scheduler/schedule_one.go). Score plugins that give
every node of the simulator the same score (taints, affinities, spreading, images) are left out.

All nodes that fit are scored. A stock kube-scheduler looks at a sample of them from 100 nodes on, so this one decides
at least as well. The chart ships a sample too; with gates pods are nominated for the best of all nodes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.resources import DIMENSIONS, DISK_READ_INDEX, NETWORK_IN_INDEX
from extender.cluster.waiting import Shuffle, Waiting
from extender.planner import Plan
from extender.policy.levels import BEST
from extender.verdict import Placement, Ranker, judge
from lab.sim.preemption import PlanWithVictims, Preemption, counted_by_kube, nominations
from lab.sim.schedulers.baselines import Accounts, AssignmentList, FittingClasses, candidates, drawing
from lab.sim.schedulers.drf import COLUMNS, requested
from lab.sim.schedulers.kube_queue import SchedulingQueue
from lab.sim.schedulers.kube_scores import MAX_NODE_SCORE, Integers, Nodes
from lab.sim.schedulers.promises import Promises

_DISK_READ, _NETWORK_IN = DISK_READ_INDEX, NETWORK_IN_INDEX
_NEVER = -1


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each score; the defaults are Kubernetes' (apis/config/v1/default_plugins.go)."""

    fit: int = 1
    balanced: int = 1
    extender: int = 0


DEFAULT = Weights()

SHIPPED = Weights(fit=0, balanced=0, extender=1)
"""What the chart ships: the extender ranks, and both scores by resources are off (`disabledScorePlugins`)."""


@dataclass(slots=True)
class KubeDefault:
    """kube-scheduler's default profile."""

    seed: int = 0
    weights: Weights = DEFAULT
    _queue: SchedulingQueue = field(default_factory=SchedulingQueue, init=False)
    _preemptors: "_Preemptors" = field(default_factory=lambda: _Preemptors(all_resources=False), init=False)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now and, where priorities are known, which pods end for more important ones."""
        accounts = _requested(snapshot, waiting)
        classes, rows = candidates(accounts, waiting.count)
        cluster = _NodesInPlan(snapshot, waiting, rows, drawing(self.seed, now))
        kinds, counts = self._queue.line(waiting, now)
        nominated = self._preemptors.place(cluster, waiting, kinds, counts)
        placed = nominated + _try_all(
            (kinds, counts - nominated),
            FittingClasses(classes, accounts.need),
            waiting,
            lambda task_class, count: self._place(cluster, task_class, count),
        )
        plan = _noted(self._queue, placed, cluster, snapshot, now)
        return self._preemptors.plan(plan, cluster, waiting, waiting.demand, kinds, counts - placed)

    def _place(self, cluster: "_NodesInPlan", task_class: int, count: int) -> int:
        """Place pods of a class; return how many found a node. Each changes the score of one node only."""
        scores = cluster.scores(task_class, self.weights)
        for placed in range(count):
            place = cluster.best(scores)
            if scores[place] == _NEVER:
                return placed
            cluster.place(task_class, place)
            scores[place] = cluster.scores(task_class, self.weights, slice(place, place + 1))[0]
        return count


@dataclass(slots=True)
class WithExtender:
    """kube-scheduler with Dovetail: the functions behind the verbs filter and rank the nodes."""

    seed: int = 0
    placement: Placement = field(default_factory=Placement)
    weights: Weights = SHIPPED
    _queue: SchedulingQueue = field(default_factory=SchedulingQueue, init=False)
    _preemptors: "_Preemptors" = field(default_factory=lambda: _Preemptors(all_resources=True), init=False)
    _ranker: Ranker = field(init=False)

    def __post_init__(self) -> None:
        self._ranker = Ranker(self.placement)

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now and, where priorities are known, which pods end for more important ones."""
        demand, nodes = demanded(waiting), np.arange(len(snapshot.layout.names))
        classes, _ = candidates(_all_dimensions(snapshot, demand), waiting.count)
        cluster = _NodesInPlan(snapshot, waiting, nodes, drawing(self.seed, now))
        current = replace(snapshot, allocated=cluster.promises.allocated)  # with every pod that this plan has placed

        def place(task_class: int, count: int) -> int:
            pod = pod_of(waiting.names[task_class], demand[task_class], snapshot.layout.axis)
            return self._place(cluster, current, task_class, pod, count)

        kinds, counts = self._queue.line(waiting, now)
        nominated = self._preemptors.place(cluster, waiting, kinds, counts)
        placed = nominated + _try_all((kinds, counts - nominated), FittingClasses(classes, demand), waiting, place)
        plan = _noted(self._queue, placed, cluster, snapshot, now)
        return self._preemptors.plan(plan, cluster, waiting, demand, kinds, counts - placed)

    def _place(self, cluster: "_NodesInPlan", snapshot: Snapshot, task_class: int, pod: Pod, count: int) -> int:
        """Place pods of a class; return how many found a node."""
        for placed in range(count):
            scores = cluster.scores(task_class, self.weights)
            rows = self.filter(snapshot, pod, np.flatnonzero(scores != _NEVER))
            if not len(rows):
                return placed
            total = scores[rows] + self.weights.extender * _LEVEL * self.prioritize(snapshot, pod, rows)
            cluster.place(task_class, int(rows[cluster.best(total)]))
        return count

    def filter(self, snapshot: Snapshot, pod: Pod, rows: Rows) -> Rows:
        """Return which of these nodes the verb `filter` lets pass."""
        return rows[judge(snapshot, pod).passed[rows]]

    def prioritize(self, snapshot: Snapshot, pod: Pod, rows: Rows) -> Integers:
        """Return what the verb `prioritize` gives each of these nodes [K], 0..10."""
        return self._ranker.rank(snapshot, pod, rows)


_LEVEL = MAX_NODE_SCORE // BEST
"""The weight of one point of an extender (MaxNodeScore / MaxExtenderPriority)."""


def demanded(waiting: Waiting) -> Floats:
    """Return the demand that a pod of each class declares [C, R].

    What it reads is part of it: as disk-read, for a shuffle as network-in. The verbs do not know where inputs are.
    """
    demand = waiting.demand.copy()
    shuffles = np.array([isinstance(inputs, Shuffle) for inputs in waiting.inputs], dtype=np.bool_)
    demand[:, _DISK_READ] += np.where(shuffles, 0.0, waiting.reading)
    demand[:, _NETWORK_IN] += np.where(shuffles, waiting.reading, 0.0)
    return demand


def pod_of(name: str, demand: Floats, axis: Sequence[str] = DIMENSIONS) -> Pod:
    """Return the pod that demands this [R], as the verbs see it."""
    amounts = {dimension: amount for dimension, amount in zip(axis, demand.tolist(), strict=True) if amount > 0}
    return Pod(uid=name, namespace="simulated", name=name, demand=amounts)


class _NodesInPlan:
    """The nodes (rows) that may take a pod, as kube-scheduler sees them, with what this plan has placed."""

    def __init__(self, snapshot: Snapshot, waiting: Waiting, rows: Rows, draw: np.random.Generator) -> None:
        capacity, allocated = snapshot.layout.capacity[rows][:, COLUMNS], snapshot.allocated[rows][:, COLUMNS]
        offered = np.where(np.isfinite(capacity), capacity, 0.0)
        self._nodes = Nodes(offered.astype(np.int64), allocated.astype(np.int64))
        self._need = waiting.demand[:, COLUMNS].astype(np.int64)
        self._rows, self._draw = rows.tolist(), draw
        self._snapshot, self._waiting, self._places = snapshot, waiting, rows
        self.promises, self.chosen = Promises(snapshot, waiting), AssignmentList()

    def scores(self, task_class: int, weights: Weights, places: slice = slice(None)) -> Integers:
        """Return the total of kube-scheduler's own scores for these nodes [K], -1 where the pod does not fit."""
        need, nodes = self._need[task_class], self._nodes
        fits = nodes.fits(need, places) & self._allowed(task_class, places)
        total = np.zeros(len(fits), dtype=np.int64)
        if weights.fit and fits.any():
            total += weights.fit * nodes.least_allocated(need, places)
        if weights.balanced and fits.any():
            total += weights.balanced * nodes.balanced_allocation(need, places)
        return np.where(fits, total, _NEVER)

    def _allowed(self, task_class: int, places: slice) -> Mask:
        """Return where a pod may go [K], and where there is room for it in what only some nodes advertise."""
        rows, waiting, more = self._places[places], self._waiting, len(DIMENSIONS)
        free = self._snapshot.layout.capacity[rows, more:] - self.promises.allocated[rows, more:]
        allowed = np.asarray((waiting.demand[task_class, more:] <= free).all(axis=1))
        return allowed if waiting.barred is None else allowed & ~waiting.barred[task_class, rows]

    def best(self, scores: Integers) -> int:
        """Return the place of the highest score, one of them at random."""
        highest = (scores == scores.max()).nonzero()[0]
        return int(highest[int(self._draw.random() * len(highest))])

    def place_on(self, task_class: int, node: int) -> bool:
        """Place one pod on this node; return whether it fits there."""
        if node not in self._rows:
            return False
        place = self._rows.index(node)
        fits = bool(self.scores(task_class, DEFAULT, slice(place, place + 1))[0] != _NEVER)
        if fits:
            self.place(task_class, place)
        return fits

    @property
    def free(self) -> Floats:
        """What no pod holds of each node, with what this plan has placed [N, R]."""
        return self._snapshot.layout.capacity - self.promises.allocated

    def place(self, task_class: int, place: int) -> None:
        """Place one pod."""
        node = self._rows[place]
        self._nodes.take(self._need[task_class], place)
        self.chosen.add(task_class, node, *self.promises.take(task_class, node))


def _requested(snapshot: Snapshot, waiting: Waiting) -> Accounts:
    """Return the accounts of what pods request: CPU, memory, and what is beyond the six dimensions."""
    return requested(snapshot, waiting, [*COLUMNS, *range(len(DIMENSIONS), waiting.demand.shape[1])])


@dataclass(slots=True)
class _Preemptors:
    """Pods for which others were preempted a moment ago, by class and node. `all_resources`: as `Preemption` has it."""

    all_resources: bool
    _nominated: list[tuple[str, int]] = field(default_factory=list, init=False)

    def place(self, cluster: _NodesInPlan, waiting: Waiting, kinds: Rows, counts: Counts) -> Counts:
        """Place them; return how many of each group [G] of the line."""
        placed = np.zeros(len(kinds), dtype=np.int64)
        classes = {name: row for row, name in enumerate(waiting.names)} if self._nominated else {}
        for name, node in self._nominated:
            task_class = classes.get(name, -1)
            groups = np.flatnonzero((kinds == task_class) & (counts > placed))
            if len(groups) and cluster.place_on(task_class, node):
                placed[groups[0]] += 1
        self._nominated.clear()
        return placed

    def plan(
        self, plan: Plan, cluster: _NodesInPlan, waiting: Waiting, demand: Floats, kinds: Rows, left: Counts
    ) -> Plan:
        """Return a plan with those who are preempted for pods that it leaves, `left` [G] of each group, in their order.

        A pod of class c needs demand[c] [C, R].
        """
        running = waiting.running
        if running is None or running.priority is None or waiting.priority is None:
            return plan
        free = cluster.free
        preemption = Preemption(running, free, counted_by_kube(free.shape[1]), all_resources=self.all_resources)
        self._nominated += nominations(preemption, waiting, demand, kinds, left)
        return PlanWithVictims(plan.assignments, victims=np.array(preemption.victims, dtype=np.intp))


def _try_all(
    line: tuple[Rows, Counts], classes: FittingClasses, waiting: Waiting, place: Callable[[int, int], int]
) -> Counts:
    """Place the pods of a line of groups, of classes and counts [G]; return how many of each found a node [G]."""
    kinds, counts = line
    placed = np.zeros(len(kinds), dtype=np.int64)
    for group in classes.are_open(kinds).nonzero()[0].tolist():
        task_class = int(kinds[group])
        if classes.are_open(kinds[group]):
            placed[group] = place(task_class, int(counts[group]))
            if placed[group] < counts[group]:
                _give_up(classes, task_class, waiting)
    return placed


def _noted(queue: SchedulingQueue, placed: Counts, cluster: "_NodesInPlan", snapshot: Snapshot, now: float) -> Plan:
    """Return the plan that was made, and have the queue note who was refused."""
    queue.note(placed, snapshot, cluster.promises.allocated, now)
    return Plan(cluster.chosen.assignments())


def _give_up(line: FittingClasses, task_class: int, waiting: Waiting) -> None:
    """Leave out a class that fits nowhere, and, where all may go everywhere, all that need as much."""
    if waiting.barred is None:
        line.give_up(task_class)
    else:
        line.leave_out(task_class)


def _all_dimensions(snapshot: Snapshot, demand: Floats) -> Accounts:
    """Return the accounts in every dimension, for leaving out classes that fit nowhere."""
    free = np.maximum(snapshot.layout.capacity - snapshot.allocated, 0.0)
    return Accounts(need=demand, free=free, used=demand[:0], total=free.sum(axis=0))
