"""In which order classes are placed (paper, section IV)."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from lab.packing.model import Problem

ORDERS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"arrival": (), "cpu": (CPU_INDEX,), "memory": (MEMORY_INDEX,), "sum": (CPU_INDEX, MEMORY_INDEX)}
)
"""The orders by name, and the dimensions that each goes by: the largest first. Arrival goes by none."""


def order_of(problem: Problem, name: str) -> Rows:
    """Return the rows of the classes in the order of this name [C]; equal ones by arrival."""
    columns = ORDERS[name]
    size = (problem.classes.demand * _per_median(problem))[:, columns].sum(axis=1)
    return np.argsort(-size, kind="stable")


def median_machine(problem: Problem) -> Floats:
    """Return the median of what machines offer, per dimension [R]; infinite where most do not limit it."""
    return np.asarray(np.sort(problem.capacity, axis=0)[problem.machines // 2])


def _per_median(problem: Problem) -> Floats:
    median = median_machine(problem)
    return np.divide(1.0, median, out=np.zeros_like(median), where=(median > 0) & np.isfinite(median))
