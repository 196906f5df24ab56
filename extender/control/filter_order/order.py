"""Whose turn it is, for pods that kube-scheduler asks about: looked up in the last plan over all that waits.

A plan says how many pods of each task class may start, and where; the pods that kube-scheduler asks about first get
these slots. Where the last plan leaves nobody waiting, a pod that it does not know passes as well. A no comes from a
plan that knows all that we know, or where a binding is under way: a pod that is refused sleeps until the next event in
the cluster, so an outdated no may cost it much time.
"""

from collections.abc import Callable
from functools import partial

from extender.arrays import Mask
from extender.cluster.ledger.flights import by_rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.gangs import group_of
from extender.control.backlog.task_classes import PodPhase, TaskClass
from extender.control.filter_order.node_sample import Offer
from extender.control.filter_order.plan_slots import PlanSlot, PlanSlots
from extender.control.filter_order.planning import Planning
from extender.control.filter_order.questions import Questions
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.plan_input.preferred_nodes import PreferredNodes
from extender.verdict import Standing

OTHERS_FIRST = "others go first"
GANG_WAITS = "its gang cannot start as a whole"
LOCALITY_WAITS = "waits for room near its input"

_FAST_PLAN_SECONDS = 0.01
"""A plan that takes less time is always made anew before a pod is refused of whose class it leaves nobody."""

_ANY_TIME = Standing()
"""How a pod stands that may start wherever it fits."""


class FilterOrder:
    """Answers for one pod at a time, in any thread, under the lock of `planning`, which makes the plans.

    `allowed_nodes` and `preferred_nodes` are its own: plans are made meanwhile. `clock` is monotonic. `placed` hears at
    which locality level a pod passed and for how many seconds its job was passed over.
    """

    def __init__(
        self,
        backlog: Backlog,
        questions: Questions,
        planning: Planning,
        allowed_nodes: AllowedNodes,
        preferred_nodes: PreferredNodes,
        *,
        clock: Callable[[], float],
        placed: Callable[[str, float], None],
    ) -> None:
        self._backlog, self._questions, self._planning = backlog, questions, planning
        self._allowed_nodes, self._preferred_nodes = allowed_nodes, preferred_nodes
        self._clock, self._placed = clock, placed

    def standing(self, pod: Pod, snapshot: Snapshot, fits: Mask) -> Standing:
        """Return how a pod stands that fits on these nodes of the snapshot [N], at least one."""
        if not self._backlog.takes_part(pod):
            return _ANY_TIME
        with self._planning.lock:
            # 1. Count the time during which kube-scheduler asks.
            self._questions.pass_time()
            # 2. Find the pod's class. One that has left the queue may start: it is not ours to hold.
            position = self._questions.find(pod)
            if position is None or position[1] is not PodPhase.UNGATED:
                return _ANY_TIME
            task_class = position[0]
            # 3. Note that its class uses its turns, unless the pod has passed before and others refused it.
            self._questions.use_turn(pod, task_class)
            # 4. A gang of which pods are missing cannot start, whatever a plan says.
            if self._lacks_pods(pod):
                return Standing(waits=GANG_WAITS)
            # 5. Look its turn up in the last plan.
            slots = self._planning.last
            standing = self._pass(slots, pod, task_class, snapshot, fits)
            # 6. A no holds where the plan knows all that we know, or an event is sure to come. Else ask for a plan.
            if standing is None and not self._may_refuse(slots, snapshot, task_class):
                slots = self._planning.next(task_class)
                standing = self._pass(slots, pod, task_class, snapshot, fits, is_last_word=True)
            return standing or self._refusal(slots, pod, task_class)

    def _lacks_pods(self, pod: Pod) -> bool:
        with self._backlog.lock:
            return self._backlog.groups.lacks_pods(pod)

    def _pass(
        self,
        slots: PlanSlots | None,
        pod: Pod,
        task_class: TaskClass,
        snapshot: Snapshot,
        fits: Mask,
        *,
        is_last_word: bool = False,
    ) -> Standing | None:
        """Return where a pod may start by a plan; None where it may not, or where the next plan should say."""
        # 1. A plan that leaves nobody waiting is over once more has come than it surely has room for.
        if slots is not None and not is_last_word and slots.is_over(self._backlog.arrived()):
            return None
        # 2. It has a slot. There is none while all find room.
        slot = None
        if slots is not None and slots.by_class:
            slot = self._slot(slots, pod, task_class, snapshot.layout, fits)
        # 3. Or it could not use the turn that it had: it may start wherever no room is kept.
        if slot is None and self._backlog.missed_turn(pod.uid) and self._is_alone(pod, task_class, snapshot.layout):
            slot = _late_slot(slots, snapshot.layout, fits)
        # 4. Or nobody is left waiting, nor will be, and it makes no difference where it starts, or with whom.
        if slot is None and not self._is_free(slots, pod, task_class, snapshot.layout):
            return None
        slot = slot or PlanSlot(-1)
        # 5. Note that it passes.
        if self._questions.note_passed(pod, task_class) and slot.level >= 0:
            self._placed(self._preferred_nodes.level_name(slot.level), slot.passed_over)
        if slot.level >= 0:
            self._questions.node_sample.start(slot, task_class.job)
        node = slots.layout.names[slot.node] if slots is not None and slot.node >= 0 else None
        self._planning.note_passed(pod.uid, task_class, node)
        if slots is None or slot.nodes is None:
            return Standing(node=node) if node is not None else _ANY_TIME
        return Standing(among=by_rows(slot.nodes, slots.layout, snapshot.layout))

    def _slot(self, slots: PlanSlots, pod: Pod, task_class: TaskClass, asked: Layout, fits: Mask) -> PlanSlot | None:
        """Return a pod's slot; where kube-scheduler did not ask about its node, one elsewhere."""
        layout, fits = slots.layout, by_rows(fits, asked, slots.layout)
        levels = partial(self._preferred_nodes.as_planned, pod, layout)

        def elsewhere(slot: PlanSlot) -> PlanSlot | None:
            # 1. Room that the plan keeps for others is closed to it, and so is what came since.
            open_nodes = fits if slots.reserved is None else fits & ~slots.reserved
            if not open_nodes.any():
                return None
            # 2. Of the other nodes any will do, or the nearest.
            usable = self._allowed_nodes.usable(pod, layout)
            turn = self._questions.node_sample.elsewhere(
                slot, Offer(pod.uid, task_class.job, open_nodes, levels(), usable), self._clock()
            )
            if turn is None or turn.nodes is not None or slots.reserved is None:
                return turn
            return turn._replace(nodes=open_nodes)

        return slots.give(pod.uid, task_class, fits, levels, elsewhere)

    def _is_free(self, slots: PlanSlots | None, pod: Pod, task_class: TaskClass, layout: Layout) -> bool:
        """Say whether a pod without a slot may pass: nobody is left waiting, nor would it wait itself."""
        if slots is not None and slots.leaves_hopeful:
            return False
        return self._is_alone(pod, task_class, layout)

    def _is_alone(self, pod: Pod, task_class: TaskClass, layout: Layout) -> bool:
        """Say whether it makes no difference to a pod where it starts, or with whom."""
        return not group_of(task_class) and self._preferred_nodes.as_planned(pod, layout) is None

    def _may_refuse(self, slots: PlanSlots | None, snapshot: Snapshot, task_class: TaskClass) -> bool:
        """Say whether the last plan may refuse a pod: it knows all, or a binding under way will wake everybody.

        By the latter only where it leaves others waiting, and of this class too, unless plans take long.
        """
        if slots is None:
            return False
        if self._planning.knows(
            slots, (snapshot.version, self._backlog.changes, self._backlog.nodes_version), task_class
        ):
            return True
        refused = task_class in slots.leaves and not slots.is_cut
        no_sooner = slots.leaves_hopeful and slots.plan_seconds > _FAST_PLAN_SECONDS
        return (refused or no_sooner) and snapshot.flights > 0 and task_class.name not in slots.without

    def _refusal(self, slots: PlanSlots | None, pod: Pod, task_class: TaskClass) -> Standing:
        if slots is None:
            return Standing(waits=OTHERS_FIRST)
        if task_class in slots.waiting_gangs:
            return Standing(waits=GANG_WAITS)
        near = task_class in slots.waiting_near or slots.waits_nearby(pod.uid, task_class)
        return Standing(waits=LOCALITY_WAITS if near else OTHERS_FIRST)


def _late_slot(slots: PlanSlots | None, asked: Layout, fits: Mask) -> PlanSlot | None:
    """Return a slot on any of the nodes that fit [N] and on which a plan keeps no room; None where there is none."""
    if slots is None or slots.reserved is None:
        return PlanSlot(-1)
    open_nodes = by_rows(fits, asked, slots.layout) & ~slots.reserved
    return PlanSlot(-1, nodes=open_nodes) if open_nodes.any() else None
