"""Gangs: pod groups with a minimum, of which so many pods start together or none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass


@dataclass(frozen=True, slots=True)
class Gang:
    """A pod group of which `least` pods have still to start together; `missing` of these do not exist yet.

    `begun`: some have started already, and hold their nodes for nothing until the others come.
    """

    least: int
    missing: int
    begun: bool


@dataclass(slots=True)
class _Progress:
    """How many pods of a group must start together, and how many have started."""

    least: int
    started: int


def group_of(task_class: TaskClass) -> str:
    """Return the pod group of a class; empty without one."""
    return task_class.template.identity.group


def gangs_of(backlog: Backlog, classes: Sequence[TaskClass]) -> dict[str, Gang]:
    """Return the groups whose minimum has not started yet, by name.

    Of one that had it once, no more pods must start together than may start now.
    """
    grouped = [task_class for task_class in classes if task_class.template.identity.group]
    ready: dict[str, int] = {}
    for task_class in grouped:
        name = group_of(task_class)
        ready[name] = ready.get(name, 0) + backlog.ready(task_class)
    gangs = {}
    for name, group in _progress(backlog, grouped).items():
        least = group.least - group.started
        if backlog.groups.has_met(name, group.least):
            least = min(least, ready[name])
        if least > 0:
            gangs[name] = Gang(least, max(least - ready[name], 0), group.started > 0)
    return gangs


def partial_gangs(backlog: Backlog, nominated: Sequence[Pod]) -> set[str]:
    """Return the groups of which no pod has been released, and fewer than their minimum are nominated."""
    counts: dict[str, int] = {}
    for pod in nominated:
        if pod.identity.group:
            counts[pod.identity.group] = counts.get(pod.identity.group, 0) + 1
    if not counts:
        return set()
    with backlog.lock:
        groups = _progress(backlog, backlog.classes(), nominated=False)
    known = {name: groups[name] for name in counts.keys() & groups.keys()}  # the pods of others went meanwhile
    return {name for name, group in known.items() if group.started == 0 and counts[name] < group.least}


def _progress(backlog: Backlog, classes: Sequence[TaskClass], *, nominated: bool = True) -> Mapping[str, _Progress]:
    """Return how far the groups of these classes have got; nominated pods have started if `nominated` says so.

    Pods that ended well count as started, those that failed or are leaving do not.
    """
    groups: dict[str, _Progress] = {}
    for task_class in classes:
        name = group_of(task_class)
        if not name:
            continue
        least = backlog.groups.least(task_class.template)
        group = groups.setdefault(name, _Progress(least, backlog.groups.ended(name)))
        group.least = max(group.least, least)
        group.started += _started(backlog, task_class, nominated=nominated)
    return groups


def _started(backlog: Backlog, task_class: TaskClass, *, nominated: bool) -> int:
    """Return how many pods of a class have been released, or are being so, and are not leaving."""
    pods = task_class.pods
    released = (pod for phase in (PodPhase.RUNNING, PodPhase.PENDING) for pod in pods[phase].values())
    count = sum(not pod.leaving for pod in released)
    count += sum(uid in backlog.writes.in_progress for uid in pods[PodPhase.READY])
    return count + (len(pods[PodPhase.NOMINATED]) if nominated else 0)
