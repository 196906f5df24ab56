"""The planner's input, made of a backlog: what may be released now, whose it is, and what each job has left.

Rows are sorted by queue, then by the arrival of the job, so that ties are always settled alike, for who came first.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.queues import Queue
from extender.cluster.waiting import Blocks, Jobs, Waiting
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.backlog.gangs import Gang, gangs_of, group_of, note_turns
from extender.control.backlog.task_classes import waits_as
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.plan_input.claims import Claims
from extender.control.plan_input.class_rows import ClassRowsBuilder
from extender.control.plan_input.demand_vectors import DemandVectors
from extender.control.plan_input.job_rows import JobRowsBuilder, in_order
from extender.control.plan_input.preferred_nodes import PreferredNodes
from extender.control.plan_input.running import RunningTasks
from extender.control.queues.tree import QueueTree
from extender.control.queues.usage import QueueUsage, active_classes, usage_of
from extender.planner import Plan


@dataclass(frozen=True, slots=True)
class PlanInput:
    """What one plan is made of.

    `classes` are those of the rows of `waiting`; `short` are those of gangs of which pods are missing, which have no
    row. `pods` are None for most rows: any pod of the class will do. They are given for classes whose pods declare
    inputs: where `waiting` has blocks for the row, its tasks are these pods in their order; where it has none, they are
    released in their order. Such a class has several rows, as `preferred_nodes.Read` says. `usage` is what queues have.
    """

    waiting: Waiting
    classes: Sequence[TaskClass]
    short: Sequence[TaskClass]
    pods: Sequence[Sequence[Pod] | None]
    usage: QueueUsage

    def row(self, task_class: TaskClass, uid: str) -> int | None:
        """Return the row of a pod of a class; None where it has none."""
        rows = (row for row, other in enumerate(self.classes) if other is task_class)
        return next((row for row in rows if self.holds(row, uid)), None)

    def holds(self, row: int, uid: str) -> bool:
        """Say whether a row of a pod's class is the row of this pod."""
        pods = self.pods[row]
        return pods is None or any(pod.uid == uid for pod in pods)

    def chooses(self, row: int) -> bool:
        """Say whether it makes a difference to a row on which node it starts."""
        inputs, preferred = self.waiting.inputs[row], self.waiting.preferred
        if isinstance(inputs, Blocks):
            return not inputs.afar
        return preferred is not None and bool(preferred[row].any())


def pods_of(plan_input: PlanInput, plan: Plan) -> list[tuple[int, Pod | None]]:
    """Return the row of each assignment in order, and the pod that it is for; None: any pod of the class will do."""
    rows, tasks = plan.assignments.task_class.tolist(), plan.assignments.task.tolist()
    next_pod = {row: iter(pods) for row, pods in enumerate(plan_input.pods) if pods is not None}
    assigned: list[tuple[int, Pod | None]] = []
    for row, task in zip(rows, tasks, strict=True):
        pods = plan_input.pods[row]
        assigned.append((row, None if pods is None else pods[task] if task >= 0 else next(next_pod[row])))
    return assigned


def note_gang_turns(backlog: Backlog, plan_input: PlanInput, plan: Plan) -> None:
    """Note in the backlog what a plan gives gangs."""
    if plan_input.waiting.gang is not None:
        note_turns(backlog, Counter(plan_input.classes[row] for row in plan.assignments.task_class.tolist()))


class PlanInputBuilder:
    """Makes the input of plans from a backlog; keeps what can be used again. One thread."""

    def __init__(
        self,
        backlog: Backlog,
        queues: Sequence[Queue],
        *,
        starved_after: float,
        levels: Sequence[str] = (),
        long_tasks: bool = False,
        undeclared_weight: float = 1.0,
    ) -> None:
        """Take the labels of nodes that make `levels` of locality, and whether the planner places long tasks apart.

        `undeclared_weight` is that of all queues together that are not declared.
        """
        self.tree = QueueTree(queues, undeclared_weight)
        self.allowed_nodes = AllowedNodes(backlog)
        self.preferred_nodes = PreferredNodes(backlog, self.allowed_nodes, levels)
        self._backlog = backlog
        self._vectors = DemandVectors()
        self.claims = Claims(backlog, self.allowed_nodes)
        self._job_rows = JobRowsBuilder(backlog, self.tree)
        self._class_rows = ClassRowsBuilder(backlog, self.allowed_nodes, self.preferred_nodes, self._vectors)
        self._running = RunningTasks(backlog)
        self._long_tasks = long_tasks
        self._starved_after = starved_after

    def build(
        self, snapshot: Snapshot, now: float, without: Collection[str] = (), refused: Set[TaskClass] = frozenset()
    ) -> PlanInput:
        """Return what may be released at `now`, in seconds since the epoch, `without` the classes of these names.

        Of those that are `refused` no held pod may; where filter keeps the order, or the pods have inputs, none at all.
        """
        backlog, layout = self._backlog, snapshot.layout
        with backlog.lock:
            # 1. The classes of active queues, how many pods of each may be released, and what each queue has.
            committed, ready = active_classes(backlog, in_order(backlog.classes()))
            classes = committed.classes
            demand = self._vectors.of(classes, layout)
            self._vectors.trim(len(classes))
            usage = usage_of(committed, demand, self.tree, layout.total, self.claims.queues(committed, snapshot))
            # 2. Leave out the classes that the caller names, and gangs of which pods are missing.
            gangs = gangs_of(backlog, backlog.classes())  # a gang may have pods of several queues
            counts = [
                0 if task_class.name in without else self._again(task_class) if task_class in refused else count
                for task_class, count in zip(classes, ready, strict=True)
            ]
            short = _short_of_pods(classes, counts, gangs)
            # 3. How long a task of each class takes, and from that what each job has left to do.
            usual = backlog.usual_seconds()
            seconds = np.array([task_class.seconds(usual, now) for task_class in classes], dtype=np.float64)
            cannot_start = np.array(
                [
                    len(task_class.pods[PodPhase.GATED]) + (count if place in short else 0)
                    for place, (task_class, count) in enumerate(zip(classes, counts, strict=True))
                ],
                dtype=np.int64,
            )
            jobs = self._job_rows.build(committed, demand, seconds, usage, cannot_start)
            # 4. A row for each class that is left, or several for one whose pods declare inputs.
            counts = [0 if place in short else count for place, count in enumerate(counts)]
            rows = self._class_rows.rows(classes, counts, layout)
            arrays = self._class_rows.arrays(rows, layout)
            row_classes = arrays.classes
            # 5. What changes from plan to plan: how many wait, since when, and what runs.
            since = self._since(row_classes, {name for name, gang in gangs.items() if gang.begun}, refused, now)
            gang_row, gang_least = _gang_rows(row_classes, gangs)
            asks = arrays.priority is not None or self._asks_what_runs(jobs.jobs, since, now)
            waiting = Waiting(
                names=arrays.names,
                job=jobs.rows_of(row_classes),
                count=np.array([row.waiting for row in rows], dtype=np.int64),
                demand=arrays.demand,
                reading=arrays.reading,
                inputs=[None if row.read is None else row.read.blocks for row in rows],
                duration=seconds[[row.place for row in rows]],
                since=since,
                finished=self._finished(row_classes),
                jobs=jobs.jobs,
                running=self._running.at(now, layout) if asks else None,
                left_seconds=jobs.left_seconds,
                priority=arrays.priority,
                behind=jobs.behind_of(row_classes),
                barred=arrays.barred,
                gang=gang_row,
                gang_least=gang_least,
                topology=self.preferred_nodes.topology(layout),
                level_names=self.preferred_nodes.level_names,
                preferred=arrays.preferred,
                waits_as=arrays.waits_as,
                jobs_there=[waits_as(queue, name) for queue, name in backlog.jobs],
            )
            pods = [None if row.read is None else row.read.pods for row in rows]
            return PlanInput(waiting, row_classes, [classes[place] for place in sorted(short)], pods, usage)

    def _again(self, task_class: TaskClass) -> int:
        """Return how many pods of a refused class wait for their turn again."""
        if task_class.template.inputs:
            return 0
        return self._backlog.waiting(task_class, PodPhase.UNGATED)

    def usage(self, snapshot: Snapshot) -> QueueUsage:
        """Return what queues have at this moment."""
        with self._backlog.lock:
            committed, _ = active_classes(self._backlog, in_order(self._backlog.classes()))
            demand, total = self._vectors.of(committed.classes, snapshot.layout), snapshot.layout.total
            return usage_of(committed, demand, self.tree, total, self.claims.queues(committed, snapshot))

    def _since(
        self, classes: Sequence[TaskClass], begun: Collection[str], refused: Set[TaskClass], now: float
    ) -> Floats:
        """Return since when classes have waited [C]; for ever where they are of a gang that has begun: it is due.

        It is infinite, so that no room is kept, where turns were in vain; only the UNGATED ones of `refused` count.
        """
        backlog = self._backlog
        since = np.array([backlog.waiting_since(task_class) for task_class in classes], dtype=np.float64)
        since[[backlog.in_vain(task_class, now, held=task_class not in refused) for task_class in classes]] = math.inf
        if begun:
            since[[group_of(task_class) in begun for task_class in classes]] = -math.inf
        return since

    def _finished(self, classes: Sequence[TaskClass]) -> Floats:
        """Return which part of its stage has ended [C], as its pods or else their owner say; 0 where neither does."""
        owners = self._backlog.owners.by_uid
        finished = np.zeros(len(classes))
        for row, task_class in enumerate(classes):
            if task_class.template.tasks is not None:
                finished[row] = task_class.part_done() or 0.0
            elif (owner := owners.get(task_class.template.owner)) is not None and owner.total:
                finished[row] = 1.0 - owner.left / owner.total
        return finished

    def _asks_what_runs(self, jobs: Jobs, since: Floats, now: float) -> bool:
        """Say whether a plan may reserve room, or place long tasks apart: then it asks what runs.

        So it does where some outrank others.
        """
        starved = (now - since > self._starved_after).any()
        return bool(self._long_tasks or len(jobs.queue_names) > 1 or starved)


def _short_of_pods(classes: Sequence[TaskClass], counts: Sequence[int], gangs: Mapping[str, Gang]) -> Set[int]:
    """Return the places of those classes with pods that wait whose gang lacks pods: it cannot start yet."""
    missing = {name for name, gang in gangs.items() if gang.missing}
    if not missing:
        return frozenset()
    return {place for place, count in enumerate(counts) if count and group_of(classes[place]) in missing}


def _gang_rows(classes: Sequence[TaskClass], gangs: Mapping[str, Gang]) -> tuple[Rows | None, Counts | None]:
    """Return the row of each class's gang [C], -1 for none, and how many pods each gang starts [G]; None: no gangs."""
    names = sorted({group_of(task_class) for task_class in classes} & gangs.keys()) if gangs else []
    if not names:
        return None, None
    rows = {name: row for row, name in enumerate(names)}
    row = np.array([rows.get(group_of(task_class), -1) for task_class in classes], dtype=np.intp)
    return row, np.array([gangs[name].least for name in names], dtype=np.int64)
