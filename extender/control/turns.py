"""Whose turn it is, for pods that kube-scheduler asks about: the same plan as for held pods, answered pod by pod.

A plan says how many pods of each task class may start, and where; whichever of them kube-scheduler asks about first get
the places. "Yes" may come from a plan of a moment ago. "No" comes from one that knows all that we know: a pod that is
refused sleeps until the next event, so an old "no" could be one too many.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.cluster.model import Pod, PodGone, PodSeen
from extender.cluster.snapshot import Layout, Snapshot
from extender.cluster.state import Ledger
from extender.control.backlog import Backlog
from extender.control.classes import Stage, TaskClass
from extender.control.rounds import Round, Rounds
from extender.control.unused import Unused
from extender.planner import Plan, Planner
from extender.verdict import Standing

OTHERS_FIRST = "others go first"
GANG_WAITS = "its gang cannot start as a whole"

_EARLY_SECONDS = 5.0
"""A pod that kube-scheduler knew before us shows in our watch within this time, or has gone."""

_PLANNING_PART = 0.2
"""At most this part of the time goes into plans, where they take long."""

_ASKING_SECONDS = 1.0
"""A longer pause between two questions counts as so long: meanwhile nobody could come for a turn."""

_LONGEST_PLAN_SECONDS = 0.5
_MOST_AT_FIRST, _MOST_AT_LEAST = 1_000, 50
"""A plan ends after so many pods: kube-scheduler waits for it. More where it is fast, fewer where it takes too long."""

_AS_TODAY = Standing()

Key = tuple[int, int, int]
Mask = NDArray[np.bool_]


@dataclass(slots=True)
class _Places:
    """What is left of one plan: by class the rows of nodes, and which pods got which (-1: any).

    `without` are the names of the classes that it left out, `gangs` those that cannot start whole.
    """

    key: Key
    layout: Layout
    made_at: float
    cost: float
    nodes: dict[TaskClass, list[int]]
    gangs: Collection[TaskClass]
    without: Collection[str]
    given: dict[str, int] = field(default_factory=dict)

    def give(self, uid: str, of: TaskClass, fits: Mask, *, anywhere: bool) -> int | None:
        """Return the node for one pod of a class, one of those on which it `fits` [N]; None where there is none.

        With `anywhere`, -1 where it has a turn, but on nodes that are not among these.
        """
        if uid in self.given:
            row = self.given[uid]
            return row if row < 0 or fits[row] else (-1 if anywhere else None)
        left = self.nodes.get(of, [])
        place = next((place for place, row in enumerate(left) if fits[row]), -1)
        if place >= 0:
            self.given[uid] = left.pop(place)
        elif left and anywhere:
            left.pop(0)
            self.given[uid] = -1
        return self.given.get(uid)


class Turns:
    """Answers for one pod at a time. `clock` is monotonic, `now` in seconds since the epoch."""

    def __init__(
        self,
        ledger: Ledger,
        backlog: Backlog,
        rounds: Rounds,
        planner: Planner,
        *,
        plan_seconds: float,
        flight_time: Callable[[], float],
        clock: Callable[[], float],
        now: Callable[[], float],
        planned: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self._ledger, self._backlog, self._rounds, self._planner = ledger, backlog, rounds, planner
        self._plan_seconds, self._flight_time = plan_seconds, flight_time
        self._clock, self._now, self._planned = clock, now, planned
        self._lock = threading.Lock()
        self._places: _Places | None = None
        self._most = _MOST_AT_FIRST
        self._unused = Unused(refused_seconds=2.0, untried_seconds=20.0)
        self._turns: Mapping[str, bool] = {}
        self._started: Mapping[TaskClass, float] = {}
        self._passed: set[str] = set()
        self._early: dict[str, float] = {}
        self._asked_at, self._asking = clock(), 0.0

    def standing(self, pod: Pod, snapshot: Snapshot, fits: Mask) -> Standing:
        """Return how a pod stands that fits on these nodes of the snapshot [N], at least one."""
        if not self._backlog.has_place(pod):
            return _AS_TODAY
        with self._lock:
            self._pass_time()
            found = self._find(pod)
            if found is None or found[1] is not Stage.UNGATED:
                return _AS_TODAY
            self._come(pod, found[0])
            return self._answer(pod, found[0], snapshot, fits)

    def _answer(self, pod: Pod, of: TaskClass, snapshot: Snapshot, fits: Mask) -> Standing:
        places = self._places
        if places is not None and self._is_young(places, snapshot, of):
            row = places.give(pod.uid, of, fits, anywhere=False)
            if row is None and self._will_be_woken(places, snapshot):
                return self._refusal(places, of)
        else:
            row = None
        if row is None:
            places = self._places = self._current(places, snapshot, of)
            row = places.give(pod.uid, of, fits, anywhere=True)
            if row is None:
                return self._refusal(places, of)
        self._passed.add(pod.uid)
        of.released_at = max(of.released_at, self._now())
        return Standing(node=snapshot.layout.names[row]) if row >= 0 else _AS_TODAY

    def _refusal(self, places: _Places, of: TaskClass) -> Standing:
        return Standing(waits=GANG_WAITS if of in places.gangs else OTHERS_FIRST)

    # -- who asks

    def _pass_time(self) -> None:
        """Go on with the time during which turns are used, or not: that in which kube-scheduler asks."""
        now = self._clock()
        self._asking += min(now - self._asked_at, _ASKING_SECONDS)
        self._asked_at = now

    def _find(self, pod: Pod) -> tuple[TaskClass, Stage] | None:
        """Return a pod's class; kube-scheduler may know the pod before our watch brings it."""
        found = self._backlog.find(pod.uid)
        if found is None:
            self._backlog.apply(PodSeen(pod), self._now())
            self._early[pod.uid] = self._clock()
            found = self._backlog.find(pod.uid)
        return found

    def _come(self, pod: Pod, of: TaskClass) -> None:
        """Note that a class comes for its turns; but not where the pod passed before, and others refused it."""
        if pod.uid not in self._passed:
            self._unused.use(of.name)

    # -- the plan

    def _is_young(self, places: _Places, snapshot: Snapshot, of: TaskClass) -> bool:
        """Say whether a plan answers for a class at all, and is not too old to."""
        about = places.layout is snapshot.layout and of.name not in places.without
        age = self._clock() - places.made_at
        return about and age <= max(self._plan_seconds, places.cost / _PLANNING_PART)

    def _will_be_woken(self, places: _Places, snapshot: Snapshot) -> bool:
        """Say whether an old plan's no does no harm: plans take long, and a binding that is under way wakes all."""
        long = places.cost > _PLANNING_PART * self._plan_seconds
        return long and snapshot.flights > 0 and self._clock() - places.made_at <= places.cost / _PLANNING_PART

    def _current(self, places: _Places | None, snapshot: Snapshot, of: TaskClass) -> _Places:
        key = (snapshot.version, self._backlog.changes, self._backlog.nodes_version)
        if places is not None and places.key == key and self._is_young(places, snapshot, of):
            return places
        begun = self._clock()
        self._lose_early()
        self._backlog.set_out(self._ledger.in_flight(self._flight_time()))
        self._unused.note(self._turns, self._asking)
        out = set(self._unused.out(self._asking)) - {of.name}
        made = self._rounds.next(snapshot.layout, self._now(), out)
        plan = self._planner.plan(snapshot, made.waiting, self._now(), most=self._most) if made.classes else None
        nodes = _by_class(made.classes, plan)
        self._note(nodes)
        took = self._clock() - begun
        self._pace(took, len(plan.assignments) if plan is not None else 0)
        self._planned(took)
        return _Places(key, snapshot.layout, begun, took, nodes, _gangs_that_wait(made, nodes), out)

    def _pace(self, took: float, planned: int) -> None:
        if took > _LONGEST_PLAN_SECONDS:
            self._most = max(self._most // 2, _MOST_AT_LEAST)
        elif planned >= self._most and took < _LONGEST_PLAN_SECONDS / 4:
            self._most *= 2

    def _note(self, nodes: dict[TaskClass, list[int]]) -> None:
        """Keep for pods without a gate only what is theirs: they go first, held pods get the rest.

        Those nobody asks about; their turns count as unused where nobody releases them.
        """
        with self._backlog.lock:
            turns: dict[str, bool] = {}
            for of, rows in nodes.items():
                del rows[self._backlog.waiting(of, Stage.UNGATED) :]
                turns[of.name] = not rows or not all(pod.unschedulable for pod in of.pods[Stage.UNGATED].values())
                if not rows and of.released_at > self._started.get(of, 0.0):
                    self._unused.use(of.name)
            self._started = {of: of.released_at for of in nodes}
        self._turns = turns
        self._unused.note(turns, self._asking)
        self._passed = {uid for uid in self._passed if (self._backlog.find(uid) or (0, 0))[1] is Stage.UNGATED}

    def _lose_early(self) -> None:
        """Forget pods that only kube-scheduler has told us of: they were deleted before it heard."""
        if not self._early:
            return
        seen = self._ledger.snapshot_with(self._early, self._flight_time())[1]
        for uid, since in [*self._early.items()]:
            if uid in seen:
                del self._early[uid]
            elif self._clock() - since > _EARLY_SECONDS:
                del self._early[uid]
                self._backlog.apply(PodGone(uid), self._now())


def _by_class(classes: Sequence[TaskClass], plan: Plan | None) -> dict[TaskClass, list[int]]:
    nodes: dict[TaskClass, list[int]] = {}
    if plan is not None:
        where = zip(plan.assignments.task_class.tolist(), plan.assignments.node.tolist(), strict=True)
        for row, node in where:
            nodes.setdefault(classes[row], []).append(node)
    return nodes


def _gangs_that_wait(made: Round, nodes: dict[TaskClass, list[int]]) -> Collection[TaskClass]:
    gang = made.waiting.gang
    inside = [] if gang is None else [of for of, row in zip(made.classes, gang.tolist(), strict=True) if row >= 0]
    return {*made.short, *(of for of in inside if of not in nodes)}
