"""The release loop: plan over all that waits, nominate and release those whose turn it is, tidy up what was left.

Every step starts from what the watches say, so that it does not matter where the last one, of this process or of its
predecessor, ended: between nomination and release, before either, or after both. What was written and is not seen yet
is in flight (`cluster.state`) and claimed (`backlog.writes.claimed`).
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.backlog.pending_writes import LONGEST_CLAIM_SECONDS
from extender.control.backlog.task_classes import waits_as
from extender.control.filter_order.waking import Waker
from extender.control.plan_input.builder import PlanInput, PlanInputBuilder, pods_of
from extender.control.queues.passed_over import PassedOver, PassedOverNow, seen_in
from extender.control.release import without_node
from extender.control.release.recover import unfinished
from extender.control.release.refusals import Refusals, Shape, shape_of
from extender.control.release.sending import (
    COMPLETED,
    NOMINATED,
    PREEMPTING,
    SCALE_UP,
    Listener,
    Release,
    Sender,
    Writer,
)
from extender.planner import Plan, Planner, start, wait_now

_SLOTS_PART, _PLAN_ANYWAY_SECONDS = 4, 0.2
"""While more than three quarters of those who may be on their way are, a plan waits for so long."""

_SILENT_SECONDS = 60.0
"""After so long a released pod loses its room whose scheduler is not ours and has neither bound nor refused it."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`unbound_pods`: how many may be released and not bound yet; `assume_seconds`: how long a write takes to show."""

    unbound_pods: int = 64
    assume_seconds: float = 15.0
    scale_up_after: float = 0.0


@dataclass(slots=True)
class Releaser:
    """`run_soon` runs a write, now or later; `leads` says whether we may still write."""

    ledger: Ledger
    backlog: Backlog
    input_builder: PlanInputBuilder
    planner: Planner
    writer: Writer
    listener: Listener
    pace: Pace
    run_soon: Callable[[Callable[[], None]], object]
    leads: Callable[[], bool]
    flight_time: Callable[[], float]
    kept: set[str] = field(default_factory=set)
    """Pods that a node is kept for until its room is free (reclaim): in flight, but not on their way."""
    passed_over: PassedOver = field(default_factory=PassedOver)
    waker: Waker | None = None
    kept_idle: float = 0.0
    """The part of the cluster that has room, and is reserved, after the last plan."""
    again_at: float = math.inf
    """When to plan again even if nothing has happened: somebody's wait for locality is over."""
    unbound: int = 0
    """How many pods were on their way by the last step: released, or being so, and neither bound nor refused."""
    _sender: Sender = field(init=False)
    _refusals: Refusals = field(init=False)
    _without_node_releases: without_node.WithoutNode = field(init=False)
    _stirred: tuple[int, float] = field(default=(-1, 0.0), init=False)
    _planned_at: float = field(default=0.0, init=False)
    _theirs: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._sender = Sender(
            self.ledger,
            self.backlog,
            self.writer,
            self.listener,
            run_soon=lambda write: self.run_soon(write),
            leads=lambda: self.leads(),
            flight_time=self.flight_time,
        )
        self._without_node_releases = without_node.WithoutNode(self.ledger, self.backlog, self.input_builder)
        self._refusals = Refusals(self.backlog)

    def step(self, now: float) -> int:
        """Do what is due at `now`, in seconds since the epoch; return how many pods were sent on their way."""
        if not self.leads():
            return 0
        self.backlog.writes.expire(now, max(2 * self.pace.assume_seconds, LONGEST_CLAIM_SECONDS))
        for uid in self.ledger.in_flight(self.flight_time()) - self.kept:
            if self.backlog.is_idle(uid):
                self.ledger.forget(uid)
        flights = self.ledger.in_flight(self.flight_time())
        snapshot = self.ledger.snapshot(self.flight_time())
        left_behind = self._tidy_up(snapshot, flights, now)
        for turn in left_behind:
            self._sender.send(turn, now)
        self.unbound = len(self._on_their_way(flights))
        slots = self.pace.unbound_pods - self.unbound
        if slots <= 0 or not self._is_time_to_plan(slots, now):
            return len(left_behind)
        self._planned_at, self.again_at = now, math.inf
        turns = self._by_plan(snapshot, slots, now)
        for turn in turns:
            self._sender.send(turn, now)
        return len(left_behind) + len(turns)

    def _on_their_way(self, flights: set[str]) -> set[str]:
        """Return the pods that were released, or are being so, and are neither bound nor refused.

        However long ago that was: kube-scheduler may not run. Of pods for other schedulers we do not know who does.
        """
        released = {
            pod.uid for pod in self.backlog.at(PodPhase.PENDING) if not pod.unschedulable and self.backlog.is_ours(pod)
        }
        writes = self.backlog.writes
        busy = writes.claimed.keys() | writes.queued.keys()
        return (flights | busy | released) - self.kept - writes.resting.keys()

    def rest(self, now: float) -> None:
        """Do nothing at `now`: we do not lead, or do not see the cluster. That time passes over nobody."""
        self.planner.rest(now)
        self.passed_over.note(PassedOverNow(), now)

    def _is_time_to_plan(self, slots: int, now: float) -> bool:
        """Say whether a plan is worth its cost, which is the same for few as for many."""
        waited = now - self._planned_at
        return slots * _SLOTS_PART >= self.pace.unbound_pods or not 0 <= waited < _PLAN_ANYWAY_SECONDS

    def send(self, pod: Pod, node: str, now: float, level: int | None) -> None:
        """Release a pod that has been claimed to the node that was kept for it.

        `level` is how far from its input that is, None where it is all the same.
        """
        turn = Release(pod, node, NOMINATED)
        if level is not None:
            planner, name = self.planner, waits_as(pod.identity.queue, pod.identity.job)
            waited = wait_now(planner.carried, name, now).seconds
            turn = replace(turn, level=self.input_builder.places.level_name(level), passed_over=waited)
            planner.carried = start(planner.policy, planner.carried, name, level)
        self._sender.send(turn, now)

    def _tidy_up(self, snapshot: Snapshot, flights: set[str], now: float) -> list[Release]:
        """Clear nominations that will not do; return releases that a predecessor, or a failed write, left undone."""
        found = unfinished(self.backlog, snapshot, flights, self._given_up(now))
        for pod in found.to_clear:
            self._sender.clear(pod, now)
        for pod in found.to_complete:
            self.backlog.claim(pod.uid, now + self.pace.assume_seconds)
        return [
            Release(pod, None, COMPLETED, level=self._level(pod, pod.promised, snapshot), passed_over=None)
            for pod in found.to_complete
        ]

    def _given_up(self, now: float) -> list[Pod]:
        """Return the nominated pods that are being deleted, or whose scheduler, not ours, has said nothing for long."""
        nominated = self.ledger.nominated()
        theirs = [pod for pod in nominated if not (pod.gates or pod.leaving or self.backlog.is_ours(pod))]
        self._theirs = {pod.uid: min(self._theirs.get(pod.uid, now), now) for pod in theirs}
        silent = [pod for pod in theirs if now - self._theirs[pod.uid] >= _SILENT_SECONDS]
        return [pod for pod in nominated if pod.leaving] + silent

    def _level(self, pod: Pod, node: str | None, snapshot: Snapshot) -> str:
        """Return how near to its input a pod starts that this plan did not place; empty where that is all the same."""
        row = snapshot.layout.rows.get(node or "")
        return "" if row is None else self.input_builder.places.level_on(pod, snapshot.layout, row)

    # -- the plan

    def _by_plan(self, snapshot: Snapshot, slots: int, now: float) -> list[Release]:
        may_try = self._refusals.look(now)
        refused = self._refused(may_try)
        unused = self.waker.left_out(now) if self.waker is not None else ()
        made = self.input_builder.next(snapshot.layout, now, {*unused, *(it.name for it in refused)})
        if not made.classes:
            self.passed_over.note(PassedOverNow(), now)
            self.kept_idle = 0.0
            self._wake({}, snapshot, now)
            self.again_at = self._refusals.again_at()
            return self._scaling_up(snapshot, refused, slots, now)
        plan = self.planner.plan(snapshot, made.waiting, now, most=slots)
        self.passed_over.note(seen_in(made.waiting, plan.assignments, snapshot), now)
        self.kept_idle = plan.kept_idle
        self.again_at = min(plan.again_at, self._refusals.again_at())
        rows = set(plan.assignments.task_class.tolist())
        asked, named = self._asked(made, plan)
        turns = self._turns(made, plan, snapshot, slots, now, asked, dict(may_try))
        self._wake(asked, snapshot, now, named, {made.classes[row] for row in rows if made.chooses(row)})
        taken = {id(made.classes[row]) for row in rows}
        gang = made.waiting.gang if made.waiting.gang is not None else np.full(len(made.classes), -1)
        without = dict.fromkeys(it for it, row in zip(made.classes, gang.tolist(), strict=True) if row < 0)
        left = [it for it in without if id(it) not in taken and it.pods[PodPhase.READY]]
        for of in self._without_node_releases.preempting(snapshot, left):
            turns += self._without_node(of, PREEMPTING, now)
        return turns + self._scaling_up(snapshot, [*left, *refused], slots - len(turns), now)

    def _refused(self, may_try: Mapping[Shape, int]) -> list[TaskClass]:
        """Return the classes of which none may be released now, as one like them is refused."""
        if all(may_try.values()):
            return []
        waiting = (it for it in self.backlog.classes() if it.pods[PodPhase.READY])
        return [it for it in waiting if may_try.get(shape_of(it.like)) == 0]

    def _scaling_up(self, snapshot: Snapshot, left: Sequence[TaskClass], slots: int, now: float) -> list[Release]:
        """Return releases that make an autoscaler see that nodes are missing, also where one is refused already."""
        if self.pace.scale_up_after <= 0:
            return []
        classes = self._without_node_releases.scaling_up(snapshot, left, now - self.pace.scale_up_after, slots)
        return [turn for it in classes for turn in self._without_node(it, SCALE_UP, now)]

    def _asked(self, made: PlanInput, plan: Plan) -> tuple[dict[TaskClass, int], set[str]]:
        """Return how many pods without a gate have their turn, by class: they go before held ones of it.

        And of classes whose pods have inputs, which ones, by UID.
        """
        if self.waker is None:
            return {}, set()
        turns = [(made.classes[row], pod) for row, pod in pods_of(made, plan)]
        counts = Counter(of for of, pod in turns if pod is None)
        asked = {of: min(count, self.backlog.waiting(of, PodPhase.UNGATED)) for of, count in counts.items()}
        named = [(of, pod.uid) for of, pod in turns if pod is not None and not pod.held]
        asked.update(Counter(of for of, _ in named))
        return {of: count for of, count in asked.items() if count}, {uid for _, uid in named}

    def _wake(
        self,
        asked: Mapping[TaskClass, int],
        snapshot: Snapshot,
        now: float,
        named: Collection[str] = (),
        choosing: Collection[TaskClass] = (),
    ) -> None:
        if self._stirred[0] != snapshot.version:
            self._stirred = (snapshot.version, now)
        if self.waker is not None:
            self.waker.step(asked, now, self._stirred[1], named, choosing)

    def _turns(
        self,
        made: PlanInput,
        plan: Plan,
        snapshot: Snapshot,
        slots: int,
        now: float,
        asked: Mapping[TaskClass, int],
        may_try: dict[Shape, int],
    ) -> list[Release]:
        """Return the first releases of the plan, as many as the pace allows; a gang is whole, and counts as one.

        The first turns of a class are those of its pods that are `asked` about. Of shapes of which one is refused so
        many go as `may_try`.
        """
        passing = dict(asked)
        gang_of = made.waiting.gang
        begun: set[int] = set()
        turns: list[Release] = []
        for place, (row, named) in enumerate(pods_of(made, plan)):
            if named is not None and not named.held:
                continue
            if named is None and passing.get(made.classes[row], 0) > 0:
                passing[made.classes[row]] -= 1
                continue
            gang = int(gang_of[row]) if gang_of is not None else -1
            if gang not in begun:
                if slots <= 0:
                    continue
                if may_try and not self._tries(made.classes[row].like, may_try):
                    continue
                slots -= 1
                if gang >= 0:
                    begun.add(gang)
            of = made.classes[row]
            uid = named.uid if named is not None else None
            pod = self.backlog.take(of, now, now + self.pace.assume_seconds, uid)
            if pod is not None:
                self._refusals.note(pod)
                turns.append(self._to_node(pod, made, plan, place, snapshot))
        return turns

    def _tries(self, like: Pod, may_try: dict[Shape, int]) -> bool:
        """Say whether one more of a pod's shape may go, and count it."""
        shape = shape_of(like)
        left = may_try.get(shape, 1)
        if shape in may_try:
            may_try[shape] = left - 1
        return left > 0

    def _to_node(self, pod: Pod, made: PlanInput, plan: Plan, place: int, snapshot: Snapshot) -> Release:
        row, node = int(plan.assignments.task_class[place]), int(plan.assignments.node[place])
        terms, name = plan.terms[place], snapshot.layout.names[node]
        level = self.input_builder.places.level_name(terms.level) if made.chooses(row) else ""
        return Release(pod, name, NOMINATED, terms.score, level, terms.passed_over)

    def _without_node(self, of: TaskClass, how: str, now: float) -> Sequence[Release]:
        pod = self.backlog.take(of, now, now + self.pace.assume_seconds)
        return [] if pod is None else [Release(pod, None, how)]
