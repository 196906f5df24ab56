"""How a pod runs, or is to run: as a regular one, on what others reserved and do not use, or first so and then so."""

from extender.cluster.model import Pod
from extender.cluster.resources import CPU, MEMORY, Amounts

REGULAR, OPPORTUNISTIC, PROMOTED = "regular", "opportunistic", "promoted"

STAYS_REGULAR, PROMOTION_REFUSED = "StaysRegular", "PromotionRefused"
"""Events: why a pod could not be made opportunistic, or regular again."""


def running_as(pod: Pod) -> str:
    """Return how a pod runs, or is to run. One that is promoted got its node as an opportunistic one."""
    if pod.opportunistic:
        return OPPORTUNISTIC
    return PROMOTED if pod.node is not None and pod.regular_requests is not None else REGULAR


def regular_requests(pod: Pod) -> Amounts:
    """Return what a pod requests of CPU and memory as a regular one; nothing where it never says so."""
    if pod.regular_requests is None:
        return {}
    return {name: pod.demand[name] for name in (CPU, MEMORY) if name in pod.demand}
