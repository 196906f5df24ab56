"""Places classes of tasks on machines: a class at a time, with the same result as task by task.

A rule ranks a machine by what that machine holds, so placing a task changes one rank only. Task by task, the machine
with the highest rank gets the next one. Take for each machine the ranks that its 1st, 2nd, ... task of the class would
see, and of each rank the lowest up to there: in this order, highest first, are the places taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, fits, times_fits
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.policy.alignment import Offered, offered
from lab.packing.model import NO_GROUP, Problem
from lab.packing.rules import AT_RANDOM, FIRST_FIT, RULES_BY_NAME

Group = tuple[int, int]
"""A group whose tasks keep apart, and which clone of it."""

_BLOCK = 64
"""Machines are looked at in blocks of so many: one that is too full for a class as a whole is passed over at once."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Which places a class got: `count` [K] tasks on each of the `machines` [K], rows of the problem."""

    task_class: int
    machines: Rows
    count: Counts


@dataclass(frozen=True, slots=True)
class Packing:
    """What was placed on the `machines` [M'] in this order, and what these hold then [M', R].

    `pending` is how many tasks found no place. Where it was given up before the end, it is what was known by then.
    """

    machines: Rows
    allocated: Floats
    placed: Sequence[Placed]
    pending: int
    complete: bool


def pack(
    problem: Problem,
    machines: Rows,
    order: Rows,
    rule: str,
    *,
    draw: np.random.Generator | None = None,
    give_up_above: float = np.inf,
) -> Packing:
    """Place the classes in this order [C] on these empty machines [M'] by the rule of this name.

    Where more than `give_up_above` tasks are pending, the rest is not tried. `draw` breaks the ties of the rules of
    `AT_RANDOM`; without it, and for other rules, the first machine wins.
    """
    filling = Filling(problem, machines, rule, draw if rule in AT_RANDOM else None)
    placed, pending, complete = [], 0, True
    for row in order.tolist():
        part = filling.place(row)
        placed.append(part)
        pending += int(problem.classes.count[row] - part.count.sum())
        if pending > give_up_above:
            complete = False
            break
    return Packing(machines, filling.allocated, placed, pending, complete)


class Filling:
    """Machines as they fill up, by one rule. `allocated` [M', R] is what they hold."""

    def __init__(self, problem: Problem, machines: Rows, rule: str, draw: np.random.Generator | None) -> None:
        self._classes, self._machines, self._draw = problem.classes, machines, draw
        self._masks = problem.classes.masks[:, machines]
        self._bound: Mask = np.asarray(~self._masks.all(axis=1))
        self._ranked = _ranked(problem.packed)
        self._capacity = problem.capacity[machines]
        self.allocated = np.zeros_like(self._capacity)
        self._held = self.allocated[:, self._ranked]
        self._free = self._capacity.copy()
        self._rank, self._first = RULES_BY_NAME[rule], rule == FIRST_FIT
        self._offered: Offered | None = None if self._first else offered(problem.packed[machines][:, self._ranked])
        self._in_group: dict[Group, Counts] = {}
        self._most = _highest(self._free)

    def place(self, row: int, *, clone: int = 0) -> Placed:
        """Place as many tasks of the class as have room; a clone of it keeps apart from tasks of the same clone."""
        # 1. How many tasks each machine has room for.
        wanted = int(self._classes.count[row])
        demand = self._classes.demand[row]
        group = (int(self._classes.group[row]), clone)
        rows, times = self._room(row, demand, wanted, group)
        # 2. Who gets how many.
        if self._offered is None:
            taken = np.clip(wanted - (np.cumsum(times) - times), 0, times)
        else:
            taken = self._by_rank(demand, rows, times, wanted, self._offered)
        # 3. They hold them.
        there = taken > 0
        rows, taken = rows[there], taken[there]
        self._take(rows, taken, demand, group)
        return Placed(row, self._machines[rows], taken)

    def _room(self, row: int, demand: Floats, wanted: int, group: Group) -> tuple[Rows, Counts]:
        """Return the machines with room for one, and for how many each has, at most as many as are wanted."""
        asked = np.flatnonzero(demand > 0)
        blocks = np.flatnonzero((self._most[:, asked] >= demand[asked]).all(axis=1))
        if self._first:
            return self._first_room(row, demand, asked, blocks, wanted, group)
        rows = (blocks[:, np.newaxis] * _BLOCK + np.arange(_BLOCK)).ravel()
        return self._room_on(row, demand, asked, rows[rows < len(self._free)], wanted, group)

    def _first_room(
        self, row: int, demand: Floats, asked: Rows, blocks: Rows, wanted: int, group: Group
    ) -> tuple[Rows, Counts]:
        """Return the same of as many blocks as are needed; each turn looks at twice as many."""
        found, counts, have, begin, size = [], [], 0, 0, 1 + wanted // _BLOCK
        while have < wanted and begin < len(blocks):
            rows = (blocks[begin : begin + size, np.newaxis] * _BLOCK + np.arange(_BLOCK)).ravel()
            rows, times = self._room_on(row, demand, asked, rows[rows < len(self._free)], wanted, group)
            found.append(rows)
            counts.append(times)
            have, begin, size = have + int(times.sum()), begin + size, 2 * size
        if not found:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
        return np.concatenate(found), np.concatenate(counts)

    def _room_on(
        self, row: int, demand: Floats, asked: Rows, rows: Rows, wanted: int, group: Group
    ) -> tuple[Rows, Counts]:
        mask = self._classes.mask[row]
        if self._bound[mask]:
            rows = rows[self._masks[mask, rows]]
        free = self._free[rows][:, asked]
        fit = fits(free, demand[asked])
        rows, free = rows[fit], free[fit]
        counts = np.minimum(times_fits(free, demand[asked]), wanted).astype(np.int64)
        if group[0] != NO_GROUP:
            used = self._in_group.get(group)
            held = used[rows] if used is not None else 0
            counts = np.minimum(counts, np.maximum(self._classes.at_most[row] - held, 0))
            rows, counts = rows[counts > 0], counts[counts > 0]
        return rows, counts

    def _by_rank(self, demand: Floats, rows: Rows, times: Counts, wanted: int, nodes: Offered) -> Counts:
        """Return how many tasks each of these machines gets [K]."""
        if not len(rows):
            return times
        # 1. Only the `wanted` best machines can get any: each has room for one at least.
        demand = demand[self._ranked]
        first = self._rank(demand, self._held[rows], nodes.at(rows))
        luck = np.arange(len(rows)) if self._draw is None else self._draw.permutation(len(rows))
        best = _best(first, luck, wanted)
        # 2. The rank that each place on them would see, and the lowest up to there.
        machine, number = _places(times[best])
        there = rows[best][machine]
        ranks = self._rank(demand, self._held[there] + number[:, np.newaxis] * demand, nodes.at(there))
        lowest = _lowest_so_far(ranks, machine, times[best])
        # 3. The places are taken in this order.
        order = np.lexsort((number, luck[best][machine], -lowest))[:wanted]
        taken = np.zeros(len(rows), dtype=np.int64)
        taken[best] = np.bincount(machine[order], minlength=len(best))
        return taken

    def _take(self, rows: Rows, taken: Counts, demand: Floats, group: Group) -> None:
        self.allocated[rows] += taken[:, np.newaxis] * demand
        self._held[rows] = self.allocated[np.ix_(rows, self._ranked)]
        self._free[rows] = self._capacity[rows] - self.allocated[rows]
        for block in np.unique(rows // _BLOCK).tolist():
            self._most[block] = self._free[block * _BLOCK : (block + 1) * _BLOCK].max(axis=0)
        if group[0] != NO_GROUP:
            self._in_group.setdefault(group, np.zeros(len(self._free), dtype=np.int64))[rows] += taken


def _highest(free: Floats) -> Floats:
    """Return the most that any machine of each block has free [B, R]."""
    return np.maximum.reduceat(free, np.arange(0, len(free), _BLOCK), axis=0) if len(free) else free


def _ranked(packed: Floats) -> Rows:
    """Return the dimensions that ranks look at: CPU and memory, and what else says how well a task suits."""
    says = np.flatnonzero((np.isfinite(packed) & (packed > 0)).any(axis=0))
    return np.union1d(says, np.array([CPU_INDEX, MEMORY_INDEX], dtype=np.intp))


def _best(ranks: Floats, luck: Rows, count: int) -> Rows:
    """Return the machines with the highest ranks, in no order; of equal ones those with the lowest luck."""
    if count >= len(ranks):
        return np.arange(len(ranks))
    least = np.partition(ranks, -count)[-count]
    above, equal = np.flatnonzero(ranks > least), np.flatnonzero(ranks == least)
    missing = count - len(above)
    if missing < len(equal):
        equal = equal[np.argpartition(luck[equal], missing - 1)[:missing]]
    return np.concatenate((above, equal))


def _places(times: Counts) -> tuple[Rows, Counts]:
    """Return the machine of each place, and how many places of that machine come before."""
    machine = np.repeat(np.arange(len(times)), times)
    return machine, np.arange(len(machine)) - np.repeat(np.cumsum(times) - times, times)


def _lowest_so_far(ranks: Floats, machine: Rows, times: Counts) -> Floats:
    """Return of each place the lowest rank up to there on its machine."""
    if times.max() == 1:
        return ranks
    table = np.full((len(times), int(times.max())), np.inf)
    column = np.arange(len(machine)) - np.repeat(np.cumsum(times) - times, times)
    table[machine, column] = ranks
    return np.asarray(np.minimum.accumulate(table, axis=1)[machine, column])
