"""What tasks weigh by one dimension, and what weight a machine takes at most: arguments for a bound.

By volume a task weighs what it demands. By number all from a size on weigh the same. Between both: two tasks larger
than half of a machine share none, and what is left beside one is lost if no other task is so small (the dual feasible
functions behind bound L2 of Martello and Toth, "Lower bounds and reduction procedures for the bin packing problem").
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats

_SIZES = 16
"""Of each dimension so many sizes of tasks are tried, spread evenly over the tasks."""

_BESIDE, _KINDS = 6, 3
"""So many sizes are tried of what has room beside large tasks, on so many kinds of machines, the most frequent."""

_NONE = float(np.finfo(np.float64).max)
_EXACT = 1e-12


@dataclass(frozen=True, slots=True)
class Measure:
    """Tasks from the size `large` on weigh `each`; those from `medium` on what they demand, smaller ones nothing.

    `each` is not less than `large`, unless no task is medium. Where `parts` of devices are demanded, a task is on one
    device of so many, or has whole ones; else a machine is one.
    """

    large: float
    medium: float
    each: float
    parts: float | None = None

    def weights(self, demand: Floats) -> Floats:
        """Return what tasks weigh that demand this [C]."""
        weights = np.where(demand >= self.large, self.each, np.where(demand >= self.medium, demand, 0.0))
        if self.parts is None:
            return weights
        whole = np.ceil(demand / self.parts) * self._on_one(np.array([self.parts]))
        return np.where(demand >= self.parts, whole, weights)

    def most(self, offers: Floats) -> Floats:
        """Return the most that tasks weigh on machines that offer this [M']."""
        if self.parts is None:
            return self._on_one(offers)
        whole = np.floor(offers / self.parts)
        return whole * self._on_one(np.array([self.parts])) + self._on_one(offers - whole * self.parts)

    def _on_one(self, offers: Floats) -> Floats:
        """Return the same where tasks are on one device that offers this [K].

        The most large ones, and what is left for medium ones; or one large one less. Another less never weighs more.
        """
        number = np.floor(offers / self.large * (1 + _EXACT))
        left = np.maximum(offers - number * self.large, 0.0)
        full = number * self.each + self._medium(left)
        return np.where(number > 0, np.maximum(full, (number - 1) * self.each + self._medium(left + self.large)), full)

    def _medium(self, left: Floats) -> Floats:
        return np.where(left >= self.medium * (1 - _EXACT), left, 0.0)


def measures_of(demand: Floats, count: Counts, offers: Floats, parts: float | None) -> Iterator[Measure]:
    """Yield measures of classes of so many tasks `count` [C] with this `demand` [C], where machines offer this [M']."""
    sizes = demand[demand > 0]
    if parts is not None:
        yield Measure(_NONE, min(float(sizes.min()), parts), 0.0, parts)
        yield from _beside_large(demand, count, parts, parts)
    yield Measure(_NONE, float(sizes.min()), 0.0)
    for size in _sizes(demand, count, _SIZES):
        yield Measure(size, _NONE, 1.0, parts if parts is not None and size < parts else None)
    for machine in _usual(offers):
        yield from _beside_large(demand, count, machine, None)


def _beside_large(demand: Floats, count: Counts, machine: float, parts: float | None) -> Iterator[Measure]:
    """Yield measures by which large tasks fill such a machine, and others than medium ones find no room beside them."""
    small, large = demand <= machine / 2, demand[(demand > machine / 2) & (demand <= machine)]
    for medium in _sizes(demand[small], count[small], _BESIDE) if len(large) else ():
        larger = large[large > machine - medium]
        if len(larger):
            yield Measure(float(larger.min()), medium, machine, parts)


def _usual(offers: Floats) -> list[float]:
    """Return the amounts that most machines offer."""
    amounts, machines = np.unique(offers[offers > 0], return_counts=True)
    return [float(amount) for amount in amounts[np.argsort(-machines, kind="stable")[:_KINDS]]]


def _sizes(demand: Floats, count: Counts, number: int) -> list[float]:
    """Return sizes of tasks, at evenly spread places among all tasks by size."""
    if not len(demand):
        return []
    order = np.argsort(demand, kind="stable")
    places = np.linspace(1, count.sum(), number)
    sizes = demand[order][np.searchsorted(np.cumsum(count[order]), places)]
    return [float(size) for size in np.unique(sizes) if size > 0]
