"""Which pods of a plan are released: gated ones, as many as there are slots, after those without a gate of their class.

Pods without a gate take part in the same plan. kube-scheduler asks about them and `filter_order` answers, so a turn of
theirs is a turn of its class that no gated pod may take.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Counts
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import ONLY
from extender.cluster.waiting import Waiting
from extender.control.backlog.backlog import PodPhase, TaskClass
from extender.control.cluster_view import ClusterView
from extender.control.plan_input.builder import PlanInput, pods_of
from extender.control.pod_shapes import Shape, shape_of
from extender.control.release.refusals import ShapeRefusals
from extender.control.release.sending import NOMINATED, Release
from extender.planner import Plan

_TURN_SECONDS = 5.0
"""A pod that was refused before is nominated for so long: kube-scheduler may refuse it again, and say nothing."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, with what it was made of.

    Of refused shapes so many pods may go as there are `trials_left`, and none of the queues that are `crowding`.
    """

    plan_input: PlanInput
    plan: Plan
    snapshot: Snapshot
    trials_left: dict[Shape, int] = field(default_factory=dict)
    crowding: Collection[str] = ()

    def may_go(self, pod: Pod) -> bool:
        """Say whether one more pod of this shape may go."""
        if pod.identity.queue in self.crowding:
            return False
        return not self.may_be_refused(pod) or self.trials_left[shape_of(pod)] > 0

    def count_trial(self, pod: Pod) -> None:
        """Count a pod that goes, where its shape is refused."""
        if self.may_be_refused(pod):
            self.trials_left[shape_of(pod)] -= 1

    def may_be_refused(self, pod: Pod) -> bool:
        """Say whether kube-scheduler refuses pods of this shape, as far as is known."""
        return bool(self.trials_left) and shape_of(pod) in self.trials_left

    @property
    def rows(self) -> set[int]:
        """The rows of the plan's input of which it places a pod."""
        return set(self.plan.assignments.task_class.tolist())

    def left(self) -> Counts:
        """Return how many tasks of each row the plan leaves waiting [C]."""
        count = self.plan_input.waiting.count
        left: Counts = np.maximum(count - np.bincount(self.plan.assignments.task_class, minlength=len(count)), 0)
        return left

    def unplaced(self) -> list[TaskClass]:
        """Return the classes with pods to release of which the plan places none.

        But not those of a gang, and none that never is regular: without a node of ours it would have any node.
        """
        classes = self.plan_input.classes
        placed = {classes[row] for row in self.rows}
        alone = dict.fromkeys(task_class for row, task_class in enumerate(classes) if self.gang_of(row) < 0)
        return [
            task_class
            for task_class in alone
            if task_class not in placed and task_class.pods[PodPhase.READY] and task_class.template.choice != ONLY
        ]

    def gang_of(self, row: int) -> int:
        """Return the gang of a row; -1 for none."""
        gang = self.plan_input.waiting.gang
        return -1 if gang is None else int(gang[row])

    def choosing(self) -> set[TaskClass]:
        """Return the classes that the plan places and to which it makes a difference where they start."""
        return {self.plan_input.classes[row] for row in self.rows if self.plan_input.chooses(row)}


@dataclass(frozen=True, slots=True)
class UngatedTurns:
    """The turns of pods without a gate: how many by class, and of classes whose pods have inputs, which pods by UID.

    To classes that are `choosing` it makes a difference where they start.
    """

    counts: Mapping[TaskClass, int] = field(default_factory=dict)
    uids: Collection[str] = ()
    choosing: Collection[TaskClass] = ()


def regular_only(plan_input: PlanInput) -> Waiting:
    """Return what waits, without the classes that never are regular."""
    waiting = plan_input.waiting
    only = np.array([task_class.template.choice == ONLY for task_class in plan_input.classes], dtype=np.bool_)
    return replace(waiting, count=np.where(only, 0, waiting.count)) if only.any() else waiting


class PlannedReleases:
    """Takes pods of a plan from the backlog. One thread."""

    def __init__(self, cluster: ClusterView, refusals: ShapeRefusals) -> None:
        self._cluster, self._backlog, self._refusals = cluster, cluster.backlog, refusals

    def ungated_turns(self, planned: Planned) -> UngatedTurns:
        """Return the turns of pods without a gate: of each class they go before those with one."""
        classes = planned.plan_input.classes
        turns = [(classes[row], pod) for row, pod in pods_of(planned.plan_input, planned.plan)]
        of_class = Counter(task_class for task_class, pod in turns if pod is None)
        counts = {
            task_class: min(count, self._backlog.waiting(task_class, PodPhase.UNGATED))
            for task_class, count in of_class.items()
        }
        named = [(task_class, pod.uid) for task_class, pod in turns if pod is not None and not pod.held]
        counts.update(Counter(task_class for task_class, _ in named))
        return UngatedTurns(
            {task_class: count for task_class, count in counts.items() if count},
            {uid for _, uid in named},
            planned.choosing(),
        )

    def take(self, planned: Planned, slots: int, now: float, *, ungated: UngatedTurns) -> list[Release]:
        """Claim the first gated pods of a plan, and return their releases. A gang is whole, and takes one slot.

        Pods without a gate go before those with one of their class: those that kube-scheduler refused in their turn
        are nominated anew, all others go by themselves, as filter keeps their order.
        """
        ungated_left = dict(ungated.counts)
        missed_turns = self._missed_turns() if self._backlog.by_filter else {}
        gangs_begun: set[int] = set()
        releases: list[Release] = []
        for place, (row, named_pod) in enumerate(pods_of(planned.plan_input, planned.plan)):
            # Holds at each turn: `slots` are left, and of a gang in `gangs_begun` all that the plan places will go.
            task_class = planned.plan_input.classes[row]
            # 1. A turn of a pod without a gate: where filter keeps the order only those go that were refused in one.
            if named_pod is not None:
                is_ungated = not named_pod.held
            else:
                is_ungated = ungated_left.get(task_class, 0) > 0
                ungated_left[task_class] = ungated_left.get(task_class, 0) - is_ungated
            if is_ungated and self._backlog.by_filter:
                missed = missed_turns.get(task_class, [])
                named_pod = next((pod for pod in missed if named_pod in (None, pod)), None)
                if named_pod is None:
                    continue
                missed.remove(named_pod)
            # 2. A pod alone, or the first of its gang, takes a slot. The others of the gang follow it.
            gang = planned.gang_of(row)
            if gang not in gangs_begun:
                if slots <= 0 or not (is_ungated or planned.may_go(task_class.template)):
                    continue
                slots -= 1
                if not is_ungated:
                    planned.count_trial(task_class.template)
                if gang >= 0:
                    gangs_begun.add(gang)
            # 3. Claim the pod, unless it is gone meanwhile.
            uid = named_pod.uid if named_pod is not None else None
            phase = PodPhase.UNGATED if is_ungated else PodPhase.READY
            seconds = _TURN_SECONDS if is_ungated else self._cluster.assume_seconds
            pod = self._backlog.take(task_class, now, now + seconds, uid, phase=phase)
            if pod is not None:
                if pod.held:
                    self._refusals.note_release(pod)
                releases.append(self._release(pod, planned, place))
        return releases

    def _missed_turns(self) -> dict[TaskClass, list[Pod]]:
        """Return the pods by class that were refused in their turn and do not rest, the oldest first."""
        backlog = self._backlog
        by_class: dict[TaskClass, list[Pod]] = {}
        with backlog.lock:
            for pod in sorted(backlog.missed_turns(), key=lambda pod: (pod.created, pod.uid)):
                position = backlog.find(pod.uid)
                if position is not None and not backlog.writes.busy(pod.uid):
                    by_class.setdefault(position[0], []).append(pod)
        return by_class

    def _release(self, pod: Pod, planned: Planned, place: int) -> Release:
        """Return the release of a pod to the node of one place in the plan's assignments."""
        assignments, terms = planned.plan.assignments, planned.plan.terms[place]
        row, node = int(assignments.task_class[place]), planned.snapshot.layout.names[int(assignments.node[place])]
        preferred_nodes = self._cluster.input_builder.preferred_nodes
        level_name = preferred_nodes.level_name(terms.level) if planned.plan_input.chooses(row) else ""
        return Release(pod, node, NOMINATED, terms.score, level_name, terms.passed_over)
