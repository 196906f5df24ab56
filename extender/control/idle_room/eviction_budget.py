"""How much margin a predicted peak has: N, adjusted to keep evictions near a budget (policy/peak.py, `next_sigmas`)."""

import numpy as np

from extender.policy.peak import SigmaRule, next_sigmas

PERIOD_SECONDS = 3_600.0
"""N is adjusted once in so long."""

_HOUR = 3_600.0


class EvictionBudget:
    """Counts evictions and how long opportunistic pods ran, and says N. One thread.

    `rule.budget` is evictions for each opportunistic pod and hour. What was counted is lost at a restart, and N
    begins at `rule.start` again.
    """

    def __init__(self, rule: SigmaRule) -> None:
        self.sigmas = rule.start
        self._rule = rule
        self._evicted, self._pod_hours = 0, 0.0
        self._begun: float | None = None
        self._last = 0.0

    def advance(self, now: float, running: int, evicted: int) -> None:
        """Note how many opportunistic pods ran until `now`, and were evicted; adjust N at a period's end."""
        if self._begun is None:
            self._begun = self._last = now
        self._pod_hours += running * max(now - self._last, 0.0) / _HOUR
        self._evicted += evicted
        self._last = now
        if now - self._begun >= PERIOD_SECONDS:
            rate = self._evicted / max(self._pod_hours, 1.0)
            self.sigmas = float(next_sigmas(np.array(self.sigmas), np.array(rate), self._rule))
            self._begun, self._evicted, self._pod_hours = now, 0, 0.0
