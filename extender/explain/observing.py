"""Makes a second, whole plan now and then, for events and metrics.

The release loop asks only for the first few pods of a plan, and for no reasons, which cost more than the plan. So the
observer plans in a thread of its own, at most once a second, and for at most a twentieth of the time.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from extender.cluster.ledger.ledger import Ledger
from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.locality.measured_load import MeasuredLoad, typical
from extender.control.locality.target_wait import TargetWait
from extender.control.plan_input.builder import PlanInputBuilder
from extender.explain.events import Teller
from extender.explain.planned_order import PlannedOrder, planned_order
from extender.explain.queues import waiting_since
from extender.explain.wait_reasons import counted
from extender.planner import Carried, Planner, Policy

LEAST_SECONDS = 1.0
_MOST_OF_THE_TIME = 0.05
MOST_QUEUES = 200
"""So many queues have metrics: those that settings declare, then those with most waiting or running."""


@dataclass(frozen=True, slots=True)
class SeenWaits:
    """What the last look saw: pods by kind of reason; by queue (share, fair share) and the oldest wait in seconds.

    `held` pods have our gate, `ungated` ones have none and wait for their turn.
    """

    held: Mapping[str, int] = field(default_factory=dict)
    ungated: Mapping[str, int] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    oldest: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Observer:
    """Looks at the order, in one thread. `input_builder` is its own; `carried` returns what the loop's plans carry.

    `clock` is a monotonic one. When other `waits` for locality come into force, `plan_by` gives them to the release
    loop.
    """

    ledger: Ledger
    backlog: Backlog
    input_builder: PlanInputBuilder
    policy: Policy
    teller: Teller
    carried: Callable[[], Carried]
    flight_time: Callable[[], float]
    clock: Callable[[], float] = time.monotonic
    seen: SeenWaits = field(default_factory=SeenWaits)
    load: MeasuredLoad = field(default_factory=MeasuredLoad)
    waits: TargetWait = field(default_factory=TargetWait)
    plan_by: Callable[[Policy], None] = lambda _: None
    _planner: Planner = field(init=False)

    def __post_init__(self) -> None:
        self._planner = Planner(self.policy, explain=True)

    def look(self, now: float) -> float:
        """Plan, write the events that are due, and return after how many seconds to look again."""
        begun, left = self.clock(), self.backlog.left
        self._planner.carried = self.carried()
        order = planned_order(
            self.backlog, self.input_builder, self._planner, self.ledger.snapshot(self.flight_time()), now
        )
        self.teller.tell(self.backlog, order.why, now)
        self.seen = _summary(order)
        self.load.look(order.plan.held.values(), left, begun)
        self.load.typical = typical(self.backlog) or self.load.typical
        if self.waits.look(self.load, self.backlog.schedulable_nodes(), begun):
            self.policy = self._planner.policy = replace(self.policy, locality_waits=self.waits.in_force)
            self.plan_by(self.policy)
        return max(LEAST_SECONDS, (self.clock() - begun) / _MOST_OF_THE_TIME)

    def look_away(self) -> None:
        """Show nothing: another replica leads."""
        self.seen = SeenWaits()
        self.load.look_away()

    def waits_by_level(self) -> Mapping[str, float]:
        """Return for how many seconds a job may be passed over at each level, by its name."""
        return dict(zip(self.input_builder.preferred_nodes.level_names, self.waits.in_force, strict=False))


def _summary(order: PlannedOrder) -> SeenWaits:
    shares = order.plan_input.usage.by_queue()
    with order.backlog.lock:
        pods = Counter[str]()
        for task_class in order.backlog.classes():
            pods[task_class.job.queue] += task_class.unfinished
        oldest = waiting_since(order.backlog)
        ungated = order.why.keys() & order.backlog.uids_at(PodPhase.UNGATED)
    declared = order.input_builder.tree.declared
    names = sorted(shares, key=lambda name: (name not in declared, -pods[name], name))[:MOST_QUEUES]
    return SeenWaits(
        held=counted(reason for uid, reason in order.why.items() if uid not in ungated),
        ungated=counted(order.why[uid] for uid in ungated),
        shares={name: shares[name] for name in names},
        oldest={name: max(order.now - oldest[name], 0.0) if name in oldest else 0.0 for name in names},
    )
