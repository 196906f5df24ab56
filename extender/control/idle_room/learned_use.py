"""What the task classes of the backlog use: learned at each look from the pods that were measured one by one.

Which pods that are is chosen here too: young ones, as what a window holds of them counts for little, and a few of each
class that have run for long. Opportunistic pods are always measured.
"""

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.model import Pod
from extender.cluster.resources import row_of
from extender.cluster.usage import Usage, samples_of
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.idle_room.class_use import LEAST_PODS, ClassUse, while_running
from extender.control.idle_room.starting import LATE_SECONDS, began_after
from extender.policy.slack import RAMP_UP_SECONDS

UNSEEN = 0.25
"""A window holds four scrapes or more: a pod's first part of it, so much at most, may be in no scrape."""

MOST_SAMPLED = 2000
"""So many regular pods are measured one by one, at most."""

_OF_CLASS = 2 * LEAST_PODS
"""So many of each class that have run for longest."""


def sampled(backlog: Backlog, now: Callable[[], float], window_seconds: float, *, most: int = MOST_SAMPLED) -> set[str]:
    """Return the regular pods (by UID) that are to be measured one by one: the young, and a few of each class.

    Cost follows these and the classes, not all pods. A pod that is measured while young is so until it has been
    measured whole. Of more than `most` the last are left out: they count in full.
    """
    earliest = now() - window_seconds - RAMP_UP_SECONDS - LATE_SECONDS
    young: list[str] = []
    old: list[str] = []
    with backlog.lock:
        for task_class in backlog.classes():
            running = task_class.pods[PodPhase.RUNNING]
            old += [pod.uid for pod in itertools.islice(running.values(), _OF_CLASS) if not pod.opportunistic]
            young += [pod.uid for pod in began_after(task_class, earliest) if not pod.opportunistic]
    half = most // 2
    return set(old[: max(half, most - len(young))]) | set(young[: max(half, most - len(old))])


@dataclass(slots=True)
class _Rows:
    """Rows given out to keys; those of keys that are gone are given out again."""

    row_of: dict[Hashable, int] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)

    def of(self, key: Hashable) -> int:
        """Return the row of a key, a new one where it has none."""
        row = self.row_of.get(key)
        if row is None:
            row = self.row_of[key] = self._free.pop() if self._free else len(self.row_of)
        return row

    def of_all(self, keys: Sequence[Hashable]) -> Rows:
        """Return the rows of keys [K], new ones where they have none."""
        rows = list(map(self.row_of.get, keys))
        return np.array([self.of(key) if row is None else row for key, row in zip(keys, rows, strict=True)], np.intp)

    def take_back(self, keys: Sequence[Hashable]) -> list[int]:
        """Return the rows of keys that are gone, which others may get."""
        rows = [self.row_of.pop(key) for key in keys]
        self._free += rows
        return rows


class LearnedUse:
    """Knows what pods of a class use, once enough of them were measured. One thread, that of the release loop.

    It is forgotten with the class, and at a restart.
    """

    def __init__(self, backlog: Backlog) -> None:
        self._backlog, self._classes = backlog, ClassUse()
        self._pod_rows, self._class_rows = _Rows(), _Rows()
        self._looked: Usage | None = None

    def take(self, usage: Usage) -> None:
        """Learn from a look; one that was taken before says nothing new."""
        if usage is self._looked:
            return
        self._looked = usage
        with self._backlog.lock:
            # 1. A pod that has ended counts with the use that it had last.
            gone = self._backlog.gone(str(uid) for uid in self._pod_rows.row_of)
            # 2. Who was measured, in which class.
            where = self._backlog.find_all(usage.pods)
            classes: set[Hashable] = {
                task_class for job in self._backlog.jobs.values() for task_class in job.classes.values()
            }
            running = _measured(usage, where)
        self._classes.end(np.array(self._pod_rows.take_back(gone), dtype=np.intp))
        self._learn(running, usage.rate_seconds)
        # 3. Classes that are over are forgotten.
        over = [key for key in self._class_rows.row_of if key not in classes]
        if over:
            self._classes.forget(np.array(self._class_rows.take_back(over), dtype=np.intp))

    def expected(self, pods: Sequence[Pod], demand: Floats) -> Floats:
        """Return what pods [P] are expected to use [P, R]: what their class does, else their `demand` [P, R]."""
        positions = [self._backlog.find(pod.uid) for pod in pods]
        rows = [-1 if where is None else self._class_rows.row_of.get(where[0], -1) for where in positions]
        return self._classes.expected(np.array(rows, dtype=np.intp), demand)

    def _learn(self, running: "_Measured", window: float) -> None:
        """Take in what running pods were measured to use, of those that were seen for long enough.

        What the first scrapes may hide is added, up to what a pod demands.
        """
        age = running.at - running.started
        unseen = UNSEEN * window
        seen = np.flatnonzero((age > 2 * unseen) | (age >= window))
        if not len(seen):
            return
        some, age = running.only(seen), age[seen]
        use, demand = some.use, some.demand()
        use = np.where(np.isnan(use), demand, use)
        if window > 0:
            use = np.minimum(while_running(use, age, window, unseen), np.maximum(demand, use))
        self._classes.learn(self._pod_rows.of_all(some.uids), self._class_rows.of_all(some.classes), use, age)


@dataclass(frozen=True, slots=True)
class _Measured:
    """Running pods [P] that were measured one by one, what was measured [P, R], when, and when each started [P]."""

    uids: Sequence[str]
    classes: Sequence[TaskClass]
    use: Floats
    at: Floats
    started: Floats

    def only(self, rows: Rows) -> "_Measured":
        """Return these of the pods."""
        places = rows.tolist()
        uids, classes = [self.uids[place] for place in places], [self.classes[place] for place in places]
        return _Measured(uids, classes, self.use[rows], self.at[rows], self.started[rows])

    def demand(self) -> Floats:
        """Return what each needs [P, R], in the order of `DIMENSIONS`: the pods of a class need the same."""
        row_in = {task_class: row for row, task_class in enumerate(dict.fromkeys(self.classes))}
        vectors = np.array([row_of(task_class.template.demand) for task_class in row_in])
        return np.asarray(vectors[[row_in[task_class] for task_class in self.classes]])


def _measured(usage: Usage, where: Sequence[tuple[TaskClass, PodPhase] | None]) -> _Measured:
    """Return those of the measured pods that run, by `where` each is."""
    running = [place is not None and place[1] is PodPhase.RUNNING for place in where]
    uids = list(itertools.compress(usage.pods, running))
    classes = [place[0] for place in itertools.compress(where, running) if place is not None]
    pods = [task_class.pods[PodPhase.RUNNING][uid] for task_class, uid in zip(classes, uids, strict=True)]
    rows, samples = np.flatnonzero(running), samples_of(usage.pods)
    started = np.array([pod.started for pod in pods], dtype=np.float64)
    return _Measured(uids, classes, samples.amounts[rows], samples.at[rows], started)
