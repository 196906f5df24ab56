"""Gangs: pod groups with a minimum, of which so many pods start together or none."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.cluster.model import Pod
from extender.cluster.resources import Amounts, add, greatest
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass


@dataclass(frozen=True, slots=True)
class Gang:
    """A pod group of which `least` pods have still to start together; `missing` of these do not exist yet.

    `begun`: some have started already, and hold their nodes for nothing until the others come; and plans gave the group
    as much as it has with these.
    """

    least: int
    missing: int
    begun: bool


@dataclass(slots=True)
class _Progress:
    """How many pods of a group must start together, how many have started, and what these take (`has`)."""

    least: int
    started: int
    has: dict[str, float] = field(default_factory=dict)


def group_of(task_class: TaskClass) -> str:
    """Return the pod group of a class; empty without one."""
    return task_class.template.identity.group


def gangs_of(backlog: Backlog, classes: Sequence[TaskClass]) -> dict[str, Gang]:
    """Return the groups whose minimum has not started yet, by name.

    Of one that had it once, no more pods must start together than may start now.
    """
    grouped = [task_class for task_class in classes if task_class.template.identity.group]
    ready = Counter[str]()
    largest: dict[str, Amounts] = {}
    for task_class in grouped:
        name, count = group_of(task_class), backlog.ready(task_class)
        ready[name] += count
        if count:
            largest[name] = greatest((largest.get(name, {}), task_class.template.demand))
    gangs = {}
    for name, group in _progress(backlog, grouped).items():
        least = group.least - group.started
        if backlog.groups.has_met(name, group.least):
            least = min(least, ready[name])
        if least > 0:
            whole = add(group.has, _times(least, largest.get(name, {})))
            begun = group.started > 0 and backlog.groups.was_granted(name, whole)
            gangs[name] = Gang(least, max(least - ready[name], 0), begun)
    return gangs


def note_turns(backlog: Backlog, placed: Counter[TaskClass]) -> None:
    """Note what groups have with so many pods of these classes that a plan places."""
    names = {group_of(task_class) for task_class in placed} - {""}
    if not names:
        return
    with backlog.lock:
        groups = _progress(backlog, [task_class for task_class in backlog.classes() if group_of(task_class) in names])
        for task_class, count in placed.items():
            if (group := groups.get(group_of(task_class))) is not None:
                group.has = add(group.has, _times(count, task_class.template.demand))
        for name, group in groups.items():
            backlog.groups.note_turn(name, group.has)


def partial_gangs(backlog: Backlog, nominated: Sequence[Pod]) -> set[str]:
    """Return the groups of which no pod has been released, and fewer than their minimum are nominated."""
    counts = Counter(pod.identity.group for pod in nominated if pod.identity.group)
    if not counts:
        return set()
    with backlog.lock:
        groups = _progress(backlog, backlog.classes(), nominated=False)
    progress = {name: groups[name] for name in counts.keys() & groups.keys()}  # the pods of others went meanwhile
    return {name for name, group in progress.items() if group.started == 0 and counts[name] < group.least}


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
        started = _started(backlog, task_class, nominated=nominated)
        group.started += started
        group.has = add(group.has, _times(started, task_class.template.demand))
    return groups


def _times(count: int, demand: Amounts) -> Amounts:
    return {name: count * amount for name, amount in demand.items()} if count else {}


def _started(backlog: Backlog, task_class: TaskClass, *, nominated: bool) -> int:
    """Return how many pods of a class have been released, or are being so, and are not leaving."""
    pods = task_class.pods
    released = (pod for phase in (PodPhase.RUNNING, PodPhase.PENDING) for pod in pods[phase].values())
    count = sum(not pod.leaving for pod in released)
    count += sum(uid in backlog.writes.in_progress for uid in pods[PodPhase.READY])
    return count + (len(pods[PodPhase.NOMINATED]) if nominated else 0)
