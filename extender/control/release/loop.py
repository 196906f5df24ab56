"""The release loop: plans over all that waits, releases the pods whose turn it is, and tidies up what was left behind.

Every step starts from what the watches show, so it makes no difference where the last step ended, in this process or in
its predecessor: before a nomination, between nomination and release, or after both. What was written and does not show
yet is in flight (`ClusterView.flights`) and claimed (`backlog.writes.in_progress`).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.pods.opportunistic import ONLY
from extender.cluster.waiting import Waiting
from extender.control.backlog.backlog import PodPhase, TaskClass
from extender.control.cluster_view import ClusterView
from extender.control.filter_order.calm import calm_demand
from extender.control.filter_order.waking import Waker
from extender.control.holding.room_wanted import RoomWanted
from extender.control.plan_input.builder import PlanInput, note_gang_turns
from extender.control.pod_shapes import Shape, shape_of
from extender.control.preemption.regular_first import RegularFirst
from extender.control.queues.passed_over import PassedOver, PassedOverNow, passed_over_in
from extender.control.release.planned import Planned, PlannedReleases, UngatedTurns, regular_only
from extender.control.release.recover import LeftBehind, PromisesIdleRoom
from extender.control.release.refusals import ShapeRefusals
from extender.control.release.room_for_all import RoomForAll
from extender.control.release.sending import PREEMPTING, SCALE_UP, Release, Sender
from extender.control.release.slots import SLOTS_PART, Pace, Slots
from extender.control.release.unanswered import Unanswered
from extender.control.release.without_node import WithoutNode
from extender.planner import Planner

_PLAN_ANYWAY_SECONDS = 0.2
"""With fewer than a quarter of its slots free, the loop waits for so long until it plans again."""

_LANDING_LOOK_SECONDS = 0.2
"""While pods that were released without a node are on their way, the loop looks so often whether it may plan."""


class PlacesOnIdleRoom(PromisesIdleRoom, Protocol):
    """What starts pods on what others have reserved and do not use."""

    def take(self, planned: Planned, slots: int, now: float) -> list[Release]:
        """Claim pods that a plan left waiting; return their releases, at most so many."""


class Promotes(Protocol):
    """What makes opportunistic pods regular where there is room by now."""

    def step(self, snapshot: Snapshot, plan_input: PlanInput | None, now: float) -> Snapshot:
        """Begin what is due; return the cluster with that room taken."""


class Releaser:
    """The release loop. One thread calls it; the writes that it sends run in others.

    After a step, `unbound` is how many pods are on their way: released, or being so, and neither bound nor refused.
    `again_at` is when to plan again even if nothing has happened, as a wait for locality ends. `kept_idle` is the part
    of the cluster that had room and was reserved in the last plan.
    """

    def __init__(
        self,
        cluster: ClusterView,
        planner: Planner,
        sender: Sender,
        pace: Pace,
        waker: Waker | None = None,
        *,
        room_for_all: RoomForAll | None = None,
        idle: PlacesOnIdleRoom | None = None,
        promoter: Promotes | None = None,
        regular_first: RegularFirst | None = None,
        room_wanted: RoomWanted | None = None,
    ) -> None:
        """Take who wakes pods without a gate, starts pods on idle room, and makes these regular.

        Pods without a gate wait with `order: auto` and `filter`. Who surely finds room goes by `room_for_all`, where
        `filter` chooses the nodes. Those who keep regular pods out are asked to go by `regular_first`. `room_wanted`
        hears of each plan.
        """
        self.cluster, self.planner, self.pace, self.waker = cluster, planner, pace, waker
        self.input_builder, self._idle, self._promoter = cluster.input_builder, idle, promoter
        self._regular_first, self._room_wanted, self._room_for_all = regular_first, room_wanted, room_for_all
        self.passed_over = PassedOver()
        self.kept_idle, self.again_at, self.unbound = 0.0, math.inf, 0
        self._backlog, self._sender = cluster.backlog, sender
        self._refusals = ShapeRefusals(cluster.backlog)
        self._planned_releases = PlannedReleases(cluster, self._refusals)
        self._without_node = WithoutNode(cluster.ledger, cluster.backlog, cluster.input_builder)
        self._changed_version, self._changed_at = -1, 0.0
        self._planned_at = 0.0
        self._unanswered = Unanswered(cluster.backlog)
        self._left_behind = LeftBehind(cluster, sender, self._unanswered, idle)
        self._slots = Slots(cluster, self._unanswered)

    def step(self, now: float) -> int:
        """Do what is due at `now`, in seconds since the epoch; return how many pods were sent on their way."""
        # 1. Only the leader writes.
        if not self.cluster.leads():
            return 0
        # 2. Forget what is over: claims whose write never showed, flights of pods that are idle again.
        self._forget_what_is_over(now)
        self._unanswered.look(now)
        self.cluster.passed_by.clear()
        self.cluster.passed_by.update(pod.uid for pod in self._unanswered.passed_by)
        flights, snapshot = self.cluster.flights(), self.cluster.snapshot()
        # 3. Complete or clear what a predecessor, or a failed write, left behind.
        left_behind = self._left_behind.tidy_up(snapshot, flights, now)
        self._sender.send(left_behind, now)
        # 4. Count how many more pods may be on their way. A plan costs the same for few as for many.
        on_their_way = self._slots.on_their_way(flights)
        self.unbound = len(on_their_way)
        slots = self._slots.free(on_their_way, self.pace.unbound_pods, now)
        if slots <= 0:
            # Nothing is planned before a slot is free, which wakes us, or nothing was heard of anybody for long.
            self.again_at = self._unanswered.again_at(on_their_way, now)
            return len(left_behind)
        if not self._is_time_to_plan(slots, now):
            return len(left_behind)
        # 5. Plan over all that waits, and release as many as there are slots.
        self._planned_at, self.again_at = now, math.inf
        releases = self._by_plan(snapshot, slots, now)
        self._unanswered.note(releases, now)
        self._sender.send(releases, now)
        return len(left_behind) + len(releases)

    def rest(self, now: float) -> None:
        """Do nothing at `now`: we do not lead, or do not see the cluster. Nobody is passed over in that time."""
        self.planner.rest(now)
        self.passed_over.note(PassedOverNow(), now)

    # -- before the plan

    def _forget_what_is_over(self, now: float) -> None:
        if not self.cluster.expire_writes(now):
            return  # whoever looks idle may have gone: its room is not given to others
        for uid in self.cluster.flights() - self.cluster.awaiting_evictions:
            if self._backlog.is_idle(uid):
                self.cluster.ledger.forget(uid)

    def _is_time_to_plan(self, slots: int, now: float) -> bool:
        """Say whether enough slots are free for a plan, or the last one was long enough ago."""
        seconds = now - self._planned_at
        return slots * SLOTS_PART >= self.pace.unbound_pods or not 0 <= seconds < _PLAN_ANYWAY_SECONDS

    # -- the plan

    def _by_plan(self, snapshot: Snapshot, slots: int, now: float) -> list[Release]:
        """Return the releases that follow from a plan, at most one for each slot (a gang takes one)."""
        # 1. See which shapes kube-scheduler refuses: of them only a few may try.
        passed_by = self._unanswered.passed_by
        trials_left = self._refusals.trials_left(now, passed_by)
        refused = self._refused(trials_left, {*self._unanswered.classes_of(passed_by)})
        # 2. Where all surely find room there is nothing to plan.
        unplanned = self._unplanned(snapshot, trials_left, refused, slots, now)
        if unplanned is not None:
            return unplanned
        # 3. Leave out whose turns nobody comes for. Plan over all others that wait, once opportunistic pods have what
        #    room they may become regular by.
        unused = self.waker.left_out(now) if self.waker is not None else ()
        without = {*unused, *(task_class.name for task_class in self._slots.in_doubt)}
        plan_input = self.input_builder.build(snapshot, now, without, frozenset(refused))
        if self._promoter is not None:
            snapshot = self._promoter.step(snapshot, plan_input, now)
        if not plan_input.classes:
            return self._by_no_plan(snapshot, refused, slots, now)
        waiting = regular_only(plan_input)
        plan = self.planner.plan(snapshot, waiting, now, most=None if self._slots.crowding else slots)
        note_gang_turns(self._backlog, plan_input, plan)
        planned = Planned(plan_input, plan, snapshot, dict(trials_left), self._slots.crowding)
        is_whole = len(plan.assignments) < slots
        # 4. Note who was passed over, what is kept idle, when to plan again, and whether somebody waits for room.
        self._note_plan(planned, waiting, now, is_whole=is_whole)
        # 5. Release the gated pods of the plan; wake those without a gate, or nominate them anew.
        ungated = self._planned_releases.ungated_turns(planned)
        releases = self._planned_releases.take(planned, slots, now, ungated=ungated)
        self._wake(ungated, snapshot, now)
        # 6. See what becomes of those that got no node.
        return releases + self._for_the_left(planned, refused, slots - len(releases), now, is_whole=is_whole)

    def _unplanned(
        self,
        snapshot: Snapshot,
        trials_left: Mapping[Shape, int],
        refused: Sequence[TaskClass],
        slots: int,
        now: float,
    ) -> list[Release] | None:
        """Return the releases where all that wait surely find room; None where a plan has to say who goes.

        Held pods go then, where `filter` chooses the nodes. While such pods are on their way nobody knows what room
        there is, so nothing is planned.
        """
        if self.waker is not None and calm_demand(self._backlog, snapshot) is not None:
            if self._promoter is not None:
                snapshot = self._promoter.step(snapshot, None, now)
            return self._by_no_plan(snapshot, refused, slots, now)
        if self._room_for_all is None:
            return None
        if not (trials_left or self._slots.in_doubt or self._slots.crowding):
            releases = self._room_for_all.take(snapshot, slots, now)
            if releases is not None:
                return releases + self._by_no_plan(snapshot, refused, slots - len(releases), now)
        self._room_for_all.forget_landed(now)
        if self._room_for_all.awaits:
            self.again_at = now + _LANDING_LOOK_SECONDS
            return []
        return None

    def _note_plan(self, planned: Planned, waiting: Waiting, now: float, *, is_whole: bool) -> None:
        """Note what a plan over those that wait shows; who is left waiting shows where it has come to its end."""
        plan = planned.plan
        self.passed_over.note(passed_over_in(waiting, plan, planned.snapshot), now)
        self.kept_idle = plan.kept_idle
        self.again_at = min(plan.again_at, self._refusals.again_at(now))
        if self._room_wanted is not None:
            if is_whole:
                self._room_wanted.note(planned, now)
            else:
                self._room_wanted.note_cut(now)

    def _for_the_left(
        self, planned: Planned, refused: Sequence[TaskClass], slots: int, now: float, *, is_whole: bool
    ) -> list[Release]:
        """Return the releases of pods for which a plan has no regular room."""
        releases: list[Release] = []
        served: Collection[TaskClass] = ()
        # 1. Where the plan has come to its end, start some on idle room; who keeps regular pods out goes.
        if self._idle is not None and is_whole:
            releases += self._idle.take(planned, slots, now)
            for release in releases:
                self._refusals.note_release(release.pod)
        if self._regular_first is not None and is_whole:
            served = self._regular_first.step(planned, now)
        # 2. Release some to no node, so that kube-scheduler preempts or an autoscaler adds nodes.
        left = [task_class for task_class in planned.unplaced() if task_class not in served]
        may = [task_class for task_class in left if task_class.job.queue not in self._slots.crowding]
        for task_class in self._without_node.preempting(planned.snapshot, may):
            releases += self._to_no_node(task_class, PREEMPTING, now)
        wanting = dict.fromkeys((*left, *refused))
        return releases + self._scaling_up(planned.snapshot, wanting, slots - len(releases), now)

    def _by_no_plan(self, snapshot: Snapshot, refused: Sequence[TaskClass], slots: int, now: float) -> list[Release]:
        """Return the releases where nothing may be planned: some may be refused, and nodes be missing for them."""
        self.passed_over.note(PassedOverNow(), now)
        self.kept_idle = 0.0
        if self._room_wanted is not None:
            self._room_wanted.note(None, now)
        self._wake(UngatedTurns(), snapshot, now)
        self.again_at = self._refusals.again_at(now)
        return self._scaling_up(snapshot, refused, slots, now)

    def _refused(self, trials_left: Mapping[Shape, int], passed_by: Collection[TaskClass]) -> list[TaskClass]:
        """Return the classes that wait whose shape is refused, and of which none may try now.

        Those of which pods were `passed_by` try only where no other class of their shape waits: what they lack is
        theirs.
        """
        if not trials_left:
            return []
        waiting = [task_class for task_class in self._backlog.classes() if task_class.pods[PodPhase.READY]]
        shapes = {task_class: shape_of(task_class.template) for task_class in waiting}
        others = {shape for task_class, shape in shapes.items() if task_class not in passed_by}
        return [
            task_class
            for task_class, shape in shapes.items()
            if trials_left.get(shape) == 0 or (task_class in passed_by and shape in others)
        ]

    def _wake(self, ungated: UngatedTurns, snapshot: Snapshot, now: float) -> None:
        if self._changed_version != snapshot.version:
            self._changed_version, self._changed_at = snapshot.version, now
        if self.waker is not None:
            self.waker.step(ungated.counts, now, self._changed_at, ungated.uids, ungated.choosing)

    def _scaling_up(self, snapshot: Snapshot, left: Collection[TaskClass], slots: int, now: float) -> list[Release]:
        """Return releases by which an autoscaler learns that nodes are missing, also for shapes that are refused.

        None of a pod group, which starts whole or not at all.
        """
        if self.pace.scale_up_after <= 0 or self._slots.in_doubt:
            return []
        regular = [
            task_class
            for task_class in left
            if task_class.template.choice != ONLY
            and not task_class.template.identity.group
            and task_class.job.queue not in self._slots.crowding
        ]
        classes = self._without_node.scaling_up(snapshot, regular, now - self.pace.scale_up_after, slots)
        return [release for task_class in classes for release in self._to_no_node(task_class, SCALE_UP, now)]

    def _to_no_node(self, task_class: TaskClass, how: str, now: float) -> Sequence[Release]:
        pod = self._backlog.take(task_class, now, now + self.cluster.assume_seconds)
        return [] if pod is None else [Release(pod, None, how)]
