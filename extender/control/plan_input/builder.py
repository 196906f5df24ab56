"""The planner's arrays of a backlog: what may be released now, whose it is, what each job has left.

Rows are sorted by queue, then the oldest job, so that ties are the same ties, and go to who came first. Arrays that
follow only from which classes are open and which nodes there are stay the same objects from round to round: the planner
knows by this what it need not prepare again.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.eligibility import Constraints
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.reading import away, besides_reading, reading, taken
from extender.cluster.queues import Queue
from extender.cluster.resources import Amounts
from extender.cluster.waiting import Jobs, Running, Waiting
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.backlog.gangs import Gang, gangs_of, group_of
from extender.control.backlog.task_classes import waits_as
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.plan_input.jobs import JobRowsBuilder, in_order
from extender.control.plan_input.preferred_nodes import PreferredNodes, Read
from extender.control.queues.tree import QueueTree
from extender.control.queues.usage import pods_held
from extender.planner import Plan

_RUNNING_KEPT_SECONDS = 5.0

_ENDLESS = ("DaemonSet", "ReplicaSet", "ReplicationController", "StatefulSet")
"""Owners whose pods run until somebody deletes them."""


@dataclass(frozen=True, slots=True)
class PlanInput:
    """What one plan is made of; `classes` are the rows of `waiting`, `short` those of gangs that are not all there.

    `pods` are those of each row of a class whose pods declare inputs: the planner's tasks where `waiting` has blocks
    for the row, else they go in their order; None for other classes: there any pod will do. A class whose pods declare
    inputs has other rows for those that may use none of their nodes (`places.Read`).
    """

    waiting: Waiting
    classes: Sequence[TaskClass]
    short: Sequence[TaskClass]
    pods: Sequence[Sequence[Pod] | None]

    def row(self, of: TaskClass, uid: str) -> int | None:
        """Return the row of a pod of a class; None where it has none."""
        rows = (row for row, it in enumerate(self.classes) if it is of)
        return next((row for row in rows if self.holds(row, uid)), None)

    def holds(self, row: int, uid: str) -> bool:
        """Say whether a row of its class is also that of this pod."""
        pods = self.pods[row]
        return pods is None or any(pod.uid == uid for pod in pods)

    def chooses(self, row: int) -> bool:
        """Say whether it makes a difference to a class where it starts."""
        preferred = self.waiting.preferred
        return self.waiting.inputs[row] is not None or (preferred is not None and bool(preferred[row].any()))


def pods_of(made: PlanInput, plan: Plan) -> list[tuple[int, Pod | None]]:
    """Return the class's row of each assignment in order, and which pod it is for; None where any of the class."""
    rows, tasks = plan.assignments.task_class.tolist(), plan.assignments.task.tolist()
    in_order = {row: iter(pods) for row, pods in enumerate(made.pods) if pods is not None}
    found: list[tuple[int, Pod | None]] = []
    for row, task in zip(rows, tasks, strict=True):
        pods = made.pods[row]
        found.append((row, None if pods is None else pods[task] if task >= 0 else next(in_order[row])))
    return found


@dataclass(frozen=True, slots=True)
class _Open:
    """What stays as it is while the same classes are open on the same nodes."""

    classes: list[TaskClass]
    suffixes: list[str]
    names: Sequence[str]
    layout: Layout
    nodes_version: int
    demand: Floats
    reading: Floats
    priority: Counts | None
    barred: Mask | None
    preferred: Counts | None
    waits_as: Sequence[str]

    def suits(self, classes: list[TaskClass], suffixes: list[str], layout: Layout, nodes_version: int) -> bool:
        same = self.layout is layout and self.nodes_version == nodes_version
        return same and self.classes == classes and self.suffixes == suffixes


class _Row(NamedTuple):
    """A row of the planner's: a class, or those of its pods that `read` alike, and how many of them wait."""

    of: TaskClass
    waiting: int
    read: Read | None

    @property
    def demand(self) -> Amounts:
        """What a pod takes of its node besides reading its blocks."""
        pod = self.of.like
        if self.read is None:
            return pod.demand
        if self.read.blocks is not None:
            return besides_reading(pod)
        return away(pod) if self.read.afar else pod.demand

    @property
    def reading(self) -> float:
        """How fast a pod reads its block, in bytes per second."""
        return reading(self.of.like) if self.read is not None and self.read.blocks is not None else 0.0


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
        """Take which labels of nodes make levels of locality, and whether the planner asks where long tasks run.

        `undeclared_weight` is that of all queues together that nobody declared.
        """
        self.tree = QueueTree(queues, undeclared_weight)
        self.nodes = AllowedNodes(backlog)
        self._jobs = JobRowsBuilder(backlog, self.tree)
        self.places = PreferredNodes(backlog, self.nodes, levels)
        self._long_tasks = long_tasks
        self._backlog = backlog
        self._starved_after = starved_after
        self._open: _Open | None = None
        self._running: tuple[float, Layout, Sequence[str], Running] | None = None

    def next(self, layout: Layout, now: float, without: Collection[str] = ()) -> PlanInput:
        """Return what may be released at `now`, in seconds since the epoch, `without` the classes of these names."""
        with self._backlog.lock:
            usual = self._backlog.usual_seconds()
            found, waiting_pods, held = self._of_active_queues(in_order(self._backlog.classes()))
            seconds = np.array([it.seconds(usual, now) for it in found], dtype=np.float64)
            gangs = gangs_of(self._backlog, found)
            counts = [0 if it.name in without else count for it, count in zip(found, waiting_pods, strict=True)]
            left_out = {id(it) for it in found if (gang := gangs.get(group_of(it))) and gang.missing} if gangs else ()
            opened = [row for row, count in enumerate(counts) if count and id(found[row]) not in left_out]
            rows, places = self._rows(found, counts, opened, layout)
            classes = [it.of for it in rows]
            jobs = self._jobs.next(found, held, seconds, layout)
            kept = self._kept(rows, layout)
            since = self._since(classes, {name for name, gang in gangs.items() if gang.begun})
            row, least = _gang_rows(classes, gangs)
            waiting = Waiting(
                names=kept.names,
                job=jobs.rows_of(classes),
                count=np.array([it.waiting for it in rows], dtype=np.int64),
                demand=kept.demand,
                reading=kept.reading,
                inputs=[None if it.read is None else it.read.blocks for it in rows],
                duration=seconds[places],
                since=since,
                finished=self._finished(classes),
                jobs=jobs.jobs,
                running=self._all_running(layout, now) if self._asks_what_runs(jobs.jobs, since, now) else None,
                priority=kept.priority,
                behind=jobs.behind_of(classes),
                barred=kept.barred,
                gang=row,
                gang_least=least,
                topology=self.places.topology(layout),
                level_names=self.places.level_names,
                preferred=kept.preferred,
                waits_as=kept.waits_as,
                jobs_there=[waits_as(queue, name) for queue, name in self._backlog.jobs],
            )
            short = [it for it, count in zip(found, counts, strict=True) if count and id(it) in left_out]
            return PlanInput(waiting, classes, short, [None if it.read is None else it.read.pods for it in rows])

    def _rows(
        self, classes: Sequence[TaskClass], counts: Sequence[int], opened: Sequence[int], layout: Layout
    ) -> tuple[list[_Row], list[int]]:
        """Return the rows of the opened classes, and the place of each one's class: those that declare inputs are
        several rows, by what is known of these.
        """  # noqa: D205 - one sentence
        rows: list[_Row] = []
        places: list[int] = []
        for place in opened:
            of, count = classes[place], counts[place]
            reads = self.places.reads(of, layout) if of.like.inputs else None
            rows += [_Row(of, count, None)] if reads is None else [_Row(of, it.waiting, it) for it in reads]
            places += [place] * (1 if reads is None else len(reads))
        self.places.forget_but([classes[place] for place in opened])
        return rows, places

    def _of_active_queues(self, classes: Sequence[TaskClass]) -> tuple[list[TaskClass], list[int], Counts]:
        """Return the classes of queues that hold something, or have something to release; others take no part.

        And how many pods of each may be released, and how many hold room.
        """
        ready, held = [self._backlog.ready(it) for it in classes], pods_held(self._backlog, classes)
        counted = list(zip(classes, ready, held.tolist(), strict=True))
        active = {it.job.queue for it, able, holding in counted if able or holding}
        inside = [place for place, it in enumerate(classes) if it.job.queue in active]
        return [classes[place] for place in inside], [ready[place] for place in inside], held[inside]

    def _since(self, classes: Sequence[TaskClass], begun: Collection[str]) -> Floats:
        """Return since when classes have waited [C]: what a gang that has begun still lacks is due, whatever waits."""
        since = np.array([self._backlog.since(it) for it in classes], dtype=np.float64)
        if begun:
            since[[group_of(it) in begun for it in classes]] = -math.inf
        return since

    # -- classes

    def _kept(self, rows: Sequence[_Row], layout: Layout) -> _Open:
        version = self._backlog.nodes_version
        classes, suffixes = [it.of for it in rows], ["" if it.read is None else it.read.suffix for it in rows]
        if self._open is None or not self._open.suits(classes, suffixes, layout, version):
            demand = self._jobs.demands(classes, layout)
            for row, it in enumerate(rows):
                if it.read is not None:
                    demand[row] = layout.vector(it.demand)
            priority = np.array([it.like.priority for it in classes], dtype=np.int64)
            self._open = _Open(
                classes=classes,
                suffixes=suffixes,
                names=[of.name + suffix for of, suffix in zip(classes, suffixes, strict=True)],
                layout=layout,
                nodes_version=version,
                demand=demand,
                reading=np.array([it.reading for it in rows], dtype=np.float64),
                priority=priority if len(set(priority.tolist())) > 1 else None,
                barred=self._barred(classes, layout),
                preferred=self._preferred(classes, layout),
                waits_as=[waits_as(it.job.queue, it.job.name) for it in classes],
            )
        return self._open

    def _preferred(self, classes: Sequence[TaskClass], layout: Layout) -> Counts | None:
        """Return how far nodes are from those that classes prefer [C, N]; None where none prefers any."""
        levels = {
            row: found
            for row, it in enumerate(classes)
            if (it.like.prefers or it.like.constraints.volumes)
            and (found := self.places.levels(it.like, layout)) is not None
        }
        if not levels:
            return None
        preferred = np.zeros((len(classes), len(layout.names)), dtype=np.int64)
        for row, found in levels.items():
            preferred[row] = found
        return preferred

    def _barred(self, classes: Sequence[TaskClass], layout: Layout) -> Mask | None:
        """Return on which nodes classes may not run [C, N]; None where all may run everywhere."""
        rows: dict[Constraints, int] = {}
        row = [rows.setdefault(it.like.constraints, len(rows)) for it in classes]
        barred = ~np.array([self.nodes.allowed_by(by, layout) for by in rows], dtype=np.bool_)
        return barred[row] if barred.any() else None

    def allowed(self, pod: Pod, layout: Layout) -> Mask:
        """Return on which nodes a pod may run [N], as far as it knows where its volumes are: `Backlog.pod` does."""
        return self.nodes.allowed(pod, layout)

    def _finished(self, classes: Sequence[TaskClass]) -> Floats:
        """Return which part of its stage has ended [C], by what its pods or their owner say of its size; else 0."""
        owners = self._backlog.workloads.owners
        finished = np.zeros(len(classes))
        for row, of in enumerate(classes):
            if of.like.tasks is not None:
                finished[row] = of.part_done() or 0.0
            elif (owner := owners.get(of.like.owner)) is not None and owner.total:
                finished[row] = 1.0 - owner.left / owner.total
        return finished

    # -- what runs

    def _asks_what_runs(self, jobs: Jobs, since: Floats, now: float) -> bool:
        """Say whether a plan may reserve room, or keeps long tasks apart."""
        old = (now - since > self._starved_after).any()
        return bool(self._long_tasks or len(jobs.queue_names) > 1 or old)

    def _all_running(self, layout: Layout, now: float) -> Running:
        """Return what runs, for reservations: who started in the last seconds may be missing, as it is dear to ask for.

        Who has ended is not there: its room counts as free already. What overran what was expected is expected to run
        as long again; what is to run for ever never ends.
        """
        if self._running is not None:
            then, of, uids, running = self._running
            if of is layout and 0 <= now - then < _RUNNING_KEPT_SECONDS:  # its rows are of that layout
                return self._still_running(uids, running)
        usual = self._backlog.usual_seconds()
        there = [
            (
                layout.rows[name],
                _ends_at(pod, seconds, now),
                demand if amounts is pod.demand else layout.vector(amounts),
                seconds if name == node else 0.0,  # what it only reads there is no task of that node
                pod.uid,
            )
            for it in self._backlog.classes()
            for seconds, demand in ((it.seconds(usual, now), layout.vector(it.like.demand)),)
            for pod in it.pods[PodPhase.RUNNING].values()
            if (node := pod.node or "") in layout.rows
            for name, amounts in taken(pod, node, layout.rows).items()
        ]
        found = Running(
            node=np.array([node for node, *_ in there], dtype=np.intp),
            ends_at=np.array([ends for _, ends, *_ in there], dtype=np.float64),
            demand=np.array([demand for _, _, demand, *_ in there]).reshape(len(there), len(layout.axis)),
            seconds=np.array([seconds for *_, seconds, _ in there], dtype=np.float64),
        )
        self._running = (now, layout, [uid for *_, uid in there], found)
        return found

    def _still_running(self, uids: Sequence[str], running: Running) -> Running:
        on_nodes = self._backlog.uids_at(PodPhase.RUNNING)
        stays = np.fromiter((uid in on_nodes for uid in uids), dtype=np.bool_, count=len(uids))
        if stays.all() or running.seconds is None:
            return running
        return Running(running.node[stays], running.ends_at[stays], running.demand[stays], running.seconds[stays])


def _ends_at(pod: Pod, seconds: float, now: float) -> float:
    if pod.owner_kind in _ENDLESS:
        return math.inf
    started = now if pod.started is None else min(pod.started, now)
    return max(started + seconds, 2 * now - started - seconds)


def _gang_rows(classes: Sequence[TaskClass], gangs: Mapping[str, Gang]) -> tuple[Rows | None, Counts | None]:
    names = sorted({group_of(it) for it in classes} & gangs.keys()) if gangs else []
    if not names:
        return None, None
    rows = {name: row for row, name in enumerate(names)}
    row = np.array([rows.get(group_of(it), -1) for it in classes], dtype=np.intp)
    return row, np.array([gangs[name].least for name in names], dtype=np.int64)
