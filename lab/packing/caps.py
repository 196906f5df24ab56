"""How many tasks machines take at most of those that keep apart, or spread evenly: for the bound on any placement."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from extender.arrays import Floats, Mask, Rows
from lab.packing.misfits import apart
from lab.packing.model import NO_GROUP, Classes, Problem
from lab.packing.relations import Even, Relations

_DOMAINS = 64
"""A spread over more domains than that is not looked at."""

_EXACT = 1e-12


Cap = Callable[[Rows], Floats]
"""Gives for some machines [M'] how many tasks the first of them take at most, for each number of them [M']."""


def caps_of(problem: Problem) -> Iterator[tuple[Cap, int]]:
    """Yield how many of some tasks machines take at most, and how many tasks these are."""
    classes = problem.classes
    for group in np.unique(classes.group[classes.group != NO_GROUP]).tolist():
        rows = np.flatnonzero(classes.group == group)
        yield partial(_in_group, classes, rows), int(classes.count[rows].sum())
    if problem.relations is not None:
        yield from _apart(problem, problem.relations)
        yield from _spread(problem, problem.relations)


def _in_group(classes: Classes, rows: Rows, machines: Rows) -> Floats:
    most = float(classes.at_most[rows].max())
    return np.cumsum(np.where(_may(classes, rows, machines), most, 0.0))


def _apart(problem: Problem, relations: Relations) -> Iterator[tuple[Cap, int]]:
    """Yield tasks of which a domain takes one; a machine without a domain any number."""
    classes = problem.classes
    for (_, key), same in apart(problem).items():
        copies = np.array([classes.ties[row].copy for row in same])
        for copy in np.unique(copies).tolist():
            rows = np.array(same)[copies == copy]
            yield partial(_one_each, classes, rows, relations.domains[key]), int(classes.count[rows].sum())


def _one_each(classes: Classes, rows: Rows, domains: Rows, machines: Rows) -> Floats:
    domain, may = domains[machines], _may(classes, rows, machines)
    there = np.flatnonzero(may)
    slots = np.zeros(len(domain))
    slots[there[np.unique(domain[there], return_index=True)[1]]] = 1.0
    slots[may & (domain < 0)] = np.inf
    return np.cumsum(slots)


def _spread(problem: Problem, relations: Relations) -> Iterator[tuple[Cap, int]]:
    """Yield tasks of which a domain takes at most so many more than the one with the least has room for."""
    classes = problem.classes
    spread, matches = dict[tuple[Even, int], list[int]](), dict[tuple[int, int], list[int]]()
    for row, ties in enumerate(classes.ties):
        for matcher in ties.matched:
            matches.setdefault((matcher, ties.copy), []).append(row)
        for even in ties.spread:
            if even.matcher in ties.matched:
                spread.setdefault((even, ties.copy), []).append(row)
    few = [len(np.unique(domains)) <= _DOMAINS for domains in relations.domains]
    for (even, copy), rows in spread.items():
        if few[even.key]:
            both = rows, matches[even.matcher, copy]
            yield partial(_shared, problem, relations, even, both), int(classes.count[rows].sum())


def _shared(
    problem: Problem, relations: Relations, even: Even, classes: tuple[Sequence[int], Sequence[int]], machines: Rows
) -> Floats:
    """Return how many tasks the first machines take at most [M'] of classes that spread, beside all that match."""
    rows, matches = classes
    values, domain = np.unique(relations.domains[even.key, machines], return_inverse=True)
    with_domain = values[domain] >= 0
    counts = relations.eligible[even.eligible, machines] & with_domain
    # 1. How many matches each domain can hold at most, and so how many the one with the least.
    there = relations.matched.get(even.matcher)
    leaving = np.zeros(len(machines)) if there is None else there[machines].astype(np.float64)
    held = _by_domain(domain, np.where(counts, _slots(problem, matches, machines) + leaving, 0.0))
    present = _by_domain(domain, counts.astype(np.float64)) > 0
    rises = present.sum(axis=0) >= max(even.domains, 1)
    least = np.where(rises, np.where(present, held, np.inf).min(axis=0, initial=np.inf), 0.0)
    # 2. No domain takes more than so many beyond it; machines that do not count take as many as have room.
    slots = np.where(with_domain, _slots(problem, rows, machines), 0.0)
    in_domains = np.minimum(_by_domain(domain, np.where(counts, slots, 0.0)), least + even.most)
    return np.asarray(in_domains.sum(axis=0) + np.cumsum(np.where(counts, 0.0, slots)))


def _by_domain(domain: Rows, amounts: Floats) -> Floats:
    """Return the sum of the first machines in each domain [D, M']."""
    table = np.zeros((int(domain.max(initial=-1)) + 1, len(domain)))
    table[domain, np.arange(len(domain))] = amounts
    return np.cumsum(table, axis=1)


def _slots(problem: Problem, rows: Sequence[int], machines: Rows) -> Floats:
    """Return how many tasks of these classes each empty machine has room for at most [M']."""
    classes = problem.classes
    demand = classes.demand[rows].min(axis=0)
    slots = np.full(len(machines), float(classes.count[rows].sum()))
    for column in np.flatnonzero(demand > 0).tolist():
        room = np.floor(problem.capacity[machines, column] / demand[column] * (1 + _EXACT))
        slots = np.minimum(slots, room)
    return np.where(_may(classes, np.array(rows), machines), slots, 0.0)


def _may(classes: Classes, rows: Rows, machines: Rows) -> Mask:
    return np.asarray(classes.masks[np.unique(classes.mask[rows])][:, machines].any(axis=0))
