"""How fast room frees up under load, and what jobs with inputs are like: what equation 2 of delay scheduling needs.

A cluster is under load as long as something waits that more room would help. The time between two looks counts as
under load where the first of them found it so. Pods that left and seconds that passed are counted by this same rule, so
that their quotient is a rate.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from extender.cluster.pods.preference import holders
from extender.control.backlog.backlog import Backlog, Job, PodPhase, TaskClass
from extender.planner import HELD_KINDS, WaitReason

ROOM_KINDS = frozenset(HELD_KINDS) - {"no-nodes", "barred", "too-large"}
"""Kinds of wait reasons that end once room comes free, nearby or anywhere."""

LEAST_FREED = 20
"""A rate is known of so many ends: a Poisson count of 20 is uncertain by 22 % (one over its root)."""

_LATELY_SECONDS, _MARK_SECONDS = 3_600.0, 60.0
_WAITING = (PodPhase.READY, PodPhase.GATED, PodPhase.NOMINATED, PodPhase.UNGATED)


@dataclass(frozen=True, slots=True)
class Typical:
    """Medians over the jobs with inputs that wait: how many `tasks` read one, and from how many nodes (`replicas`)."""

    tasks: float
    replicas: float


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the counts of a load had got `at` a time."""

    at: float
    freed: int
    seconds: float


@dataclass(slots=True)
class MeasuredLoad:
    """`freed` pods left their nodes in `seconds` under load; `typical` of the last look that found jobs with inputs."""

    freed: int = 0
    seconds: float = 0.0
    typical: Typical | None = None
    _since: tuple[int, float] | None = None
    _marks: deque[Mark] = field(default_factory=deque)

    def look(self, reasons: Iterable[WaitReason], left: int, now: float) -> None:
        """Note why classes wait, and how many pods have left their nodes so far; `now` is of a clock never set."""
        if self._since is not None:
            left_before, then = self._since
            self.freed += left - left_before
            self.seconds += now - then
        self._since = (left, now) if any(reason.kind in ROOM_KINDS for reason in reasons) else None
        self._mark(now)

    def rate(self) -> float | None:
        """Return how many places freed up per second under load in the last hour; None of too few."""
        if not self._marks:
            return None
        freed, seconds = self.freed - self._marks[0].freed, self.seconds - self._marks[0].seconds
        return freed / seconds if freed >= LEAST_FREED and seconds > 0 else None

    def look_away(self) -> None:
        """Leave out the time since the last look and until the next one: nobody sees what happens in it."""
        self._since = None

    def _mark(self, now: float) -> None:
        """Mark the counts once a minute; those of more than an hour ago are left out."""
        while self._marks and now - self._marks[0].at > _LATELY_SECONDS:
            self._marks.popleft()
        if not self._marks or now - self._marks[-1].at >= _MARK_SECONDS:
            self._marks.append(Mark(now, self.freed, self.seconds))


def typical(backlog: Backlog) -> Typical | None:
    """Return what the jobs with inputs that wait are like; None where there are none."""
    with backlog.lock:
        jobs = [counts for job in backlog.jobs.values() if (counts := _of_job(backlog, job)) is not None]
    if not jobs:
        return None
    return Typical(median(tasks for tasks, _ in jobs), median(replicas for _, replicas in jobs))


def _of_job(backlog: Backlog, job: Job) -> tuple[int, int] | None:
    """Return how many tasks of a job read inputs, and how many nodes hold the input of one that waits."""
    reading = [(task_class, replicas) for task_class in job.classes.values() if (replicas := _replicas(task_class))]
    return (sum(_tasks(backlog, task_class) for task_class, _ in reading), reading[0][1]) if reading else None


def _replicas(task_class: TaskClass) -> int:
    if not task_class.template.inputs:  # no pod of the class has any
        return 0
    waiting = (pod for phase in _WAITING for pod in task_class.pods[phase].values())
    return next((len(holders(pod.inputs)) for pod in waiting if pod.inputs), 0)


def _tasks(backlog: Backlog, task_class: TaskClass) -> int:
    """Return how many tasks a class has: by what its pods or their owner say, else those seen so far."""
    if task_class.template.tasks is not None:
        return task_class.template.tasks
    owner = backlog.owners.by_uid.get(task_class.template.owner)
    return owner.total if owner is not None and owner.total else task_class.unfinished + task_class.finished
