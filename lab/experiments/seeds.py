"""The seeds of an experiment, and one figure over them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Ours = TypeVar("Ours")
Other = TypeVar("Other")


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


def paired(ours: Sequence[Ours], others: Sequence[Other], figure: Callable[[Ours, Other], float]) -> Seeds:
    """Return for each seed a figure of ours and of what it is compared with; both are in the order of the seeds."""
    return Seeds(tuple(float(figure(one, other)) for one, other in zip(ours, others, strict=True)))
