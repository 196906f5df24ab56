"""What reclaim sees of the backlog: copied under its lock, and looked at without it.

What follows from a class and from its pods on nodes is kept while these are the same: a look costs what has changed.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.queues.tree import QueueTree
from extender.control.queues.usage import CommittedPods, QueueUsage, usage_of
from extender.control.reclaim.trials import Shape, shape_of


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What the pods of a class demand, by the layout [R], and their shape."""

    demand: Floats
    shape: Shape


@dataclass(frozen=True, slots=True, eq=False)
class Crew:
    """The pods of a class that are on nodes: those `leaving`, and those that may go, sorted by name.

    These have a controller: `may_go` [P], by the row of the `node` [P] that each is on and when it `started` [P], the
    ones that have not yet in the end.
    """

    pods: Sequence[Pod]
    leaving: Sequence[Pod]
    may_go: Sequence[Pod]
    node: Rows
    started: Floats

    def without(self, uids: Collection[str]) -> "Crew":
        """Return the same where these pods may not go."""
        left = [place for place, pod in enumerate(self.may_go) if pod.uid not in uids]
        may_go = [self.may_go[place] for place in left]
        return Crew(self.pods, self.leaving, may_go, self.node[left], self.started[left])


@dataclass(frozen=True, slots=True)
class BacklogCopy:
    """The classes `active`: of which something holds room, or waits for its turn alone.

    `coming` says how many pods of a class are on their way to a node; `asked` are pods that were asked to go, by class.
    """

    backlog: Backlog
    active: Sequence[TaskClass]
    coming: Mapping[TaskClass, int]
    kinds: Mapping[TaskClass, Kind]
    crews: Mapping[TaskClass, Crew]
    asked: Mapping[TaskClass, Set[str]]

    def usage(self, tree: QueueTree, layout: Layout) -> QueueUsage:
        """Return what queues had at this look."""
        classes = self.active
        on_nodes = [len(self.crews[task_class].pods) if task_class in self.crews else 0 for task_class in classes]
        coming = [self.coming.get(task_class, 0) for task_class in classes]
        pods = CommittedPods(classes, np.array(on_nodes, dtype=np.int64), np.array(coming, dtype=np.int64))
        demands = [self.kinds[task_class].demand for task_class in classes]
        demand = np.array(demands).reshape(len(classes), len(layout.axis))
        return usage_of(pods, demand, tree, layout.total)

    def going(self) -> list[Pod]:
        """Return the pods that are on their way out, by us or anyhow."""
        leaving = [pod for crew in self.crews.values() for pod in crew.leaving]
        known = {pod.uid for pod in leaving}
        asked = [pod for of, uids in self.asked.items() for pod in self.crews[of].pods if pod.uid in uids - known]
        return leaving + asked


@dataclass(slots=True)
class Eyes:
    """Looks at a backlog. One thread."""

    backlog: Backlog
    _layout: Layout | None = None
    _kinds: Mapping[TaskClass, Kind] = field(default_factory=dict)
    _crews: Mapping[TaskClass, Crew] = field(default_factory=dict)

    def look(self, layout: Layout, asked: Collection[str]) -> BacklogCopy:
        """Return what there is now; `asked` are the pods that were asked to go, by UID."""
        with self.backlog.lock:
            classes = self.backlog.classes()
            running = {it: [*pods.values()] for it in classes if (pods := it.pods[PodPhase.RUNNING])}
            coming = self.backlog.coming()
            holding = {*running, *coming}
            active = [it for it in classes if it in holding or self._waits(it)]
        if self._layout is not layout:
            self._layout, self._kinds, self._crews = layout, {}, {}
        self._kinds = {it: self._kinds.get(it) or _kind(it.template, layout) for it in active}
        self._crews = {it: self._crew(it, pods, layout) for it, pods in running.items()}
        return BacklogCopy(self.backlog, active, coming, self._kinds, self._crews, self.by_class(asked))

    def by_class(self, uids: Collection[str]) -> Mapping[TaskClass, Set[str]]:
        """Return those of these pods that were on nodes at the last look, by class."""
        found: defaultdict[TaskClass, set[str]] = defaultdict(set)
        for uid in uids:
            where = self.backlog.find(uid)
            if where is not None and where[0] in self._crews:
                found[where[0]].add(uid)
        return found

    def _waits(self, of: TaskClass) -> bool:
        """Say whether a pod of a class waits for its turn alone."""
        waits = bool(of.pods[PodPhase.READY] or of.pods[PodPhase.UNGATED])
        return waits and (not self.backlog.writes.backoff or self.backlog.ready(of) > 0)

    def _crew(self, of: TaskClass, pods: Sequence[Pod], layout: Layout) -> Crew:
        known = self._crews.get(of)
        return known if known is not None and known.pods == pods else _crew(pods, layout)


def is_gang(backlog: Backlog, of: TaskClass) -> bool:
    """Say whether these pods start together or not at all."""
    return bool(of.template.identity.group) and backlog.owners.least(of.template) > 1


def _kind(like: Pod, layout: Layout) -> Kind:
    return Kind(layout.vector(like.demand), shape_of(like))


def _crew(pods: Sequence[Pod], layout: Layout) -> Crew:
    rows = layout.rows
    may_go = [pod for pod in pods if pod.owner and not pod.leaving and pod.node in rows]
    may_go.sort(key=_name)
    return Crew(
        pods,
        [pod for pod in pods if pod.leaving],
        may_go,
        np.array([rows[pod.node or ""] for pod in may_go], dtype=np.intp),
        np.array([np.inf if pod.started is None else pod.started for pod in may_go], dtype=np.float64),
    )


def _name(pod: Pod) -> tuple[str, str]:
    return (pod.name, pod.namespace)
