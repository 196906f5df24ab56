"""Whose turn it is, for pods that kube-scheduler asks about: the same plan as for held pods, answered pod by pod.

A plan says how many pods of each task class may start, and where; whichever of them kube-scheduler asks about first get
the places. "Yes" may come from a plan of a moment ago. "No" comes from one that knows all that we know: a pod that is
refused sleeps until the next event, so an old "no" could be one too many.
"""

import math
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial

import numpy as np

from extender.arrays import Mask
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Layout, Snapshot
from extender.cluster.model import Pod, PodGone, PodSeen
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.task_classes import PodPhase, TaskClass
from extender.control.filter_order.node_sample import NodeSample, Offer
from extender.control.filter_order.plan_slots import PlanSlot, PlanSlots
from extender.control.filter_order.unused_turns import UnusedTurns
from extender.control.plan_input.builder import PlanInput, PlanInputBuilder, pods_of
from extender.planner import Plan, Planner
from extender.verdict import Standing

OTHERS_FIRST = "others go first"
GANG_WAITS = "its gang cannot start as a whole"
LOCALITY_WAITS = "waits for room near its input"

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


class FilterOrder:
    """Answers for one pod at a time. `clock` is monotonic, `now` in seconds since the epoch."""

    def __init__(
        self,
        ledger: Ledger,
        backlog: Backlog,
        input_builder: PlanInputBuilder,
        planner: Planner,
        *,
        plan_seconds: float,
        flight_time: Callable[[], float],
        clock: Callable[[], float],
        now: Callable[[], float],
        planned: Callable[[float], None] = lambda _seconds: None,
        placed: Callable[[str, float], None] = lambda _level, _seconds: None,
    ) -> None:
        self._ledger, self._backlog, self._input_builder, self._planner = ledger, backlog, input_builder, planner
        self._plan_seconds, self._flight_time = plan_seconds, flight_time
        self._clock, self._now, self._planned, self._placed = clock, now, planned, placed
        self._lock = threading.Lock()
        self._places: PlanSlots | None = None
        self._most = _MOST_AT_FIRST
        self._unused = UnusedTurns(refused_seconds=2.0, untried_seconds=20.0)
        self._turns: Mapping[str, bool] = {}
        self._started: Mapping[TaskClass, float] = {}
        self._passed: set[str] = set()
        self._missed = NodeSample(planner.policy)
        self._early: dict[str, float] = {}
        self._asked_at, self._asking = clock(), 0.0

    def standing(self, pod: Pod, snapshot: Snapshot, fits: Mask) -> Standing:
        """Return how a pod stands that fits on these nodes of the snapshot [N], at least one."""
        if not self._backlog.has_place(pod):
            return _AS_TODAY
        with self._lock:
            self._pass_time()
            found = self._find(pod)
            if found is None or found[1] is not PodPhase.UNGATED:
                return _AS_TODAY
            self._come(pod, found[0])
            return self._answer(pod, found[0], snapshot, fits)

    def _answer(self, pod: Pod, of: TaskClass, snapshot: Snapshot, fits: Mask) -> Standing:
        places = self._places
        layout = snapshot.layout
        levels = partial(self._input_builder.places.as_planned, pod, layout)
        if places is not None and self._is_young(places, snapshot, of):
            place = places.give(pod.uid, of, fits, levels)
            if place is None and self._will_be_woken(places, snapshot):
                return self._refusal(places, pod, of)
        else:
            place = None
        if place is None:
            places = self._places = self._current(places, snapshot, of)
            place = places.give(pod.uid, of, fits, levels, lambda it: self._elsewhere(it, pod, of, layout, fits))
            if place is None:
                return self._refusal(places, pod, of)
        if place.level >= 0:
            self._missed.start(place, of.job)
            if pod.uid not in self._passed:
                self._placed(self._input_builder.places.level_name(place.level), place.passed_over)
        self._passed.add(pod.uid)
        of.released_at = max(of.released_at, self._now())
        if place.node >= 0:
            return Standing(node=layout.names[place.node])
        return _AS_TODAY if place.nodes is None else Standing(among=place.nodes)

    def _elsewhere(self, place: PlanSlot, pod: Pod, of: TaskClass, layout: Layout, fits: Mask) -> PlanSlot | None:
        """Return a turn whose node was not asked about on others; None where the pod waits for nearer ones."""
        far, usable = self._input_builder.places.as_planned(pod, layout), self._input_builder.nodes.usable(pod, layout)
        return self._missed.elsewhere(place, Offer(pod.uid, of.job, fits, far, usable), self._clock())

    def _refusal(self, places: PlanSlots, pod: Pod, of: TaskClass) -> Standing:
        if of in places.gangs:
            return Standing(waits=GANG_WAITS)
        near = of in places.near or places.waits_nearby(pod.uid, of)
        return Standing(waits=LOCALITY_WAITS if near else OTHERS_FIRST)

    # -- who asks

    def _pass_time(self) -> None:
        """Go on with the time during which turns are used, or not: that in which kube-scheduler asks."""
        now = self._clock()
        self._asking += min(now - self._asked_at, _ASKING_SECONDS)
        self._asked_at = now

    def _find(self, pod: Pod) -> tuple[TaskClass, PodPhase] | None:
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

    def _is_young(self, places: PlanSlots, snapshot: Snapshot, of: TaskClass) -> bool:
        """Say whether a plan answers for a class at all, and is not too old to."""
        about = places.layout is snapshot.layout and of.name not in places.without
        age = self._clock() - places.made_at
        young = age <= max(self._plan_seconds, places.cost / _PLANNING_PART)
        return about and young and self._now() < places.again_at

    def _will_be_woken(self, places: PlanSlots, snapshot: Snapshot) -> bool:
        """Say whether an old plan's no does no harm: plans take long, and a binding that is under way wakes all."""
        long = places.cost > _PLANNING_PART * self._plan_seconds
        return long and snapshot.flights > 0 and self._clock() - places.made_at <= places.cost / _PLANNING_PART

    def _current(self, places: PlanSlots | None, snapshot: Snapshot, of: TaskClass) -> PlanSlots:
        key = (snapshot.version, self._backlog.changes, self._backlog.nodes_version)
        if places is not None and places.key == key and self._is_young(places, snapshot, of):
            return places
        begun = self._clock()
        self._lose_early()
        self._backlog.set_out(self._ledger.in_flight(self._flight_time()))
        self._unused.note(self._turns, self._asking)
        out = set(self._unused.out(self._asking)) - {of.name}
        made = self._input_builder.next(snapshot.layout, self._now(), out)
        plan = self._planner.plan(snapshot, made.waiting, self._now(), most=self._most) if made.classes else None
        nodes = self._by_class(made, plan)
        self._note(nodes)
        took = self._clock() - begun
        self._pace(took, len(plan.assignments) if plan is not None else 0)
        self._planned(took)
        near, again_at = (_waiting_near(made, plan), plan.again_at) if plan is not None else ((), math.inf)
        return PlanSlots(
            key, snapshot.layout, begun, took, nodes, _gangs_that_wait(made, nodes), out, near=near, again_at=again_at
        )

    def _pace(self, took: float, planned: int) -> None:
        if took > _LONGEST_PLAN_SECONDS:
            self._most = max(self._most // 2, _MOST_AT_LEAST)
        elif planned >= self._most and took < _LONGEST_PLAN_SECONDS / 4:
            self._most *= 2

    def _by_class(self, made: PlanInput, plan: Plan | None) -> dict[TaskClass, list[PlanSlot]]:
        nodes: dict[TaskClass, list[PlanSlot]] = {}
        if plan is not None:
            nodes_chosen = plan.assignments.node.tolist()
            for (row, pod), node, terms in zip(pods_of(made, plan), nodes_chosen, plan.terms, strict=True):
                uid = pod.uid if pod is not None else None
                place = PlanSlot(node, uid, terms.level if made.chooses(row) else -1, terms.passed_over)
                nodes.setdefault(made.classes[row], []).append(place)
        return nodes

    def _note(self, nodes: dict[TaskClass, list[PlanSlot]]) -> None:
        """Keep for pods without a gate only what is theirs: they go first, held pods get the rest.

        Those nobody asks about; their turns count as unused where nobody releases them.
        """
        with self._backlog.lock:
            turns: dict[str, bool] = {}
            for of, rows in nodes.items():
                rows[:] = [it for it in rows if it.uid is None or it.uid in of.pods[PodPhase.UNGATED]]
                del rows[self._backlog.waiting(of, PodPhase.UNGATED) :]
                turns[of.name] = not rows or not all(pod.unschedulable for pod in of.pods[PodPhase.UNGATED].values())
                if not rows and of.released_at > self._started.get(of, 0.0):
                    self._unused.use(of.name)
            self._started = {of: of.released_at for of in nodes}
        self._turns = turns
        self._unused.note(turns, self._asking)
        self._passed = {uid for uid in self._passed if self._waits(uid)}
        self._missed.forget_but(self._waits, self._backlog.jobs.keys())

    def _waits(self, uid: str) -> bool:
        """Say whether a pod without a gate is there and has no node yet."""
        found = self._backlog.find(uid)
        return found is not None and found[1] is PodPhase.UNGATED

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


def _waiting_near(made: PlanInput, plan: Plan) -> Collection[TaskClass]:
    """Return the classes of which a plan leaves pods whose jobs were passed over, whether or not it places others."""
    left = made.waiting.count - np.bincount(plan.assignments.task_class, minlength=len(made.classes))
    waits = {name for name, wait in plan.carried.locality.items() if wait.counts > 0}
    names = made.waiting.waits_as or []
    return {of for row, of in enumerate(made.classes) if left[row] > 0 and names[row] in waits and made.chooses(row)}


def _gangs_that_wait(made: PlanInput, nodes: dict[TaskClass, list[PlanSlot]]) -> Collection[TaskClass]:
    gang = made.waiting.gang
    inside = [] if gang is None else [of for of, row in zip(made.classes, gang.tolist(), strict=True) if row >= 0]
    return {*made.short, *(of for of in inside if of not in nodes)}
