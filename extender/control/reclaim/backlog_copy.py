"""What reclaim needs of the backlog: copied under its lock, and read without it.

What is derived of a class and of its pods on nodes is kept while these are the same, so a copy costs what has changed.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.plan_input.claims import Claims
from extender.control.pod_shapes import Shape, shape_of
from extender.control.queues.tree import QueueTree
from extender.control.queues.usage import QueueUsage, in_two_books, usage_of


@dataclass(frozen=True, slots=True, eq=False)
class ClassShape:
    """What each pod of a class demands, by the layout [R], and their shape."""

    demand: Floats
    shape: Shape


@dataclass(frozen=True, slots=True, eq=False)
class PodsOnNodes:
    """The pods of a class that are on nodes: all, those `leaving`, and those that may go [P], sorted by name.

    Pods that may go have a controller, and are regular: no others hold room that somebody waits for. `node` [P] is the
    row of the node that each is on, `started` [P] when it started: infinite where it has not yet.
    """

    pods: Sequence[Pod]
    leaving: Sequence[Pod]
    may_go: Sequence[Pod]
    node: Rows
    started: Floats

    def without(self, uids: Collection[str]) -> "PodsOnNodes":
        """Return the same where these pods may not go."""
        rows = [row for row, pod in enumerate(self.may_go) if pod.uid not in uids]
        may_go = [self.may_go[row] for row in rows]
        return PodsOnNodes(self.pods, self.leaving, may_go, self.node[rows], self.started[rows])


@dataclass(frozen=True, slots=True)
class BacklogCopy:
    """The `active` classes: those of which a pod holds room, or waits for its turn and nothing else.

    `coming` says how many pods of a class are on their way to a node, `opportunistic` how many of those on nodes, and
    of those coming, are opportunistic; `asked` are the pods that were asked to go, by class.
    """

    backlog: Backlog
    active: Sequence[TaskClass]
    coming: Mapping[TaskClass, int]
    opportunistic: tuple[Mapping[TaskClass, int], Mapping[TaskClass, int]]
    kinds: Mapping[TaskClass, ClassShape]
    crews: Mapping[TaskClass, PodsOnNodes]
    asked: Mapping[TaskClass, Set[str]]

    def usage(self, tree: QueueTree, snapshot: Snapshot, claims: Claims) -> QueueUsage:
        """Return what queues had at the time of the copy."""
        on_nodes = [len(self.crews[task_class].pods) if task_class in self.crews else 0 for task_class in self.active]
        pods = in_two_books(self.active, on_nodes, self.coming, self.opportunistic)
        demands = [self.kinds[task_class].demand for task_class in self.active]
        demand = np.array(demands).reshape(len(self.active), len(snapshot.layout.axis))
        return usage_of(pods, demand, tree, snapshot.layout.total, claims.queues(pods, snapshot))

    def going(self) -> list[Pod]:
        """Return the pods that are on their way out, by us or anyhow."""
        leaving = [pod for crew in self.crews.values() for pod in crew.leaving]
        counted = {pod.uid for pod in leaving}
        asked = [
            pod
            for task_class, uids in self.asked.items()
            for pod in self.crews[task_class].pods
            if pod.uid in uids - counted
        ]
        return leaving + asked

    def waited_for(self, now: float, patience: float, victims: Collection[str]) -> list[Pod]:
        """Return those whose room is waited for: that we asked to go, or whose grace period ends in `patience` seconds.

        One that is still there so long after its end (a finalizer keeps it, say) is waited for no more, unless it is
        among these `victims` of evictions under way, by UID.
        """
        asked = {uid for uids in self.asked.values() for uid in uids}
        return [
            pod
            for pod in self.going()
            if pod.uid in victims
            or ((pod.uid in asked or pod.leaves_at <= now + patience) and not _is_stuck(pod, now, patience))
        ]


@dataclass(slots=True)
class BacklogCopier:
    """Copies a backlog, again and again. One thread; it takes the backlog's lock."""

    backlog: Backlog
    _layout: Layout | None = None
    _kinds: Mapping[TaskClass, ClassShape] = field(default_factory=dict)
    _crews: Mapping[TaskClass, PodsOnNodes] = field(default_factory=dict)

    def copy(self, layout: Layout, asked: Collection[str]) -> BacklogCopy:
        """Return a copy of what there is now; `asked` are the pods that were asked to go, by UID."""
        with self.backlog.lock:
            classes = self.backlog.classes()
            running = {
                task_class: [*pods.values()] for task_class in classes if (pods := task_class.pods[PodPhase.RUNNING])
            }
            coming, opportunistic = self.backlog.coming(), self.backlog.opportunistic()
            holding = {*running, *coming}
            active = [task_class for task_class in classes if task_class in holding or self._waits(task_class)]
        if self._layout is not layout:
            self._layout, self._kinds, self._crews = layout, {}, {}
        self._kinds = {
            task_class: self._kinds.get(task_class) or _kind(task_class.template, layout) for task_class in active
        }
        self._crews = {task_class: self._crew(task_class, pods, layout) for task_class, pods in running.items()}
        return BacklogCopy(self.backlog, active, coming, opportunistic, self._kinds, self._crews, self.by_class(asked))

    def by_class(self, uids: Collection[str]) -> Mapping[TaskClass, Set[str]]:
        """Return, by class, those of these pods that were on nodes at the last copy."""
        by_class: defaultdict[TaskClass, set[str]] = defaultdict(set)
        for uid in uids:
            position = self.backlog.find(uid)
            if position is not None and position[0] in self._crews:
                by_class[position[0]].add(uid)
        return by_class

    def _waits(self, task_class: TaskClass) -> bool:
        """Say whether a pod of a class waits for its turn and nothing else."""
        waits = bool(task_class.pods[PodPhase.READY] or task_class.pods[PodPhase.UNGATED])
        return waits and (not self.backlog.writes.backoff or self.backlog.ready(task_class) > 0)

    def _crew(self, task_class: TaskClass, pods: Sequence[Pod], layout: Layout) -> PodsOnNodes:
        known = self._crews.get(task_class)
        return known if known is not None and known.pods == pods else _crew(pods, layout)


def _is_stuck(pod: Pod, now: float, patience: float) -> bool:
    return pod.leaving and pod.leaves_at <= now - patience


def is_gang(backlog: Backlog, task_class: TaskClass) -> bool:
    """Say whether the pods of a class start together or not at all."""
    return bool(task_class.template.identity.group) and backlog.groups.least(task_class.template) > 1


def _kind(like: Pod, layout: Layout) -> ClassShape:
    return ClassShape(layout.vector(like.demand), shape_of(like, volumes=False))


def _crew(pods: Sequence[Pod], layout: Layout) -> PodsOnNodes:
    rows = layout.rows
    may_go = [pod for pod in pods if pod.owner and not (pod.leaving or pod.opportunistic) and pod.node in rows]
    may_go.sort(key=_name)
    return PodsOnNodes(
        pods,
        [pod for pod in pods if pod.leaving],
        may_go,
        np.array([rows[pod.node or ""] for pod in may_go], dtype=np.intp),
        np.array([np.inf if pod.started is None else pod.started for pod in may_go], dtype=np.float64),
    )


def _name(pod: Pod) -> tuple[str, str]:
    return (pod.name, pod.namespace)
