"""The place of a pod that waits in the order of all that wait."""

from dataclasses import dataclass, replace

import numpy as np

from extender.cluster.ledger.snapshot import no_nominations
from extender.cluster.pods.opportunistic import ONLY
from extender.control.release.planned import regular_only
from extender.explain.planned_order import PlannedOrder
from extender.explain.pod_in_plan import Case
from extender.explain.wait_reasons import line_of, places_in_plan
from extender.planner import Carried, Plan, Policy, plan_once


@dataclass(frozen=True, slots=True)
class Position:
    """How many pods of the whole order go `before` a pod, and how many of these are of its own queue (`in_queue`).

    `placed`: the plan places it, and says so. Else the order is that of the same plan with all nodes empty, because
    nobody knows where room will come free. Where not even that plan has `reached` it, more pods may go first.
    """

    placed: bool
    before: int
    in_queue: int
    reached: bool = True


def position_of(case: Case, policy: Policy) -> Position | None:
    """Return a waiting pod's place in the order; None where the plan does not know it, or never places it."""
    order, task_class, uid = case.order, case.task_class, case.pod.uid
    reason = order.why.get(uid)
    never = case.pod.choice == ONLY or (reason is not None and reason.kind in ("barred", "too-large"))
    if task_class is None or case.row < 0 or never:
        return None
    if uid not in line_of(order.backlog, task_class):
        return None

    def place_in(plan: Plan) -> int | None:
        return places_in_plan(order.backlog, order.plan_input, plan).get(task_class, {}).get(uid)

    plan = order.plan
    place = place_in(plan)
    placed = place is not None
    if not placed:
        plan = _plan_if_empty(order, policy)
        place = place_in(plan)
    before = plan.assignments.task_class.tolist()[:place]
    in_queue = sum(order.plan_input.classes[row].job.queue == task_class.job.queue for row in before)
    return Position(placed, len(before), in_queue, place is not None)


def _plan_if_empty(order: PlannedOrder, policy: Policy) -> Plan:
    """Return the plan over empty nodes, with the shares that queues and jobs have now."""
    layout = order.snapshot.layout
    nothing = np.zeros(layout.capacity.shape)
    empty = replace(order.snapshot, allocated=nothing, in_flight=nothing, nominations=no_nominations(len(layout.axis)))
    return plan_once(policy, empty, regular_only(order.plan_input), order.now, Carried())
