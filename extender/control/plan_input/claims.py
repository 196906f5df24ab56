"""Which queues have a fair share: those that hold room, and those with a pod that some node could hold, were it empty.

The plan leaves out pods that no node could hold (`extender.planner.misfits`). So their queue has no part for them: else
others would seem to have more than they should, and would lose more to reclaim.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from extender.arrays import Floats, times_fits
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.pods.reading import besides_reading
from extender.control.backlog.backlog import Backlog, TaskClass
from extender.control.backlog.gangs import gangs_of, group_of
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.queues.usage import CommittedPods


class Claims:
    """Answers for the classes of a backlog. One thread."""

    def __init__(self, backlog: Backlog, allowed_nodes: AllowedNodes) -> None:
        self._backlog, self._allowed_nodes = backlog, allowed_nodes

    def queues(self, pods: CommittedPods, snapshot: Snapshot) -> Set[str]:
        """Return the queues of these classes, of which these pods hold room, that have a fair share."""
        classes, held = pods.classes, pods.counts + pods.opportunistic
        claiming = {classes[row].job.queue for row in held.nonzero()[0].tolist()}
        others = [task_class for task_class in classes if task_class.job.queue not in claiming]
        if not others:
            return claiming
        with self._backlog.lock:
            ready = {task_class: self._backlog.ready(task_class) for task_class in others}
            places = _Places(self._allowed_nodes, snapshot)
            without_room = self._gangs_without_room([*filter(group_of, others)], places)
        for task_class, count in ready.items():
            queue = task_class.job.queue
            if count and queue not in claiming and group_of(task_class) not in without_room and places.of(task_class):
                claiming.add(queue)
        return claiming

    def _gangs_without_room(self, of_gangs: Sequence[TaskClass], places: "_Places") -> Set[str]:
        """Return the gangs of these classes that lack pods, or that all nodes together would not hold."""
        groups = {group_of(task_class) for task_class in of_gangs}
        members: dict[str, dict[TaskClass, int]] = {name: {} for name in groups}
        classes = [task_class for task_class in self._backlog.classes() if groups and group_of(task_class) in groups]
        for task_class in classes:
            members[group_of(task_class)][task_class] = self._backlog.ready(task_class)
        gangs = gangs_of(self._backlog, classes) if classes else {}
        return {name for name, gang in gangs.items() if gang.missing or places.of_all(members[name]) < gang.least}


class _Places:
    """How many pods of one shape all empty nodes that allow them hold; each shape is looked at once."""

    def __init__(self, allowed_nodes: AllowedNodes, snapshot: Snapshot) -> None:
        self._allowed_nodes, self._snapshot = allowed_nodes, snapshot
        self._most: Floats = snapshot.empty.max(axis=0, initial=0.0)
        self._places: dict[tuple[object, ...], float] = {}

    def of(self, task_class: TaskClass) -> float:
        """Return how many pods of a class they hold."""
        key, layout = _shape(task_class), self._snapshot.layout
        if key not in self._places:
            demand = layout.vector(besides_reading(task_class.template))
            places = 0.0
            if (demand <= self._most).all():  # most of those that fit nowhere are larger than any node
                allowed = self._allowed_nodes.allowed(task_class.template, layout)
                places = float(times_fits(self._snapshot.empty[allowed], demand).sum())
            self._places[key] = places
        return self._places[key]

    def of_all(self, ready: Mapping[TaskClass, int]) -> float:
        """Return how many of so many pods of classes they hold, those of each shape as if they were alone."""
        waiting: Counter[tuple[object, ...]] = Counter()
        for task_class, count in ready.items():
            waiting[_shape(task_class)] += count
        places = {_shape(task_class): self.of(task_class) for task_class in ready}
        return sum(min(count, places[shape]) for shape, count in waiting.items())


def _shape(task_class: TaskClass) -> tuple[object, ...]:
    pod = task_class.template
    return (tuple(sorted(besides_reading(pod).items())), pod.constraints)
