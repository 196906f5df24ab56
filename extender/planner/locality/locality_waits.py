"""Who waits for a start near its input while a plan is made: Delay Scheduling's algorithm 3, under any order of jobs.

A job's wait grows from plan to plan while it was passed over: room that it could have used in its turn stays empty, or
others took it. If others took it, the wait grows by `pass_counts` seconds at most, however many plans follow: that is
one chance. A job that was held back for fairness, or fitted nowhere, was not passed over.

`Waits` is for a plan. The functions after it are for those who start tasks beside the plan (reclaim), by the same
algorithm: a start sets its job's wait anew, and a job that lets a chance pass has been passed over.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.waiting import Waiting
from extender.planner.plan import Carried, LocalityWait
from extender.planner.tuning import Policy
from extender.policy.locality import level_now, seconds_to_next

_ANYWHERE = 2**31


class Waits:
    """The waits of names [W]; `of` [C] is each class's name, `may` [C] the farthest level at which it may start now.

    `existing` [C, K] are the levels at which the cluster has a node for a class: it does not wait for the others.
    """

    def __init__(
        self, policy: Policy, waiting: Waiting, carried: Carried, now: float, *, chooses: Mask, existing: Mask
    ) -> None:
        names = waiting.waits_as or [waiting.jobs.names[job] for job in waiting.job.tolist()]
        self.names, self.of = _known(names)
        self._waits, self._chooses = policy.locality_waits, chooses
        self._of_class = np.where(existing, np.array(self._waits, dtype=np.float64), 0.0)
        before = [wait_now(carried, name, now) for name in self.names]
        self._others = waits_without(self.names, waiting, carried, now)
        last = len(self._waits)
        self.level: Counts = np.array([min(wait.level, last) for wait in before], dtype=np.int64)
        self.waited: Floats = np.array([wait.seconds for wait in before], dtype=np.float64)
        self.counts: Floats = np.zeros(len(self.names))
        self._credit: Floats = np.array([wait.counts for wait in before], dtype=np.float64)
        self._at_most = policy.pass_counts
        self._whole = np.full(len(names), -1) if waiting.gang is None else waiting.gang
        self._later: dict[int, int] = {}
        self._settle()

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that starts from now on; who was passed over has been."""
        level, waited, credit, later = self.level.copy(), self.waited.copy(), self._credit.copy(), self._later.copy()

        def undo() -> None:
            self.level[:], self.waited[:], self._credit[:], self._later = level, waited, credit, later.copy()
            self._settle()

        return undo

    def start(self, task_class: int, level: int) -> None:
        """Take note of a start at a level: from there the job waits anew.

        A gang's classes do so only from the next plan on: the rest of it has to go with its first.
        """
        name, level = int(self.of[task_class]), min(level, len(self._waits))
        if not self._chooses[task_class]:
            return
        if self._whole[task_class] >= 0:
            self._later[name] = min(level, self._later.get(name, level))
            return
        self._credit[name] = 0.0
        if self.level[name] != level or self.waited[name] != 0.0:
            self.level[name], self.waited[name] = level, 0.0
            self._settle()

    def skip(self, classes: Rows, *, stays: bool, starved: bool = False) -> None:
        """Take note that these classes were passed over at room that they could have used, and if it `stays` empty.

        If they have `starved`, their waits pass from now on, whether or not another chance comes.
        """
        names, seconds = self.of[classes], np.inf if stays else self._at_most
        if starved:
            seconds = max(seconds, sum(self._waits))
        self.counts[names] = np.maximum(self.counts[names], seconds)

    def again_at(self, now: float, left: Mask) -> float:
        """Return when the first wait ends for which room stays empty, of those with tasks `left` [C]; else infinite."""
        waits = (left & (self.counts[self.of] == np.inf)).nonzero()[0]
        names = self.of[waits]
        return float(
            now + seconds_to_next(self.level[names], self.waited[names], self._of_class[waits]).min(initial=np.inf)
        )

    def carried(self, left: Mask) -> Mapping[str, LocalityWait]:
        """Return what the next plan goes on with; who stands at the beginning is left out."""
        for name, level in self._later.items():
            self.level[name], self.waited[name], self._credit[name] = level, 0.0, 0.0
        columns = (self.level.tolist(), self.waited.tolist(), np.maximum(self._still(left), self._credit).tolist())
        waits = {name: LocalityWait(*row) for name, *row in zip(self.names, *columns, strict=True)}
        return {**self._others, **{name: wait for name, wait in waits.items() if wait != LocalityWait()}}

    def passed_over(self, task_class: int) -> bool:
        """Whether the class waits for locality after this plan."""
        return bool(self.counts[self.of[task_class]] > 0 and self.may[task_class] < _ANYWHERE)

    def stays(self, task_class: int) -> bool:
        """Whether room that the class could use, but for its wait, stays empty after this plan."""
        return bool(self.counts[self.of[task_class]] == np.inf)

    def seconds(self, task_class: int) -> float:
        """Return for how many seconds the job of a class that chooses has been passed over since its last start."""
        return self.waited.item(self.of[task_class]) if self._chooses[task_class] else 0.0

    def until_beyond(self, task_class: int) -> tuple[float, int]:
        """Return for how many seconds in all the class has to be passed over to start farther away, and how far."""
        waits, level = self._of_class[task_class], int(self.level[self.of[task_class]])
        upto = int(self.may[task_class]) + 1
        farther = waits[upto:] > 0
        beyond = upto + int(farther.argmax()) if farther.any() else _ANYWHERE
        return float(waits[level:upto].sum()), beyond

    def _still(self, left: Mask) -> Floats:
        has = np.zeros(len(self.names), dtype=np.bool_)
        has[self.of[left]] = True
        return np.where(has, self.counts, 0.0)

    def _settle(self) -> None:
        now = level_now(self.level[self.of], self.waited[self.of], self._of_class)
        self.may: Counts = np.where(self._chooses & (now < len(self._waits)), now, _ANYWHERE)


def wait_now(carried: Carried, name: str, now: float) -> LocalityWait:
    """Return how a job waits at `now`; `counts` is what is left of a chance that others took.

    Where room stays empty, it counts only until the next plan sees it.
    """
    wait = carried.locality.get(name, LocalityWait())
    since = max(0.0, now - carried.planned_at)
    counts = max(wait.counts - since, 0.0) if wait.counts < np.inf else 0.0
    return LocalityWait(wait.level, wait.seconds + min(since, wait.counts), counts)


def farthest(policy: Policy, wait: LocalityWait, existing: Collection[int]) -> int:
    """Return the farthest level at which a job that waits like this may start now a task that has these levels."""
    waits = [seconds if level in existing else 0.0 for level, seconds in enumerate(policy.locality_waits)]
    last = np.array([min(wait.level, len(waits))])
    level = int(level_now(last, np.array([wait.seconds]), np.array([waits], dtype=np.float64))[0])
    return level if level < len(waits) else _ANYWHERE


def pass_over(carried: Carried, names: Collection[str], now: float, seconds: float) -> Carried:
    """Return the waits once these jobs have been passed over at `now`, which counts for so many seconds."""
    until = max(0.0, now - carried.planned_at) + seconds
    before = {name: carried.locality.get(name, LocalityWait()) for name in names}
    passed = {name: replace(wait, counts=max(wait.counts, until)) for name, wait in before.items()}
    return replace(carried, locality={**carried.locality, **passed}) if passed else carried


def start(policy: Policy, carried: Carried, name: str, level: int) -> Carried:
    """Return the waits once a task of a job has started at a level: from there the job waits anew."""
    if not policy.locality_waits:
        return carried
    wait = LocalityWait(min(level, len(policy.locality_waits)))
    return replace(carried, locality={**carried.locality, name: wait})


def waits_without(names: Collection[str], waiting: Waiting, carried: Carried, now: float) -> Mapping[str, LocalityWait]:
    """Return what is carried of jobs that are there, but have nothing in this plan that waits under these names."""
    if not carried.locality:
        return {}
    jobs = set(waiting.jobs.names if waiting.jobs_there is None else waiting.jobs_there).difference(names)
    return {name: wait_now(carried, name, now) for name in carried.locality if name in jobs}


def _known(names: Sequence[str]) -> tuple[list[str], Rows]:
    """Return the different names in the order in which they first come, and each one's row."""
    rows: dict[str, int] = {}
    row_of = [rows.setdefault(name, len(rows)) for name in names]
    return list(rows), np.array(row_of, dtype=np.intp)
