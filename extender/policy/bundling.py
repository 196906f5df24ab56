"""A set of tasks for one machine that is chosen as a whole, not one task after the other (Graphene, 7.2)."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Counts, Floats

CLASSES = 3
"""A set is made of so many classes, those with the highest scores: of others there is seldom a task in it."""
_NUMBERS = 3
"""About so many other numbers of one class are tried, evenly from as often as it fits down to none."""

_Demand = Sequence[tuple[int, float]]


def bundle(scores: Floats, needs: Floats, room: Floats, most: Counts) -> Counts:
    """Return how many tasks of each class [k] to start: of the sets that are tried, that with the highest total score.

    The classes stand by their `scores` [k], the highest first. One task of each fits into the `room` [R] by its `needs`
    [k, R] (`arrays.needs`), and at most `most` [k] may start. Tried is the greedy set (the first class as often as it
    fits, then the next, ...) and, for each class, the same with another number of that class, none as well. So what is
    chosen is never worth less than the greedy set of these classes. Of equals the greedy one is taken.
    """
    # 1. As lists: the classes are few, and arrays of three would take longer.
    values, free, limits = scores.tolist(), room.tolist(), most.tolist()
    demands = [[(place, amount) for place, amount in enumerate(row) if amount > 0] for row in needs.tolist()]
    # 2. The greedy set, and the others.
    best = greedy = _filled(free, demands, limits, {})
    value = _value(best, values)
    for given, (demand, limit) in enumerate(zip(demands, limits, strict=True)):
        alone = _times(free, demand, limit)
        for number in range(alone, -1, -max(1, alone // _NUMBERS)):
            if number == greedy[given]:
                continue
            tried = _filled(free, demands, limits, {given: number})
            if (worth := _value(tried, values)) > value:
                best, value = tried, worth
    return np.array(best, dtype=np.int64)


def _filled(
    room: Sequence[float], demands: Sequence[_Demand], limits: Sequence[int], given: dict[int, int]
) -> list[int]:
    """Return how many tasks of each class fit: first those of which the number is `given`, then the others in turn."""
    left, numbers = list(room), [0] * len(demands)
    for place in (*given, *(place for place in range(len(demands)) if place not in given)):
        demand = demands[place]
        times = numbers[place] = given[place] if place in given else _times(left, demand, limits[place])
        if times:
            for resource, amount in demand:
                left[resource] -= times * amount
    return numbers


def _times(room: Sequence[float], demand: _Demand, limit: int) -> int:
    """Return how many tasks fit into the room, at most the limit."""
    for resource, amount in demand:
        times = room[resource] // amount
        if times < limit:
            limit = int(times)
    return max(limit, 0)


def _value(numbers: Sequence[int], values: Sequence[float]) -> float:
    return sum(number * value for number, value in zip(numbers, values, strict=True))
