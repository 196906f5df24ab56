"""One figure of an experiment over its seeds."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seeds:
    """One figure over the seeds, in their order."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of those seeds that have it; NaN where none has."""
        known = self._known
        return sum(known) / len(known) if known else math.nan

    @property
    def low(self) -> float:
        """The least."""
        return min(self._known, default=math.nan)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self._known, default=math.nan)

    @property
    def _known(self) -> list[float]:
        return [value for value in self.values if not math.isnan(value)]
