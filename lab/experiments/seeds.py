"""One figure of an experiment over its seeds."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seeds:
    """One figure over the seeds, in their order."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of the values that are not NaN; NaN if there are none."""
        finite = self._finite
        return sum(finite) / len(finite) if finite else math.nan

    @property
    def low(self) -> float:
        """The least."""
        return min(self._finite, default=math.nan)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self._finite, default=math.nan)

    @property
    def _finite(self) -> list[float]:
        return [value for value in self.values if not math.isnan(value)]
