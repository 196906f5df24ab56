"""Tasks that find no place on a cluster, however empty: too large, allowed nowhere, or too many that keep apart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from extender.arrays import Mask
from lab.packing.devices import Devices, devices_of
from lab.packing.keeping import Keeping
from lab.packing.model import Problem
from lab.packing.relations import Relations, Term


def without_misfits(problem: Problem) -> tuple[Problem, dict[str, int]]:
    """Return the workload without tasks that can never be placed, and how many of each job these are."""
    classes, relations = problem.classes, problem.relations
    # 1. Where each class fits on an empty cluster.
    machines = np.arange(problem.machines)
    keeping, devices = None if relations is None else Keeping(relations, machines), devices_of(problem, machines)
    fits = np.array([_fits(problem, row, keeping, devices) for row in range(len(classes.count))], dtype=np.bool_)
    fits = fits.reshape(len(classes.count), problem.machines)
    count = np.where(fits.any(axis=1), classes.count, 0)
    # 2. Of tasks that keep apart, as many as there are domains; who arrives first stays.
    if relations is not None:
        for (_, key), rows in apart(problem).items():
            left = _domains(relations, key, np.asarray(fits[rows].any(axis=0)))
            for row in rows:
                count[row] = min(count[row], left, _domains(relations, key, fits[row]))
                left -= int(count[row])
    misfits: dict[str, int] = {}
    for row in np.flatnonzero(count < classes.count).tolist():
        misfits[classes.job[row]] = misfits.get(classes.job[row], 0) + int(classes.count[row] - count[row])
    return replace(problem, classes=replace(classes, count=count).of(np.flatnonzero(count))), misfits


def _fits(problem: Problem, row: int, keeping: Keeping | None, devices: Sequence[Devices]) -> Mask:
    """Return on which machines a task has room that is alone there with what leaves with them [M]."""
    classes = problem.classes
    demand, ties = classes.demand[row], classes.ties[row]
    asked = np.flatnonzero(demand)
    fits = classes.masks[classes.mask[row]] & (problem.capacity[:, asked] >= demand[asked]).all(axis=1)
    for one in devices:
        fits &= one.fit_on_empty(row)
    if keeping is not None and (ties.matched or ties.away):
        alone = replace(ties, near=None, spread=())  # of these it may depend on others whether they are met
        fits &= keeping.allowance(alone, 0, None).allowed
    return np.asarray(fits)


def apart(problem: Problem) -> Mapping[Term, Sequence[int]]:
    """Return, by what they keep away from, the classes that are matches themselves; in order of arrival."""
    apart: dict[Term, list[int]] = {}
    for row, ties in enumerate(problem.classes.ties):
        for term in ties.away:
            if term[0] in ties.matched:
                apart.setdefault(term, []).append(row)
    return apart


def _domains(relations: Relations, key: int, fits: Mask) -> int:
    """Return in how many domains of the key machines fit [M]; without bound where one of these has no domain."""
    domain = relations.domains[key][fits]
    return len(np.unique(domain)) if (domain >= 0).all() else np.iinfo(np.int64).max
