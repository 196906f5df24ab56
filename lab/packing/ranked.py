"""Placement by rank: a task goes to the machine that a rule ranks highest.

A rule ranks a machine by what that machine holds, so placing a task changes one rank only. Task by task, the machine
with the highest rank gets the next one. Take for each machine the ranks that its 1st, 2nd, ... task of the class would
see, and of each rank the lowest up to there: in this order, highest first, are the places taken.

Empty machines of one kind have one rank. So it is computed once for the kind, and only those that hold something are
ranked one by one.
"""

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, fits
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.policy.alignment import offered
from lab.packing.model import NO_GROUP, Problem
from lab.packing.room import Group, Room
from lab.packing.rules import Rank, held

_MOST = 0.5
"""Where more than this part of the machines is ranked, ranking all costs less than picking them out."""


class RankedRoom(Room):
    """Machines that are filled by the ranks of a rule; `draw` breaks its ties, without it the first machine wins."""

    def __init__(self, problem: Problem, machines: Rows, rank: Rank, draw: np.random.Generator | None) -> None:
        super().__init__(problem, machines)
        self._rank, self._draw = rank, draw
        self._columns = _ranked(problem.packed)
        self._held = held(
            np.zeros((len(machines), len(self._columns))), offered(problem.packed[machines][:, self._columns])
        )
        # Empty machines by kind: the first of each kind, which one each is, and how many are left of it.
        _, first, kind, count = np.unique(
            problem.kind[machines], return_index=True, return_inverse=True, return_counts=True
        )
        self._first, self._kind, self._left = first.astype(np.intp), kind.astype(np.intp), count
        self._as_new, self._holds = self._held.at(self._first), np.zeros(len(machines), dtype=np.bool_)

    def choose(self, task_class: int, wanted: int, group: Group) -> tuple[Rows, Counts]:
        """Return machines [K] and how many tasks of the class each gets [K]."""
        demand = self._classes.demand[task_class][self._columns]
        # 1. Only machines that are among the `wanted` best can get any: each has room for one at least.
        rows = self._candidates(task_class, wanted, group)
        if not len(rows):
            return rows, np.empty(0, dtype=np.int64)
        luck = np.arange(len(rows)) if self._draw is None else self._draw.permutation(len(rows))
        if len(rows) > wanted:
            best = _best(self._rank(demand, self._held.at(rows)), luck, wanted)
            rows, luck = rows[best], luck[best]
        # 2. The rank that each place on them would see, and the lowest up to there.
        times = self._times(task_class, rows, wanted, group)
        machine, number = _places(times)
        there = rows[machine]
        nodes = self._held.nodes.at(there)
        ranks = self._rank(demand, held(self._held.allocated[there] + number[:, np.newaxis] * demand, nodes))
        lowest = _lowest_so_far(ranks, machine, times)
        # 3. The places are taken in this order.
        order = np.lexsort((number, luck[machine], -lowest))[:wanted]
        return rows, np.bincount(machine[order], minlength=len(rows)).astype(np.int64)

    def take(self, rows: Rows, taken: Counts, task_class: int, group: Group) -> None:
        """Put so many tasks of the class on each of these machines [K]."""
        super().take(rows, taken, task_class, group)
        self._held.now(rows, self.allocated[np.ix_(rows, self._columns)])
        new = rows[~self._holds[rows]]
        self._left -= np.bincount(self._kind[new], minlength=len(self._left))
        self._holds[new] = True

    def _candidates(self, task_class: int, wanted: int, group: Group) -> Rows:
        """Return machines with room, among them the `wanted` best and all that rank as the last of these."""
        demand = self._classes.demand[task_class]
        # 1. The ranks of machines that hold something, and of kinds of empty ones.
        rows = np.flatnonzero(self._with_room(task_class, group))
        kinds = self._kinds_with_room(task_class)
        of_rows = self._ranks(demand[self._columns], rows)
        of_kinds = self._rank(demand[self._columns], self._as_new.at(kinds))
        # 2. The rank of the last of the best.
        if len(rows) > wanted:
            enough = of_rows >= np.partition(of_rows, -wanted)[-wanted]
            rows, of_rows = rows[enough], of_rows[enough]
        ranks = np.concatenate((of_rows, of_kinds))
        order = np.argsort(-ranks)
        places = np.cumsum(np.concatenate((np.ones(len(rows), dtype=np.int64), self._left[kinds]))[order])
        if not len(places):
            return rows
        last = ranks[order[min(int(np.searchsorted(places, wanted)), len(places) - 1)]]
        # 3. All of at least this rank.
        chosen = np.zeros(len(self._left), dtype=np.bool_)
        chosen[kinds[of_kinds >= last]] = True
        new = np.flatnonzero(chosen[self._kind] & ~self._holds) if chosen.any() else np.empty(0, dtype=np.intp)
        return np.sort(np.concatenate((rows[of_rows >= last], new)))

    def _with_room(self, task_class: int, group: Group) -> Mask:
        """Return which machines hold something and have room for one task more [M']."""
        demand, mask = self._classes.demand[task_class], self._classes.mask[task_class]
        room = self._holds.copy()
        for column in np.flatnonzero(demand > 0).tolist():
            room &= self._free[column] >= demand[column]
        if self._bound[mask]:
            room &= self._masks[mask]
        used = self._in_group.get(group) if group.row != NO_GROUP else None
        if used is not None:
            room &= used < self._classes.at_most[task_class]
        return room

    def _kinds_with_room(self, task_class: int) -> Rows:
        """Return the kinds of empty machines that have room for a task."""
        kinds = np.flatnonzero(self._left > 0)
        first = self._first[kinds]
        room = fits(self._capacity[first], self._classes.demand[task_class])
        return kinds[room & self._masks[self._classes.mask[task_class], first]]

    def _ranks(self, demand: Floats, rows: Rows) -> Floats:
        if len(rows) > _MOST * len(self._holds):
            return self._rank(demand, self._held)[rows]
        return self._rank(demand, self._held.at(rows))


def _ranked(packed: Floats) -> Rows:
    """Return the dimensions that ranks look at: CPU and memory, and what else says how well a task suits."""
    says = np.flatnonzero((np.isfinite(packed) & (packed > 0)).any(axis=0))
    return np.union1d(says, np.array([CPU_INDEX, MEMORY_INDEX], dtype=np.intp))


def _best(ranks: Floats, luck: Rows, count: int) -> Rows:
    """Return the machines with the highest ranks, in no order; of equal ones those with the lowest luck."""
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
