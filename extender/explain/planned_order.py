"""The order as it is at one moment, by one whole plan: what events, metrics and the user's commands are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog
from extender.control.plan_input.builder import PlanInput, PlanInputBuilder
from extender.control.release.refusals import refused_pods, shape_of
from extender.explain.wait_reasons import Reason, places, reasons
from extender.planner import Carried, Plan, Planner


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """`plan` places as many as fit, whatever the pace; `why` says by UID why held pods wait that it does not place, or
    that are not to be released yet. `carried` is what that plan was handed.
    """  # noqa: D205 - one sentence

    backlog: Backlog
    input_builder: PlanInputBuilder
    snapshot: Snapshot
    made: PlanInput
    plan: Plan
    now: float
    carried: Carried = field(default_factory=Carried)
    why: Mapping[str, Reason] = field(default_factory=dict)

    def places(self, pod: Pod) -> tuple[int, str] | None:
        """Return the place of a held pod in the plan, 0 the first, and the node that it is to go to; None for none."""
        for found in places(self.backlog, self.made, self.plan).values():
            if pod.uid in found:
                place = found[pod.uid]
                return place, self.snapshot.layout.names[int(self.plan.assignments.node[place])]
        return None


def planned_order(
    backlog: Backlog, input_builder: PlanInputBuilder, planner: Planner, snapshot: Snapshot, now: float
) -> PlannedOrder:
    """Plan once, with reasons, over all that waits at `now` seconds since the epoch; `planner` explains."""
    carried = planner.carried
    with backlog.lock:
        refused = refused_pods(backlog)
        without = [it.name for it in backlog.classes() if refused and shape_of(it.like) in refused]
        made = input_builder.next(snapshot.layout, now, without)
    plan = planner.plan(snapshot, made.waiting, now)
    why = reasons(backlog, input_builder, snapshot, made, plan)
    return PlannedOrder(backlog, input_builder, snapshot, made, plan, now, carried, why)
