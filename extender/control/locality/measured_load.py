"""How fast room frees up under load, and what jobs with inputs are like then: what equation 2 needs of a cluster.

Under load is a cluster as long as something waits that more room would help. Whether it was so between two looks is
what the first of them found; pods that left and seconds that passed count by the same rule, so that their quotient
is a rate.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from extender.cluster.pods.preference import holders
from extender.control.backlog.backlog import Backlog, Job, PodPhase, TaskClass
from extender.planner import HELD_KINDS, WaitReason

ROOM_KINDS = frozenset(HELD_KINDS) - {"no-nodes", "barred", "too-large"}
"""Kinds of reasons that room which comes free may end, nearby or anywhere."""

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

    def look(self, held: Iterable[WaitReason], left: int, now: float) -> None:
        """Take in why classes wait, and how many pods have left their nodes so far; `now` is of a clock never set."""
        if self._since is not None:
            left_before, then = self._since
            self.freed += left - left_before
            self.seconds += now - then
        self._since = (left, now) if any(it.kind in ROOM_KINDS for it in held) else None
        self._mark(now)

    def rate(self) -> float | None:
        """Return how many places freed up per second under load in the last hour; None of too few."""
        if not self._marks:
            return None
        freed, seconds = self.freed - self._marks[0].freed, self.seconds - self._marks[0].seconds
        return freed / seconds if freed >= LEAST_FREED and seconds > 0 else None

    def look_away(self) -> None:
        """Leave out what comes until the next look, and since the last one: nobody knows what happens."""
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
        found = [it for job in backlog.jobs.values() if (it := _of_job(backlog, job)) is not None]
    if not found:
        return None
    return Typical(median(tasks for tasks, _ in found), median(replicas for _, replicas in found))


def _of_job(backlog: Backlog, job: Job) -> tuple[int, int] | None:
    """Return how many tasks of a job read inputs, and how many nodes hold the input of one that waits."""
    reading = [(of, replicas) for of in job.classes.values() if (replicas := _replicas(of))]
    return (sum(_tasks(backlog, of) for of, _ in reading), reading[0][1]) if reading else None


def _replicas(of: TaskClass) -> int:
    waiting = (pod for stage in _WAITING for pod in of.pods[stage].values())
    return next((len(holders(pod.inputs)) for pod in waiting if pod.inputs), 0)


def _tasks(backlog: Backlog, of: TaskClass) -> int:
    """Return how many tasks a class has: by what its pods or their owner say, else those seen so far."""
    if of.template.tasks is not None:
        return of.template.tasks
    owner = backlog.owners.by_uid.get(of.template.owner)
    return owner.total if owner is not None and owner.total else of.unfinished + of.finished
