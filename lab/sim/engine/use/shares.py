"""How much of what they want tasks get where regular ones go first, and who is killed where memory is short. Pure."""

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import CPU_INDEX
from lab.sim.engine.contention import RATES, SHARED, factors


def parts(
    regular: Floats, given: Floats, capacity: Floats, *, loss: float, io_first: bool, kept: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return which part of what they want regular and opportunistic tasks get, in [0, 1]; all arrays are [N, R].

    `regular` and `given` are what both want. Regular tasks share in proportion as if they were alone; opportunistic
    ones share what is left. `loss` wastes goodput by all that is wanted (contention.factors). Without `io_first` disks
    and links know no order: all share them in proportion. `kept` [N, R] (none: nothing) is what opportunistic tasks get
    at least, as far as they want it.
    """
    total = regular + given
    whole = factors(total, capacity, loss=loss)
    # 1. What the resource gives in all, with what contention wastes; memory is not shared.
    served = np.where(SHARED, whole * total, total)
    reserved = np.minimum(given, kept) if kept is not None else 0.0
    regular_served = np.minimum(np.maximum(served - reserved, 0.0), regular)
    first = np.divide(regular_served, regular, out=np.ones_like(regular), where=regular > 0)
    left = np.maximum(served - regular_served, 0.0)
    second = np.divide(np.minimum(left, given), given, out=np.ones_like(given), where=given > 0)
    # 2. Where all share alike.
    alike = np.zeros_like(RATES) if io_first else RATES
    return np.where(alike, whole, first), np.where(alike, whole, second)


def kept_cpu(node: Rows, weight: Floats, opportunistic: Mask, capacity: Floats) -> Floats:
    """Return what CPU the opportunistic ones of the tasks [P] get at least [N, R]: their part of all `weight` there."""
    nodes, cpu = len(capacity), capacity[:, CPU_INDEX]
    total = np.bincount(node, weights=weight, minlength=nodes)
    given = np.bincount(node, weights=np.where(opportunistic, weight, 0.0), minlength=nodes)
    part = np.divide(given, total, out=np.zeros(nodes), where=total > 0)
    kept = np.zeros_like(capacity)
    kept[:, CPU_INDEX] = part * np.where(np.isfinite(cpu), cpu, 0.0)
    return kept


def killed(over: float, memory: Floats, request: Floats, first: Mask, began: Floats) -> Rows:
    """Return which tasks of a node [P] the kernel kills, in that order, until memory is `over` its capacity no more.

    Those that go `first` (of the lowest class), by what they use beyond their request. Of equals the one that `began`
    last goes, of those that began together the last: so the others get on with their work.
    """
    order = np.lexsort((-np.arange(len(began)), -began, request - memory, ~first))
    freed = np.cumsum(memory[order])
    count = int(np.searchsorted(freed, over)) + 1
    return np.asarray(order[: min(count, len(order))])
