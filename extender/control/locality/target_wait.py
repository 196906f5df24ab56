"""The waits for locality in force: those of settings, or the first of them computed from a target.

Equation 2 of delay scheduling says how many chances to pass over for a target; how fast room frees up says how long
that takes. Waiting itself makes room free up more slowly, which asks for longer waits: `most_seconds` bounds that.
"""

import math
from dataclasses import dataclass

import structlog

from extender.control.locality.measured_load import MeasuredLoad, Typical
from extender.policy.locality import skips_for, wait_for

EVERY_SECONDS = 60.0
_SAME_PART = 0.1
"""A wait that would change by at most this part of itself stays: the measured rate is not more exact than that."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Target:
    """The `part` of tasks that are to start beside their input, and the longest wait that this may come to."""

    part: float
    most_seconds: float


@dataclass(slots=True)
class TargetWait:
    """`in_force` [K] are seconds at the node, then at each level; without a `target` they stay. One thread looks."""

    in_force: tuple[float, ...] = ()
    target: Target | None = None
    _computed_at: float = -math.inf

    def look(self, load: MeasuredLoad, nodes: int, now: float) -> bool:
        """Compute the first wait anew, once a minute and where all is measured; say whether it has changed.

        `nodes` is how many take pods; `now` is of a clock that is never set.
        """
        rate, typical = load.rate(), load.typical
        if self.target is None or now - self._computed_at < EVERY_SECONDS or not (rate and typical and nodes):
            return False
        self._computed_at, before = now, self.in_force[0]
        first = first_wait(self.target, typical, nodes, rate)
        if abs(first - before) <= _SAME_PART * before:
            return False
        self.in_force = (first, *self.in_force[1:])
        log.info(
            "locality wait computed",
            seconds=round(first, 3),
            before=round(before, 3),
            target=self.target.part,
            rate=round(rate, 3),
            nodes=nodes,
            tasks=typical.tasks,
            replicas=typical.replicas,
        )
        return True


def first_wait(target: Target, typical: Typical, nodes: int, rate: float) -> float:
    """Return W1 in seconds for a target (equation 2), where room frees up `rate` times per second; bounded."""
    tasks, replicas = max(1, round(typical.tasks)), max(1, round(typical.replicas))
    skips = skips_for(target.part, tasks=tasks, nodes=nodes, replicas=replicas)
    return min(wait_for(skips, rate), target.most_seconds)
