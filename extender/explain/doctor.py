"""What may be wrong with an installation: all checks, in the order in which their findings are told."""

from collections.abc import Callable, Iterator, Sequence

from extender.explain.checks.declared import annotations, capacities
from extender.explain.checks.holding import autoscaler, is_doubtful, new_pods
from extender.explain.checks.opportunistic import opportunistic
from extender.explain.checks.processes import extender, leader, rights, sample, weight
from extender.explain.checks.queues import minimums, queue_names, reserved_room, shares
from extender.explain.checks.usage import usage
from extender.explain.checks.waiting import deadlines, due_now, gates, silence, strangers, turns
from extender.explain.findings import Facts, Finding

__all__ = ["CHECKS", "due_now", "findings", "is_doubtful"]

CHECKS: Sequence[Callable[[Facts], Iterator[Finding]]] = (
    rights,
    leader,
    extender,
    sample,
    weight,
    gates,
    turns,
    silence,
    new_pods,
    autoscaler,
    strangers,
    deadlines,
    minimums,
    shares,
    reserved_room,
    queue_names,
    capacities,
    annotations,
    usage,
    opportunistic,
)


def findings(facts: Facts) -> list[Finding]:
    """Return what all checks found, in their order."""
    return [finding for check in CHECKS for finding in check(facts)]
