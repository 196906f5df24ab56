"""The seeds of an experiment, and one figure over them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


def seed_words(seeds: Sequence[int]) -> str:
    """Return the range of the seeds in words."""
    return f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"


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
