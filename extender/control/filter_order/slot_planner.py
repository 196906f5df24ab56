"""One plan over all that waits, as slots for the pods without a gate."""

from collections.abc import Callable, Collection, Mapping, Set
from typing import NamedTuple

import numpy as np

from extender.arrays import Floats, Mask, fits
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import Amounts
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.task_classes import PodPhase, TaskClass
from extender.control.filter_order.calm import calm_demand, free_in_all
from extender.control.filter_order.plan_slots import SPARE_PART, PlanSlot, PlanSlots, PlanVersion
from extender.control.plan_input.builder import PlanInput, PlanInputBuilder, note_gang_turns, pods_of
from extender.control.release.planned import Planned
from extender.control.release.refusals import refused_classes
from extender.planner import Plan, Planner
from extender.planner.plan import Taken

_LONGEST_PLAN_SECONDS = 0.5
_MOST_AT_FIRST, _MOST_AT_LEAST = 1_000, 50
"""A plan places at most so many pods, as some may wait for it: more where it is fast, fewer where it is slow."""


class SlotPlanner:
    """Plans by what ledger and backlog know; `clock` is monotonic, `now` in seconds since the epoch. One thread."""

    def __init__(
        self,
        ledger: Ledger,
        backlog: Backlog,
        input_builder: PlanInputBuilder,
        planner: Planner,
        *,
        flight_time: Callable[[], float],
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._ledger, self._backlog, self._input_builder, self._planner = ledger, backlog, input_builder, planner
        self._flight_time, self._clock, self._now = flight_time, clock, now
        self._most = _MOST_AT_FIRST
        self._nodes: tuple[Floats, int] | None = None
        self._hopeless: set[TaskClass] = set()

    def key(self) -> PlanVersion:
        """Return the versions of what the next plan is made of."""
        changes, nodes_version = self._backlog.changes, self._backlog.nodes_version
        return self._ledger.snapshot(self._flight_time()).version, changes, nodes_version

    def waiting(self) -> Set[str]:
        """Return the UIDs of the pods that wait for their turn, with our gate or without any, and are not in flight.

        The next plan counts exactly these.
        """
        in_flight = self._ledger.in_flight(self._flight_time())
        with self._backlog.lock:
            self._backlog.set_in_progress(in_flight)
            self._backlog.writes.expire(self._now(), claims=False)
            uids = self._backlog.uids_at(PodPhase.UNGATED) | self._backlog.uids_at(PodPhase.READY)
        return uids - in_flight

    def plan(self, waiting: Set[str], without: Collection[str]) -> PlanSlots:
        """Return the slots of a plan for who is `waiting`, also those with our gate, `without` classes by name."""
        basis, most = self._basis(), self._most
        layout = basis.snapshot.layout
        # 1. Plan over all that waits.
        plan_input = self._input_builder.build(basis.snapshot, self._now(), without, self._refused())
        plan = Plan(Taken().assignments())
        if plan_input.classes:
            plan = self._planner.plan(basis.snapshot, plan_input.waiting, self._now(), most=most)
            note_gang_turns(self._backlog, plan_input, plan)
        # 2. See what it leaves. One that is cut leaves nobody where there surely is room for all the rest.
        by_class, planned = _by_class(plan_input, plan), Planned(plan_input, plan, basis.snapshot)
        demand, left = plan_input.waiting.demand, planned.left()
        spare = free_in_all(basis.snapshot) - demand[plan.assignments.task_class].sum(axis=0)
        is_cut = len(plan.assignments) >= most
        if is_cut and (left @ demand <= SPARE_PART * spare).all():
            spare, left = spare - left @ demand, np.zeros_like(left)
        leaves = {plan_input.classes[row] for row in left.nonzero()[0].tolist()}
        # 3. Plan more pods next time where this was fast, fewer where it was slow.
        seconds = self._clock() - basis.at
        self._pace(seconds, len(plan.assignments))
        return PlanSlots(
            key=basis.key,
            layout=layout,
            planned_at=basis.at,
            plan_seconds=seconds,
            by_class=by_class,
            waiting=waiting,
            without=without,
            leaves=leaves,
            leaves_hopeful=self._hopeful(leaves, basis.snapshot),
            is_cut=is_cut,
            spare=_by_name(spare, layout),
            arrived=basis.arrived,
            waiting_gangs=_waiting_gangs(plan_input, by_class),
            waiting_near=_waiting_near(planned),
            reserved=_reserved(plan, layout),
            again_at=plan.again_at,
        )

    def calm(self, waiting: Set[str]) -> PlanSlots | None:
        """Return no slots, where all pods that are `waiting` surely find room without a plan; else None."""
        basis = self._basis()
        layout = basis.snapshot.layout
        demand = calm_demand(self._backlog, basis.snapshot) if waiting else np.zeros(len(layout.axis))
        if demand is None:
            return None
        spare = _by_name(free_in_all(basis.snapshot) - demand, layout)
        return PlanSlots(basis.key, layout, basis.at, spare=spare, arrived=basis.arrived)

    def _refused(self) -> Set[TaskClass]:
        """Return the classes of which `control` releases no more than a few pods, to try: no room is kept for them.

        But not those that have inputs and pods without a gate: these would have no turn.
        """
        with self._backlog.lock:
            return {
                task_class
                for task_class in refused_classes(self._backlog)
                if not (task_class.template.inputs and task_class.pods[PodPhase.UNGATED])
            }

    def _basis(self) -> "_Basis":
        """Take what is known now. Key and arrivals may say less than a plan knows, never more."""
        at, arrived, key = self._clock(), self._backlog.arrived(), self.key()
        return _Basis(at, arrived, key, self._ledger.snapshot(self._flight_time()))

    def _pace(self, seconds: float, planned: int) -> None:
        if seconds > _LONGEST_PLAN_SECONDS:
            self._most = max(self._most // 2, _MOST_AT_LEAST)
        elif planned >= self._most and seconds < _LONGEST_PLAN_SECONDS / 4:
            self._most *= 2

    def _hopeful(self, classes: Collection[TaskClass], snapshot: Snapshot) -> bool:
        """Say whether one of these classes would fit on some node if that were empty."""
        # 1. What was found holds until a node changes, or what it has for its own pods.
        nodes = (snapshot.empty, self._backlog.nodes_version)
        if self._nodes is None or self._nodes[0] is not nodes[0] or self._nodes[1] != nodes[1]:
            self._nodes, self._hopeless = nodes, set()
        # 2. Ask about classes until one fits; those that do not are not asked about again.
        for task_class in classes:
            if task_class in self._hopeless:
                continue
            demand = snapshot.layout.vector(task_class.template.demand)
            allowed = self._input_builder.allowed_nodes.allowed(task_class.template, snapshot.layout)
            if (allowed & fits(snapshot.empty, demand)).any():
                return True
            self._hopeless.add(task_class)
        self._hopeless.intersection_update(classes)
        return False


class _Basis(NamedTuple):
    """What is known at a time (monotonic)."""

    at: float
    arrived: Amounts
    key: PlanVersion
    snapshot: Snapshot


def _reserved(plan: Plan, layout: Layout) -> Mask | None:
    """Return the nodes on which a plan keeps room [N]; None where it keeps none."""
    names = [name for reservation in plan.carried.reserved.values() for name in reservation.nodes]
    if not names:
        return None
    reserved = np.zeros(len(layout.names), dtype=np.bool_)
    reserved[[layout.rows[name] for name in names]] = True
    return reserved


def _by_name(amounts: Floats, layout: Layout) -> Amounts:
    return dict(zip(layout.axis, amounts.tolist(), strict=True))


def _by_class(plan_input: PlanInput, plan: Plan) -> dict[TaskClass, list[PlanSlot]]:
    """Return all slots of a plan, in its order, by class."""
    by_class: dict[TaskClass, list[PlanSlot]] = {}
    nodes = plan.assignments.node.tolist()
    for (row, pod), node, terms in zip(pods_of(plan_input, plan), nodes, plan.terms, strict=True):
        uid = pod.uid if pod is not None else None
        slot = PlanSlot(node, uid, terms.level if plan_input.chooses(row) else -1, terms.passed_over)
        by_class.setdefault(plan_input.classes[row], []).append(slot)
    return by_class


def _waiting_near(planned: Planned) -> Collection[TaskClass]:
    """Return the classes of which a plan leaves pods whose jobs were passed over, whether or not it places others."""
    plan_input, left = planned.plan_input, planned.left()
    passed_over = {name for name, wait in planned.plan.carried.locality.items() if wait.counts > 0}
    names = plan_input.waiting.waits_as or []
    return {
        task_class
        for row, task_class in enumerate(plan_input.classes)
        if left[row] > 0 and names[row] in passed_over and plan_input.chooses(row)
    }


def _waiting_gangs(plan_input: PlanInput, by_class: Mapping[TaskClass, list[PlanSlot]]) -> Collection[TaskClass]:
    """Return the classes of gangs that cannot start whole: not all there, or not placed."""
    gang = plan_input.waiting.gang
    gangs = [] if gang is None else zip(plan_input.classes, gang.tolist(), strict=True)
    unplaced = (task_class for task_class, row in gangs if row >= 0 and task_class not in by_class)
    return {*plan_input.short, *unplaced}
