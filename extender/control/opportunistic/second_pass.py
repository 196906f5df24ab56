"""The second pass of a step: what the regular plan leaves goes on idle room, as opportunistic pods (UBIS, IV.B).

Off where nothing is measured: without use there is no idle room.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import NEVER
from extender.cluster.stays_off import StaysOff
from extender.cluster.usage import Usage
from extender.cluster.waiting import Jobs
from extender.control.backlog.backlog import PodPhase, TaskClass
from extender.control.backlog.task_classes import name_of
from extender.control.cluster_view import ClusterView
from extender.control.idle_room.learned_use import LearnedUse
from extender.control.idle_room.measured_use import MeasuredRows
from extender.control.idle_room.predicted import PredictedPeaks
from extender.control.idle_room.room import Thresholds, idle_room, unmeasured
from extender.control.idle_room.starting import starting
from extender.control.opportunistic.left_over import LeftOver, left_over
from extender.control.opportunistic.promises import PromiseCheck, Promises
from extender.control.preemption.eviction_history import EvictionHistory
from extender.control.release.planned import Planned
from extender.control.release.sending import OPPORTUNISTIC, Release
from extender.planner import Policy
from extender.planner.caps import Caps
from extender.planner.opportunistic import second_pass, second_planner
from extender.planner.plan import Taken

_REFUSED_SECONDS = 300.0
"""A class of which a pod could not be made opportunistic stays regular for so long."""

_KEPT_SECONDS = 60.0
"""After so long the history of evictions is rid of classes that have ended."""


@dataclass(frozen=True, slots=True)
class OpportunisticLimits:
    """T_alloc, and how much a queue and a job may have in all.

    `peaks` gives the predicted peaks that are good now, None where there are none.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    caps: Caps = field(default_factory=Caps)
    peaks: Callable[[], PredictedPeaks | None] = lambda: None


class SecondPass:
    """Plans what is left over on idle room. One thread, that of the release loop; any may call `note_refused`.

    `left_over` is what the last pass left, None before the first; it is replaced as a whole, and any thread may read
    it.
    """

    def __init__(
        self,
        cluster: ClusterView,
        policy: Policy,
        usage: Callable[[], Usage],
        terms: OpportunisticLimits,
        stays_off: StaysOff,
        history: EvictionHistory | None = None,
    ) -> None:
        """Take what was measured last (`usage`), and what is known of evictions."""
        self._history = EvictionHistory() if history is None else history
        self._kept_at = -np.inf
        self._unseen: dict[str, tuple[str, Pod]] = {}
        self.left_over: LeftOver | None = None
        self._rests_until: dict[str, float] = {}
        self._refused: deque[Pod] = deque()
        self._cluster, self._usage, self._terms, self._stays_off = cluster, usage, terms, stays_off
        self._measured = MeasuredRows()
        self._planner, self._promised = second_planner(policy), PromiseCheck(self.room)
        self._learned = LearnedUse(cluster.backlog)

    def take(self, planned: Planned, slots: int, now: float) -> list[Release]:
        """Claim pods that the regular plan left waiting and idle room holds; return their releases, at most `slots`."""
        # 1. How much room there is, as far as it was measured.
        if slots <= 0:
            return []
        waiting, layout, snapshot = planned.plan_input.waiting, planned.snapshot.layout, _as_planned(planned)
        room = self.room(snapshot)
        unknown = unmeasured(self._measured.of(layout, self._usage()), layout)
        # 2. Who is left, and may be opportunistic where.
        count_left = planned.left()
        may = self._may(planned, now)
        waiting = replace(waiting, count=count_left)
        self.left_over = left_over(waiting, Taken().assignments(), may, layout, room, now, unmeasured=unknown)
        if room is None or not (may & (count_left > 0)).any():
            return []
        barred = self._stays_off.barred(waiting.names, snapshot.layout.names, now)
        if waiting.barred is not None:
            barred |= waiting.barred
        waiting = replace(waiting, barred=barred if barred.any() else None)
        # 3. Plan once more, and take the pods.
        evicted = self._history.evicted(waiting.names)
        waiting = replace(waiting, jobs=self._with_unseen(waiting.jobs, layout))
        caps = self._terms.caps
        plan = second_pass(self._planner, snapshot, room, waiting, now, may=may, evicted=evicted, caps=caps, most=slots)
        assignments = plan.assignments
        self.left_over = left_over(waiting, assignments, may, layout, room, now, unmeasured=unknown)
        releases: list[Release] = []
        for row, node in zip(assignments.task_class.tolist(), assignments.node.tolist(), strict=True):
            if len(releases) >= slots:
                break
            task_class = planned.plan_input.classes[row]
            if not planned.may_go(task_class.template):
                continue
            planned.count_trial(task_class.template)
            pod = self._claim(task_class, layout.names[node], now)
            if pod is not None:
                self._history.note_start(task_class.name)
                self._unseen[pod.uid] = (waiting.jobs.names[waiting.job[row]], pod)
                releases.append(Release(pod, layout.names[node], OPPORTUNISTIC))
        self._forget_ended(now)
        return releases

    def room(self, snapshot: Snapshot) -> Floats | None:
        """Return what opportunistic pods may take of each node [N, R]; None where nothing is measured."""
        layout, usage = snapshot.layout, self._usage()
        measured = self._measured.of(layout, usage)
        self._learned.take(usage)
        if np.isnan(measured.at).all():
            return None
        thresholds, peaks = self._terms.thresholds, self._terms.peaks()
        if peaks is not None:
            measured, thresholds = peaks.with_young(measured), replace(thresholds, peaks=peaks.on(layout))
        young = starting(self._cluster.backlog, layout, measured, usage, self._learned.expected)
        return idle_room(snapshot, measured, usage, thresholds, young, self._learned.expected)

    def usual(self, pods: Sequence[Pod], unknown: Floats) -> Floats:
        """Return what the classes of pods [P] use in the mean [P, R]; `unknown` [P, R] where that is not known.

        Where nobody waits no room is asked for: so what was measured last is learned here too.
        """
        self._learned.take(self._usage())
        return self._learned.expected(pods, unknown)

    def promises(self, pods: Sequence[Pod], snapshot: Snapshot, now: float) -> Promises:
        """Return what became of the room that was promised to these opportunistic pods."""
        return self._promised.look(pods, snapshot, now)

    def _with_unseen(self, jobs: Jobs, layout: Layout) -> Jobs:
        """Return what jobs have, with those pods that are being made opportunistic and do not show as such yet."""
        backlog, flights = self._cluster.backlog, self._cluster.flights()
        for uid in list(self._unseen):
            pod = backlog.pod(uid)
            if pod is None or pod.opportunistic or not (uid in flights or backlog.writes.busy(uid)):
                del self._unseen[uid]
        if not self._unseen:
            return jobs
        taken = np.zeros_like(jobs.allocated) if jobs.opportunistic is None else jobs.opportunistic.copy()
        rows = {name: row for row, name in enumerate(jobs.names)}
        for name, pod in self._unseen.values():
            if name in rows:
                taken[rows[name]] += layout.vector(pod.demand) - layout.vector(replace(pod, opportunistic=True).counted)
        return replace(jobs, opportunistic=taken)

    def _forget_ended(self, now: float) -> None:
        """Forget the evictions of classes of which no pod is there any more, now and then."""
        if not 0 <= now - self._kept_at < _KEPT_SECONDS:
            backlog, self._kept_at = self._cluster.backlog, now
            with backlog.lock:
                self._history.keep({task_class.name for task_class in backlog.classes()})

    def note_refused(self, pod: Pod) -> None:
        """Leave a pod's class regular for a while: the pod could not be made opportunistic."""
        self._refused.append(pod)

    def _take_refusals(self, now: float) -> None:
        while self._refused:
            self._rests_until[name_of(self._refused.popleft())] = now + _REFUSED_SECONDS
        self._rests_until = {name: until for name, until in self._rests_until.items() if now < until}

    def _may(self, planned: Planned, now: float) -> Mask:
        """Return which rows may be opportunistic [C]: not those whose pods have inputs of their own."""
        self._take_refusals(now)
        return np.array(
            [
                planned.plan_input.pods[row] is None
                and task_class.template.may_run != NEVER
                and task_class.name not in self._rests_until
                for row, task_class in enumerate(planned.plan_input.classes)
            ],
            dtype=np.bool_,
        )

    def _claim(self, task_class: TaskClass, node: str, now: float) -> Pod | None:
        """Claim a pod of a class for a node; None where there is none left that nobody else has nominated elsewhere."""
        backlog, until = self._cluster.backlog, now + self._cluster.assume_seconds
        with backlog.lock:
            ready, writes = task_class.pods[PodPhase.READY].items(), backlog.writes
            candidates = (pod for uid, pod in ready if pod.nominated in (None, node) and not writes.busy(uid))
            pod = next(candidates, None)
            return pod and backlog.take(task_class, now, until, pod.uid, to_try=not pod.opportunistic)


def _as_planned(planned: Planned) -> Snapshot:
    """Return the cluster as if what the regular plan places were in flight: it is about to be."""
    snapshot, classes, assignments = planned.snapshot, planned.plan_input.classes, planned.plan.assignments
    if not len(assignments):
        return snapshot
    layout, in_flight = snapshot.layout, snapshot.in_flight.copy()
    demand = layout.vectors(classes[row].template.demand for row in assignments.task_class.tolist())
    np.add.at(in_flight, assignments.node, demand)
    return replace(snapshot, in_flight=in_flight)
