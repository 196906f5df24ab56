"""The order at one moment, by one whole plan. Events, metrics and the user's commands are all made of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog
from extender.control.plan_input.builder import PlanInput, PlanInputBuilder
from extender.control.release.planned import regular_only
from extender.control.release.refusals import refused_classes
from extender.explain.wait_reasons import Reason, places_in_plan, reasons
from extender.planner import Carried, Plan, Planner


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """One plan, and what it was made of.

    `plan` places as many pods as fit, whatever the pace of releases, but none that never is regular. `why` says by UID
    why held pods wait: those that the plan does not place, and those that it places but that are not to be released
    yet. `carried` is what the plan was given of earlier ones.
    """

    backlog: Backlog
    input_builder: PlanInputBuilder
    snapshot: Snapshot
    plan_input: PlanInput
    plan: Plan
    now: float
    carried: Carried
    why: Mapping[str, Reason]

    def places(self, pod: Pod) -> tuple[int, str] | None:
        """Return the place of a held pod in the plan, 0 the first, and the node that it is to go to; None for none."""
        for places in places_in_plan(self.backlog, self.plan_input, self.plan).values():
            if pod.uid in places:
                place = places[pod.uid]
                return place, self.snapshot.layout.names[int(self.plan.assignments.node[place])]
        return None


def planned_order(
    backlog: Backlog, input_builder: PlanInputBuilder, planner: Planner, snapshot: Snapshot, now: float
) -> PlannedOrder:
    """Plan once over all that waits at `now`, in seconds since the epoch; the `planner` must be one that explains."""
    carried = planner.carried
    with backlog.lock:
        plan_input = input_builder.build(snapshot, now, refused=refused_classes(backlog))
    plan = planner.plan(snapshot, regular_only(plan_input), now)
    why = reasons(backlog, input_builder, snapshot, plan_input, plan)
    return PlannedOrder(backlog, input_builder, snapshot, plan_input, plan, now, carried, why)
