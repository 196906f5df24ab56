"""Which queues have a fair share: those that hold room, and those with a pod that some node could hold, were it empty.

The plan leaves out pods that no node could hold (`extender.planner.misfits`). So their queue has no part for them: else
others would seem to have more than they should, and would lose more to reclaim.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set

from extender.cluster.ledger.snapshot import Snapshot
from extender.control.backlog.backlog import Backlog, TaskClass
from extender.control.backlog.gangs import gangs_of, group_of
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.plan_input.empty_nodes import EmptyNodes, RoomShape, room_shape
from extender.control.queues.usage import CommittedPods


class Claims:
    """Answers for the classes of a backlog. One thread."""

    def __init__(self, backlog: Backlog, allowed_nodes: AllowedNodes) -> None:
        self._backlog, self._empty_nodes = backlog, EmptyNodes(allowed_nodes)

    def queues(self, pods: CommittedPods, snapshot: Snapshot) -> Set[str]:
        """Return the queues of these classes, of which these pods hold room, that have a fair share."""
        classes, held = pods.classes, pods.counts + pods.opportunistic
        claiming = {classes[row].job.queue for row in held.nonzero()[0].tolist()}
        others = [task_class for task_class in classes if task_class.job.queue not in claiming]
        if not others:
            return claiming
        with self._backlog.lock:
            ready = {task_class: self._backlog.ready(task_class) for task_class in others}
            without_room = self._gangs_without_room([*filter(group_of, others)], snapshot)
        for task_class, count in ready.items():
            queue = task_class.job.queue
            if not count or queue in claiming or group_of(task_class) in without_room:
                continue
            if self._empty_nodes.places(task_class.template, snapshot):
                claiming.add(queue)
        return claiming

    def _gangs_without_room(self, of_gangs: Sequence[TaskClass], snapshot: Snapshot) -> Set[str]:
        """Return the gangs of these classes that lack pods, or that all nodes together would not hold."""
        groups = {group_of(task_class) for task_class in of_gangs}
        if not groups:
            return set()
        ready: dict[str, dict[TaskClass, int]] = defaultdict(dict)
        for task_class in self._backlog.classes():
            if (group := group_of(task_class)) in groups:
                ready[group][task_class] = self._backlog.ready(task_class)
        gangs = gangs_of(self._backlog, [task_class for members in ready.values() for task_class in members])
        return {name for name, gang in gangs.items() if gang.missing or self._most(ready[name], snapshot) < gang.least}

    def _most(self, ready: Mapping[TaskClass, int], snapshot: Snapshot) -> float:
        """Return how many of so many pods could start if those of each shape had all empty nodes to themselves.

        As in a plan (`extender.planner.most_if_empty`).
        """
        waiting: Counter[RoomShape] = Counter()
        places: dict[RoomShape, float] = {}
        for task_class, count in ready.items():
            shape = room_shape(task_class.template)
            waiting[shape] += count
            places[shape] = self._empty_nodes.places(task_class.template, snapshot)
        return sum(min(count, places[shape]) for shape, count in waiting.items())
