"""Who waits in queues that are to get room back: task classes in lines, for whose pods the same victims would do."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from extender.arrays import Mask
from extender.cluster.pods.opportunistic import ONLY
from extender.control.backlog.backlog import PodPhase, TaskClass
from extender.control.pod_shapes import Shape, queue_of
from extender.control.queues.standings import Standings
from extender.control.reclaim.backlog_copy import BacklogCopy, is_gang

ClassLine = Sequence[TaskClass]
"""Classes of a queue for whose pods the same victims would do; the oldest job first."""


def wants_of(backlog_copy: BacklogCopy, standings: Standings) -> Mask:
    """Return which queues have pods that wait and that room could be made for [Q]."""
    wants = np.zeros(len(standings.queues), dtype=np.bool_)
    queues = {task_class.job.queue for task_class in _waiting(backlog_copy)}
    wants[[standings.rows[queue] for queue in queues]] = True
    return wants


def running_shapes(backlog_copy: BacklogCopy, queues: Collection[str]) -> set[Shape]:
    """Return the shapes of which pods of these queues run, and the queues that they are of."""
    kinds = backlog_copy.kinds
    shapes = {kinds[task_class].shape for task_class in backlog_copy.crews if task_class.job.queue in queues}
    return shapes | set(map(queue_of, shapes))


def lines_of(backlog_copy: BacklogCopy, queues: Collection[str]) -> dict[str, list[ClassLine]]:
    """Return the lines of each of these queues: the highest priority first, then the oldest job.

    A class to which it makes a difference where its pods run is a line of its own.
    """
    waiting = [task_class for task_class in _waiting(backlog_copy) if task_class.job.queue in queues]
    waiting.sort(key=lambda task_class: (-task_class.template.priority, task_class.job.arrived, task_class.name))
    lines: Mapping[str, dict[object, list[TaskClass]]] = {queue: {} for queue in queues}
    for task_class in waiting:
        pod = task_class.template
        chooses = pod.inputs or pod.prefers or pod.constraints.volumes
        key = task_class if chooses else (backlog_copy.kinds[task_class].shape, pod.priority)
        lines[task_class.job.queue].setdefault(key, []).append(task_class)
    return {queue: [*by_key.values()] for queue, by_key in lines.items()}


def _waiting(backlog_copy: BacklogCopy) -> list[TaskClass]:
    """Return the classes with pods that wait and may start alone, as regular ones: nobody goes for idle room."""
    return [
        task_class
        for task_class in backlog_copy.active
        if task_class.pods[PodPhase.READY]
        and task_class.template.choice != ONLY
        and not is_gang(backlog_copy.backlog, task_class)
    ]
