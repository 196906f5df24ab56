"""What is left on the machines: utilisation, hole filling (paper, III.A and III.B), and what strands what."""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, times_fits
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX, PODS
from lab.packing.model import Problem
from lab.packing.orders import median_machine

PAIR = (CPU_INDEX, MEMORY_INDEX)


@dataclass(frozen=True, slots=True)
class Holes:
    """How many units fit beside what is there, on each machine [M], and the utilisation [2] without and with them.

    Utilisation is of CPU and of memory, a part of the whole cluster.
    """

    units: Counts
    before: Floats
    after: Floats


def utilisation(problem: Problem, allocated: Floats) -> Floats:
    """Return the part of the cluster's CPU and memory that is allocated [2]; 0 where there is none."""
    whole = problem.capacity[:, PAIR].sum(axis=0)
    used = allocated[:, PAIR].sum(axis=0)
    return np.asarray(np.divide(used, whole, out=np.zeros(2), where=whole > 0))


def unit_of_median(problem: Problem, part: float) -> Floats:
    """Return so large a part of the median machine's CPU and memory [2]."""
    return np.asarray(part * median_machine(problem)[list(PAIR)])


def unit_of_tasks(problem: Problem, percentile: float) -> Floats:
    """Return this percentile of what tasks demand of CPU and of memory [2]."""
    each = np.repeat(problem.classes.demand[:, PAIR], problem.classes.count, axis=0)
    return np.asarray(np.percentile(each, percentile, axis=0))


def unit_of_nodes(problem: Problem, part: float) -> Floats:
    """Return so large a part of each machine's own CPU and memory [M, 2]."""
    return np.asarray(part * problem.capacity[:, PAIR])


def fill(problem: Problem, allocated: Floats, unit: Floats) -> Holes:
    """Return how many units of CPU and memory [2] fit beside `allocated` [M, R].

    A `unit` [M, 2] is one for each machine. A unit takes one place for a pod as well, where machines count them.
    """
    free = problem.capacity - allocated
    each = np.broadcast_to(unit, (problem.machines, 2))
    wanted = each > 0
    times = np.divide(free[:, PAIR], each, out=np.full(each.shape, np.inf), where=wanted).min(axis=1)
    slots = problem.layout.columns.get(PODS)
    if slots is not None:
        times = np.minimum(times, times_fits(free[:, [slots]], np.ones(1)))
    units = np.floor(np.where(np.isfinite(times), np.maximum(times, 0.0), 0.0))
    before = utilisation(problem, allocated)
    whole = problem.capacity[:, PAIR].sum(axis=0)
    gained = (units[:, np.newaxis] * each).sum(axis=0)
    after = before + np.divide(gained, whole, out=np.zeros(2), where=whole > 0)
    return Holes(units.astype(np.int64), before, after)


def stranded(problem: Problem, allocated: Floats, unit: Floats) -> tuple[Mask, Mask]:
    """Return on which machines [M] memory strands CPU, and on which CPU strands memory.

    There a unit ([2], or [M, 2] of each machine) of the one is free, and no unit of the other.
    """
    enough = (problem.capacity - allocated)[:, PAIR] >= unit
    return enough[:, 0] & ~enough[:, 1], enough[:, 1] & ~enough[:, 0]
