"""What a node says about opportunistic pods: whether they may run there, how full they may make it, what is aside."""

import math
from dataclasses import dataclass, field

from extender.cluster.pods.limits import LONGEST_NUMBER, require_at_most
from extender.cluster.resources import CPU, MEMORY, Amounts
from extender.errors import BadAnnotation

THRESHOLD_ANNOTATION = "dovetail.dev/opportunistic-threshold"
OFF = "off"

HAS_SWAP = "it has swap, where no pod's memory can be resized"
RUNS_WINDOWS = "it runs Windows, where there is no resize"


@dataclass(frozen=True, slots=True)
class OpportunisticTerms:
    """What a node says about opportunistic pods.

    `threshold` is its own T_alloc, 0 where it is off; None: the usual one. `refuses` is why none can run there, None
    where they can. `system` is what it has and offers to nobody: capacity - allocatable, of CPU and memory.
    """

    threshold: float | None = None
    refuses: str | None = None
    system: Amounts = field(default_factory=dict)

    @property
    def effective(self) -> float | None:
        """T_alloc as it counts there: 0 where no opportunistic pod can run, None where it is the usual one."""
        return 0.0 if self.refuses is not None else self.threshold


def threshold_of(annotation: str | None, highest: float) -> float | None:
    """Return the T_alloc that a node's annotation states, at most `highest`; None without annotation.

    Raises BadAnnotation.
    """
    if annotation is None:
        return None
    require_at_most(LONGEST_NUMBER, annotation, THRESHOLD_ANNOTATION)
    text = annotation.strip()
    if text == OFF:
        return 0.0
    try:
        threshold = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        threshold = math.nan
    if not 0 <= threshold <= highest:
        accepted = f"a number from 0 to {highest:g} (evictAtMemory), or {OFF}"
        raise BadAnnotation(f"annotation {THRESHOLD_ANNOTATION}: {annotation!r}; accepted: {accepted}")
    return threshold


def set_aside(capacity: Amounts, allocatable: Amounts) -> Amounts:
    """Return what a node has of CPU and memory and does not offer; nothing where it does not say what it has."""
    aside = {name: capacity[name] - allocatable.get(name, 0.0) for name in (CPU, MEMORY) if name in capacity}
    return {name: amount for name, amount in aside.items() if amount > 0}
