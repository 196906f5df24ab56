"""Whose turn it is, for pods that kube-scheduler asks about: the same plan as for gated pods, answered pod by pod.

A plan says how many pods of each task class may start, and where; the pods that kube-scheduler asks about first get
these slots. A yes may come from a plan of a moment ago. A no comes from a plan that knows all that we know: a pod that
is refused sleeps until the next event in the cluster, so an outdated no may cost it much time.
"""

import math
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial

import numpy as np

from extender.arrays import Mask
from extender.cluster.events import PodGone, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Layout, Snapshot
from extender.cluster.model import Pod
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
"""A plan places at most so many pods, as kube-scheduler waits for it: more where it is fast, fewer where it is slow."""

_ANY_TIME = Standing()
"""How a pod stands that takes no part in the order: it may start wherever it fits."""


class FilterOrder:
    """Answers for one pod at a time, in any thread, under one lock.

    `clock` is monotonic, `now` in seconds since the epoch. `planned` hears how long each plan took, `placed` at which
    locality level a pod passed and for how many seconds its job was passed over.
    """

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
        self._slots: PlanSlots | None = None
        self._most = _MOST_AT_FIRST
        self._unused = UnusedTurns(refused_seconds=2.0, untried_seconds=20.0)
        self._turns: Mapping[str, bool] = {}
        self._released_at: Mapping[TaskClass, float] = {}
        self._passed: set[str] = set()
        self._node_sample = NodeSample(planner.policy)
        self._early: dict[str, float] = {}
        self._asked_at, self._asking = clock(), 0.0

    def standing(self, pod: Pod, snapshot: Snapshot, fits: Mask) -> Standing:
        """Return how a pod stands that fits on these nodes of the snapshot [N], at least one."""
        if not self._backlog.takes_part(pod):
            return _ANY_TIME
        with self._lock:
            # 1. Count the time during which kube-scheduler asks.
            self._pass_time()
            # 2. Find the pod's class. One that has left the queue may start: it is not ours to hold.
            position = self._find(pod)
            if position is None or position[1] is not PodPhase.UNGATED:
                return _ANY_TIME
            task_class = position[0]
            # 3. Note that its class uses its turns, unless the pod has passed before and others refused it.
            if pod.uid not in self._passed:
                self._unused.use(task_class.name)
            # 4. Give it a slot of the plan, or say why it waits.
            return self._answer(pod, task_class, snapshot, fits)

    def _answer(self, pod: Pod, task_class: TaskClass, snapshot: Snapshot, fits: Mask) -> Standing:
        layout, slot = snapshot.layout, None
        levels = partial(self._input_builder.preferred_nodes.as_planned, pod, layout)
        # 1. A slot of the last plan will do, if that is young. Its no holds only where an event is sure to come soon.
        slots = self._slots
        if slots is not None and self._is_young(slots, snapshot, task_class):
            slot = slots.give(pod.uid, task_class, fits, levels)
            if slot is None and self._will_be_woken(slots, snapshot):
                return self._refusal(slots, pod, task_class)
        # 2. Else a plan that knows all that we know decides.
        if slot is None:
            slots = self._slots = self._current(slots, snapshot, task_class)
            slot = slots.give(pod.uid, task_class, fits, levels, self._elsewhere(pod, task_class, layout, fits))
            if slot is None:
                return self._refusal(slots, pod, task_class)
        # 3. The pod passes.
        self._note_passed(pod, task_class, slot)
        if slot.node >= 0:
            return Standing(node=layout.names[slot.node])
        return _ANY_TIME if slot.nodes is None else Standing(among=slot.nodes)

    def _note_passed(self, pod: Pod, task_class: TaskClass, slot: PlanSlot) -> None:
        if slot.level >= 0:
            self._node_sample.start(slot, task_class.job)
            if pod.uid not in self._passed:
                self._placed(self._input_builder.preferred_nodes.level_name(slot.level), slot.passed_over)
        self._passed.add(pod.uid)
        task_class.released_at = max(task_class.released_at, self._now())

    def _elsewhere(
        self, pod: Pod, task_class: TaskClass, layout: Layout, fits: Mask
    ) -> Callable[[PlanSlot], PlanSlot | None]:
        """Return what finds another slot where kube-scheduler did not ask about the node of the pod's slot."""

        def elsewhere(slot: PlanSlot) -> PlanSlot | None:
            levels = self._input_builder.preferred_nodes.as_planned(pod, layout)
            usable = self._input_builder.allowed_nodes.usable(pod, layout)
            offer = Offer(pod.uid, task_class.job, fits, levels, usable)
            return self._node_sample.elsewhere(slot, offer, self._clock())

        return elsewhere

    def _refusal(self, slots: PlanSlots, pod: Pod, task_class: TaskClass) -> Standing:
        if task_class in slots.waiting_gangs:
            return Standing(waits=GANG_WAITS)
        near = task_class in slots.waiting_near or slots.waits_nearby(pod.uid, task_class)
        return Standing(waits=LOCALITY_WAITS if near else OTHERS_FIRST)

    # -- who asks

    def _pass_time(self) -> None:
        """Count the time in which kube-scheduler asks: only in that time can turns be used."""
        now = self._clock()
        self._asking += min(now - self._asked_at, _ASKING_SECONDS)
        self._asked_at = now

    def _find(self, pod: Pod) -> tuple[TaskClass, PodPhase] | None:
        """Return a pod's class and phase; kube-scheduler may know the pod before our watch shows it."""
        position = self._backlog.find(pod.uid)
        if position is None:
            self._backlog.apply(PodSeen(pod), self._now())
            self._early[pod.uid] = self._clock()
            position = self._backlog.find(pod.uid)
        return position

    # -- the plan

    def _is_young(self, slots: PlanSlots, snapshot: Snapshot, task_class: TaskClass) -> bool:
        """Say whether a plan answers for a class at all, and is not too old for that."""
        answers = slots.layout is snapshot.layout and task_class.name not in slots.without
        age = self._clock() - slots.planned_at
        young = age <= max(self._plan_seconds, slots.plan_seconds / _PLANNING_PART)
        return answers and young and self._now() < slots.again_at

    def _will_be_woken(self, slots: PlanSlots, snapshot: Snapshot) -> bool:
        """Say whether an old plan's no does no harm: plans take long, and a binding that is under way wakes all."""
        slow = slots.plan_seconds > _PLANNING_PART * self._plan_seconds
        age = self._clock() - slots.planned_at
        return slow and snapshot.flights > 0 and age <= slots.plan_seconds / _PLANNING_PART

    def _current(self, slots: PlanSlots | None, snapshot: Snapshot, task_class: TaskClass) -> PlanSlots:
        """Return the slots of a plan that knows all that we know: the last one, where nothing has changed since."""
        key = (snapshot.version, self._backlog.changes, self._backlog.nodes_version)
        if slots is not None and slots.key == key and self._is_young(slots, snapshot, task_class):
            return slots
        begun = self._clock()
        # 1. Forget pods that are gone, and leave out classes whose turns nobody uses, but not the one that asks.
        self._forget_early()
        self._backlog.set_in_progress(self._ledger.in_flight(self._flight_time()))
        self._unused.note(self._turns, self._asking)
        without = set(self._unused.out(self._asking)) - {task_class.name}
        # 2. Plan over all that waits.
        plan_input = self._input_builder.build(snapshot.layout, self._now(), without)
        waiting = plan_input.waiting
        plan = self._planner.plan(snapshot, waiting, self._now(), most=self._most) if plan_input.classes else None
        # 3. Keep the slots of pods without a gate, and note which classes have turns.
        by_class = self._by_class(plan_input, plan)
        self._keep_ungated(by_class)
        self._forget_passed()
        # 4. Plan more pods next time where this was fast, fewer where it was slow.
        seconds = self._clock() - begun
        self._pace(seconds, len(plan.assignments) if plan is not None else 0)
        self._planned(seconds)
        return PlanSlots(
            key=key,
            layout=snapshot.layout,
            planned_at=begun,
            plan_seconds=seconds,
            by_class=by_class,
            waiting_gangs=_waiting_gangs(plan_input, by_class),
            without=without,
            waiting_near=_waiting_near(plan_input, plan) if plan is not None else (),
            again_at=plan.again_at if plan is not None else math.inf,
        )

    def _pace(self, seconds: float, planned: int) -> None:
        if seconds > _LONGEST_PLAN_SECONDS:
            self._most = max(self._most // 2, _MOST_AT_LEAST)
        elif planned >= self._most and seconds < _LONGEST_PLAN_SECONDS / 4:
            self._most *= 2

    def _by_class(self, plan_input: PlanInput, plan: Plan | None) -> dict[TaskClass, list[PlanSlot]]:
        """Return all slots of a plan, in its order, by class."""
        by_class: dict[TaskClass, list[PlanSlot]] = {}
        if plan is not None:
            nodes = plan.assignments.node.tolist()
            for (row, pod), node, terms in zip(pods_of(plan_input, plan), nodes, plan.terms, strict=True):
                uid = pod.uid if pod is not None else None
                slot = PlanSlot(node, uid, terms.level if plan_input.chooses(row) else -1, terms.passed_over)
                by_class.setdefault(plan_input.classes[row], []).append(slot)
        return by_class

    def _keep_ungated(self, by_class: dict[TaskClass, list[PlanSlot]]) -> None:
        """Keep only the slots of pods without a gate: of each class they go first, gated pods get the rest.

        kube-scheduler never asks about gated pods; their turns count as unused until the release loop releases them.
        """
        with self._backlog.lock:
            turns: dict[str, bool] = {}
            for task_class, slots in by_class.items():
                ungated = task_class.pods[PodPhase.UNGATED]
                slots[:] = [slot for slot in slots if slot.uid is None or slot.uid in ungated]
                del slots[self._backlog.waiting(task_class, PodPhase.UNGATED) :]
                turns[task_class.name] = not slots or not all(pod.unschedulable for pod in ungated.values())
                if not slots and task_class.released_at > self._released_at.get(task_class, 0.0):
                    self._unused.use(task_class.name)
            self._released_at = {task_class: task_class.released_at for task_class in by_class}
        self._turns = turns
        self._unused.note(turns, self._asking)

    def _forget_passed(self) -> None:
        """Forget what is known of pods that have a node by now or are gone, and of jobs that are gone."""
        self._passed = {uid for uid in self._passed if self._waits(uid)}
        self._node_sample.forget_but(self._waits, self._backlog.jobs.keys())

    def _waits(self, uid: str) -> bool:
        """Say whether a pod without a gate is there and has no node yet."""
        position = self._backlog.find(uid)
        return position is not None and position[1] is PodPhase.UNGATED

    def _forget_early(self) -> None:
        """Forget pods that kube-scheduler named and our watch never showed: they were deleted before."""
        if not self._early:
            return
        shown = self._ledger.snapshot_with(self._early, self._flight_time())[1]
        for uid, since in [*self._early.items()]:
            if uid in shown:
                del self._early[uid]
            elif self._clock() - since > _EARLY_SECONDS:
                del self._early[uid]
                self._backlog.apply(PodGone(uid), self._now())


def _waiting_near(plan_input: PlanInput, plan: Plan) -> Collection[TaskClass]:
    """Return the classes of which a plan leaves pods whose jobs were passed over, whether or not it places others."""
    classes = plan_input.classes
    left = plan_input.waiting.count - np.bincount(plan.assignments.task_class, minlength=len(classes))
    passed_over = {name for name, wait in plan.carried.locality.items() if wait.counts > 0}
    names = plan_input.waiting.waits_as or []
    return {
        task_class
        for row, task_class in enumerate(classes)
        if left[row] > 0 and names[row] in passed_over and plan_input.chooses(row)
    }


def _waiting_gangs(plan_input: PlanInput, by_class: Mapping[TaskClass, list[PlanSlot]]) -> Collection[TaskClass]:
    """Return the classes of gangs that cannot start whole: not all there, or not placed."""
    gang = plan_input.waiting.gang
    gangs = [] if gang is None else zip(plan_input.classes, gang.tolist(), strict=True)
    unplaced = (task_class for task_class, row in gangs if row >= 0 and task_class not in by_class)
    return {*plan_input.short, *unplaced}
