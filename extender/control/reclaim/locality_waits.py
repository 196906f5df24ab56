"""The waits for locality that the planner carries on from plan to plan, as reclaim reads and changes them.

Reclaim makes room on a node of its own choice, so its pods wait for locality, and end that wait, as those of a plan do.
"""

from collections.abc import Collection

from extender.cluster.model import Pod
from extender.control.backlog.task_classes import TaskClass, waits_as
from extender.planner import Planner, farthest, pass_over, start, wait_now


class LocalityWaits:
    """The waits of jobs, by the names under which the planner keeps them. The release loop's thread only."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def farthest(self, task_class: TaskClass, existing: Collection[int], now: float) -> int:
        """Return the farthest of the `existing` levels at which a pod of a class may start now."""
        name = waits_as(task_class.job.queue, task_class.job.name)
        return farthest(self._planner.policy, wait_now(self._planner.carried, name, now), existing)

    def pass_over(self, names: Collection[str], now: float, seconds: float) -> None:
        """Note that these jobs were passed over: room could be made, but farther than they may start yet."""
        self._planner.carried = pass_over(self._planner.carried, names, now, seconds)

    def start(self, pod: Pod, level: int, now: float) -> float:
        """Note that a pod starts at a level; return for how many seconds its job was passed over."""
        name = waits_as(pod.identity.queue, pod.identity.job)
        seconds = wait_now(self._planner.carried, name, now).seconds
        self._planner.carried = start(self._planner.policy, self._planner.carried, name, level)
        return seconds
