"""What tasks take by how many machines their job has, and by wave: what the machine ran just before. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats

FRESH, FIRST, REST = range(3)
"""The waves: a machine's first task of a job, its first of a stage, and any other. It counts what it ran last."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The mean `seconds` [K] of a task on so many machines, `counts` [K] ascending."""

    counts: Floats
    seconds: Floats

    def on(self, machines: int | Floats) -> Floats:
        """Return the seconds on so many machines: on a line between two counts, beyond all as at the nearest."""
        return np.asarray(np.interp(machines, self.counts, self.seconds))

    def least(self, machines: int) -> float:
        """Return the least seconds on at most so many machines: at a count, or at an end of the range."""
        inside = self.counts[self.counts <= machines]
        return float(self.on(np.array([1.0, *inside, machines])).min())


def curve_of(by_count: Mapping[int, float]) -> Curve:
    """Return the curve through the seconds of one or more counts."""
    counts = sorted(by_count)
    return Curve(np.array(counts, dtype=float), np.array([by_count[count] for count in counts], dtype=float))


Waves = tuple[Curve, Curve, Curve]
"""The curves of FRESH, FIRST and REST."""


def seconds_alone(waves: Waves, tasks: int, machines: int) -> Floats:
    """Return what the tasks of a stage take if its job has all machines [tasks]: one on each first, then the rest."""
    seconds = np.full(tasks, waves[REST].on(machines))
    seconds[: min(tasks, machines)] = waves[FIRST].on(machines)
    return seconds


def least_seconds(waves: Waves, machines: int) -> float:
    """Return what a task takes at least on at most so many machines."""
    return min(curve.least(machines) for curve in waves)
