"""Whether the cluster's Hold says what it should (order: auto), and what autoscalers see of pods without a gate."""

from collections.abc import Iterator

from extender.control.backlog.backlog import PodPhase
from extender.control.holding.decision import Holding
from extender.control.holding.ender import STALE_LEASES
from extender.control.holding.room_wanted import RoomWanted
from extender.control.release.planned import Planned
from extender.explain.amounts import seconds
from extender.explain.findings import OK, PROBLEM, WARNING, Facts, Finding, LeaseState, Level
from extender.explain.new_pods import NewPods, in_words
from extender.explain.planned_order import PlannedOrder
from extender.words import many

_CHECK = "new pods"
_SETTLED_SECONDS = 10.0
"""A Hold that was changed so lately may not say yet what is true now, or not any more."""


def new_pods(facts: Facts) -> Iterator[Finding]:
    """Say whether pods that are created now are held, and whether that is as it should be."""
    hold = facts.new_pods
    if hold is None:
        return
    text = f"new pods {in_words(hold)}"
    doubt = _unread(hold) or _unreleased(facts, hold) or _without_policy(facts, hold) or _against_plan(facts, hold)
    if doubt is None:
        yield Finding(_CHECK, OK, text)
        return
    level, but, advice = doubt
    yield Finding(_CHECK, level, f"{text}{but}", advice)


def is_doubtful(order: PlannedOrder, hold: NewPods | None, always_held: str) -> bool:
    """Say whether the Hold has not said for a while what the plan says; a second look would tell."""
    if hold is None or hold.held is None or (hold.held and always_held):
        return False
    return hold.held is not somebody_waits(order) and (hold.seconds is None or hold.seconds > _SETTLED_SECONDS)


def somebody_waits(order: PlannedOrder) -> bool:
    """Say whether somebody waits who could start if room came free, as `dovetail control` decides it."""
    holding = Holding()
    planned = Planned(order.plan_input, order.plan, order.snapshot)
    RoomWanted(order.input_builder.allowed_nodes, holding).note(planned, order.now)
    return holding.held


def autoscaler(facts: Facts) -> Iterator[Finding]:
    """Say how many pods without a gate an autoscaler takes for unschedulable."""
    if facts.order is None or not facts.autoscalers or facts.stated.order == "gates":
        return
    refused = sum(pod.unschedulable for pod in facts.order.backlog.at(PodPhase.UNGATED))
    text = f"{' and '.join(facts.autoscalers)} may add nodes for pods that look unschedulable; without a gate these are"
    yield Finding("autoscaler", OK, f"{text} {many(refused, 'pod')} now")


def _unread(hold: NewPods) -> tuple[Level, str, str] | None:
    return (WARNING, "", "ask again with a user who may get holds.dovetail.dev") if hold.unread else None


def _unreleased(facts: Facts, hold: NewPods) -> tuple[Level, str, str] | None:
    """Return what is wrong where pods are held, and for too long nobody has led who would release them."""
    lease = facts.lease
    if not hold.held or isinstance(lease, str):
        return None
    if lease is not None and lease.age_seconds <= (STALE_LEASES + 1) * lease.seconds:
        return None
    since = _age(lease)
    advice = (
        "`dovetail serve` should have ended that: see its logs, and whether it may get the Lease and patch the Hold"
    )
    return PROBLEM, f"; but nobody has led{since}, so nobody releases them", advice


def _age(lease: LeaseState | None) -> str:
    return "" if lease is None or lease.age_seconds == float("inf") else f" for {seconds(lease.age_seconds)}"


def _without_policy(facts: Facts, hold: NewPods) -> tuple[Level, str, str] | None:
    if hold.held is None or facts.policy is not False:
        return None
    advice = "have the chart install its policies (gating.policy.enabled: true, Kubernetes 1.36)"
    return (
        WARNING,
        "; but no admission policy goes by that, so only pods that bring the gate themselves are held",
        advice,
    )


def _against_plan(facts: Facts, hold: NewPods) -> tuple[Level, str, str] | None:
    """Return what is wrong where the Hold says twice what the plan does not.

    Nothing is where `control` has decided as the Hold says: it knows which classes leave their turns unused.
    """
    if hold.why and hold.why == facts.held_why:
        return None
    now, later, always = facts.order, facts.later, facts.stated.always_held
    if now is None or later is None or not is_doubtful(now, hold, always):
        return None
    if not is_doubtful(later, facts.new_pods_later, always):
        return None
    after = f"{later.now - now.now:.0f} s later"
    text = f"nobody waited for room, neither now nor {after}" if hold.held else f"somebody waited, now and {after}"
    return WARNING, f"; but {text}", "see who leads, and the log of `dovetail control`: it alone writes the Hold"
