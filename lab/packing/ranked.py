"""Placement by rank: a task goes to the machine that a rule ranks highest.

A rule ranks a machine by what that machine holds, so placing a task changes one rank only. Task by task, the machine
with the highest rank gets the next one. Take for each machine the ranks that its 1st, 2nd, ... task of the class would
see, and of each rank the lowest up to there: in this order, highest first, are the places taken.

Empty machines of one kind have one rank. So it is computed once for the kind, and only those that hold something are
ranked one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, needs
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.policy.alignment import offered
from lab.packing.evenly import Key
from lab.packing.keeping import Allowance
from lab.packing.model import NO_GROUP, Problem
from lab.packing.room import Group, MachinesInOrder
from lab.packing.rules import Sought, held, rank_of, sought_of

_MACHINES, _PLACES = 64, 1024
"""To rank some hundred places costs hardly more than to rank one, and less than to rank more of them later."""

Turn = tuple[float, float]
"""When a place is taken: minus the lowest rank up to there, then the luck of its machine."""

_NEVER = (np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class _Turns:
    """The first places on machines [K], so many of each (`times`), a machine after the other [P]."""

    times: Counts
    machine: Rows
    lowest: Floats
    luck: Rows

    def taken(self, wanted: int) -> tuple[Counts, Turn]:
        """Return how many places are taken of each machine [K], and the turn of the last."""
        order = self._order(wanted)
        taken = np.bincount(self.machine[order], minlength=len(self.times)).astype(np.int64)
        last = order[-1]
        return taken, (-self.lowest[last], self.luck[self.machine[last]]) if len(order) == wanted else _NEVER

    def ordered(self, wanted: int) -> tuple[Rows, list[Turn]]:
        """Return the machines of the first places in the order in which they are taken, and their turns."""
        order = self._order(wanted)
        machine = self.machine[order]
        return machine, list(zip((-self.lowest[order]).tolist(), self.luck[machine].tolist(), strict=True))

    def _order(self, wanted: int) -> Rows:
        places = np.arange(len(self.lowest))
        if len(places) > wanted:  # sort only those that may be among them
            places = (self.lowest >= np.partition(self.lowest, -wanted)[-wanted]).nonzero()[0]
        # The first places of a machine are before its others.
        return places[np.lexsort((self.luck[self.machine[places]], -self.lowest[places]))[:wanted]]

    def ends(self, more: Mask) -> Turn:
        """Return the first turn that a place behind these could have on machines that have `more` [K]."""
        if not more.any():
            return _NEVER
        end = (np.cumsum(self.times) - 1)[more]
        first = np.lexsort((self.luck[more], -self.lowest[end]))[0]
        return -self.lowest[end[first]], self.luck[more][first]


class RankedRoom(MachinesInOrder):
    """Machines that are filled by the ranks of a rule; `draw` breaks its ties, without it the first machine wins.

    Behind the machines there is a row for each kind: an empty machine that stands for all empty ones of the kind.
    """

    def __init__(self, problem: Problem, machines: Rows, rule: str, draw: np.random.Generator | None) -> None:
        _, first, kind, left = np.unique(
            problem.kind[machines], return_index=True, return_inverse=True, return_counts=True
        )
        rows = np.concatenate((machines, machines[first]))
        super().__init__(problem, rows)
        self._draw, self._size, self._needs = draw, len(machines), needs(problem.classes.demand)
        # How many machines each row stands for, and the row that stands for each machine: its own once it holds a task.
        self._stands_for = np.concatenate((np.zeros(len(machines), dtype=np.int64), left))
        self._standing = (len(machines) + kind).astype(np.intp)
        self._columns = _ranked(problem.packed)
        self._rank, self._devices = rank_of(rule, problem, self._columns)
        self._offered = problem.capacity[machines][:, self._devices].sum(axis=0)
        more = sought_of(problem, self._devices)[rows]
        nodes = offered(problem.packed[np.ix_(rows, self._columns)])
        self._held = held(np.zeros((len(rows), len(self._columns))), nodes, Sought(more, np.ones(len(self._devices))))

    @property
    def allocated(self) -> Floats:
        """What the machines hold [M', R]."""
        return self._allocated[: self._size]

    def able(self, task_class: int, group: Group) -> Mask:
        """Return which machines have room for a task [M'], whatever it has to do with others."""
        return super().able(task_class, group)[: self._size]

    def choose(
        self, task_class: int, wanted: int, group: Group, allowance: Allowance | None = None
    ) -> tuple[Rows, Counts]:
        """Return machines [K] and how many tasks of the class each gets [K]."""
        rows, taken, _ = self._chosen(task_class, wanted, group, allowance)
        return rows, taken

    def places(
        self, task_class: int, wanted: int, group: Group, allowance: Allowance | None
    ) -> tuple[Rows, Sequence[Key]]:
        """Return the machine of each place [P] in the order in which they would be taken, with their turns."""
        rows, _, turns = self._chosen(task_class, wanted, group, allowance)
        if turns is None:
            return rows, []
        machine, keys = turns.ordered(wanted)
        return rows[machine], keys

    def _chosen(
        self, task_class: int, wanted: int, group: Group, allowance: Allowance | None
    ) -> tuple[Rows, Counts, "_Turns | None"]:
        """Return machines [K], how many tasks each gets [K], and the turns of places; None where there is none."""
        # 1. Only the `wanted` best machines can get any: each has room for one at least. The best come first.
        rows, first, luck = self._best(task_class, wanted, group, allowance)
        if not len(rows):
            return rows, np.empty(0, dtype=np.int64), None
        # One gets no more than are left when each before it has one.
        times = np.minimum(self._times(task_class, rows, wanted, group, allowance), wanted - np.arange(len(rows)))
        # 2. What the first of them take by their first places, until no other place could come before the last one.
        demand, sums, most = self._classes.demand[task_class][self._columns], times.cumsum(), int(times.max())
        count = min(max(_MACHINES, int(sums.searchsorted(wanted)) + 1), len(rows))
        depth = most if sums[count - 1] <= _PLACES else max(_PLACES // count, 1)
        while True:
            turns = self._turns(demand, rows[:count], np.minimum(times[:count], depth), luck[:count])
            taken, last = turns.taken(wanted)
            deep = depth >= most or last <= turns.ends(times[:count] > depth)
            wide = count >= len(rows) or last < (-first[count], luck[count])
            if deep and wide:
                break
            depth, count = depth if deep else 4 * depth, count if wide else 4 * count
        return rows[:count], taken, turns

    def _turns(self, demand: Floats, rows: Rows, times: Counts, luck: Rows) -> "_Turns":
        """Return the first places on these machines, so many on each [K]."""
        machine, number = _places(times)
        there = rows[machine]
        nodes = self._held.nodes.at(there)
        allocated = self._held.allocated.take(there, axis=0) + number[:, np.newaxis] * demand
        ranks = self._rank(demand, held(allocated, nodes, self._held.sought.at(there)))
        return _Turns(times, machine, _lowest_so_far(ranks, machine, number), luck)

    def take(self, rows: Rows, taken: Counts, task_class: int, group: Group) -> None:
        """Put so many tasks of the class on each of these machines [K]."""
        super().take(rows, taken, task_class, group)
        self._held.now(rows, self._allocated.take(rows, axis=0).take(self._columns, axis=1))
        if len(self._devices):
            self._held.sought.now(self.allocated[:, self._devices].sum(axis=0), self._offered)
        new = rows[self._stands_for[rows] == 0]
        np.subtract.at(self._stands_for, self._standing[new], 1)
        self._stands_for[new], self._standing[new] = 1, new

    def _best(
        self, task_class: int, wanted: int, group: Group, allowance: Allowance | None
    ) -> tuple[Rows, Floats, Rows]:
        """Return the `wanted` best machines with room, the best first, their ranks, and the luck that orders equals."""
        demand = self._classes.demand[task_class][self._columns]
        # 1. What has room, and its ranks; no more rows than machines are wanted, but for equal ones.
        standing = self._with_room(task_class, group, allowance)
        ranks = self._rank(demand, self._held.at(standing))
        if len(standing) > wanted:
            enough = (ranks >= np.partition(ranks, -wanted)[-wanted]).nonzero()[0]
            standing, ranks = standing.take(enough), ranks.take(enough)
        if not len(standing):
            return standing, ranks, standing
        # 2. The rank of the last of the best.
        order = (-ranks).argsort()
        places = self._stands_for[standing[order]].cumsum()
        last = ranks[order[min(int(places.searchsorted(wanted)), len(places) - 1)]]
        # 3. All above this rank, and of those that have it as many as are missing.
        above, equal = self._machines_of(standing[ranks > last]), np.sort(self._machines_of(standing[ranks == last]))
        missing = wanted - len(above)
        lucky = None if allowance is None else allowance.luck
        if missing < len(equal):
            if lucky is not None:
                equal = equal[np.argsort(lucky[equal])[:missing]]
            else:
                equal = equal[:missing] if self._draw is None else self._draw.choice(equal, missing, replace=False)
        rows = np.concatenate((above, equal))
        ranks = ranks[standing.searchsorted(self._standing[rows])]
        luck = lucky[rows] if lucky is not None else self._luck(rows)
        order = np.lexsort((luck, -ranks))
        return rows[order], ranks[order], luck[order]

    def _luck(self, rows: Rows) -> Rows:
        """Return what orders equal machines [K]."""
        return rows if self._draw is None else self._draw.permutation(len(rows))

    def _machines_of(self, standing: Rows) -> Rows:
        """Return the machines that these rows stand for: those that hold something, then the empty ones."""
        own = int(standing.searchsorted(self._size))
        if own == len(standing):
            return standing
        chosen = np.zeros(len(self._stands_for), dtype=np.bool_)
        chosen[standing[own:]] = True
        return np.concatenate((standing[:own], chosen.take(self._standing).nonzero()[0]))

    def _with_room(self, task_class: int, group: Group, allowance: Allowance | None) -> Rows:
        """Return the rows that stand for machines with room for one task more."""
        mask = self._classes.mask[task_class]
        room = (self._stands_for > 0) & np.logical_and.reduce(self._free >= self._needs[task_class, :, np.newaxis])
        if self._bound[mask]:
            room &= self._masks[mask]
        used = self._in_group.get(group) if group.row != NO_GROUP else None
        if used is not None:
            room &= used < self._classes.at_most[task_class]
        if allowance is not None:  # others are where there are tasks, so it allows all empty ones of a kind, or none
            may = self._standing[allowance.allowed & (allowance.most > 0)]
            room &= np.bincount(may, minlength=len(room)) > 0
        for devices in self._single_devices:
            room &= devices.fit(task_class)
        return np.flatnonzero(room)


def _ranked(packed: Floats) -> Rows:
    """Return the dimensions that ranks look at: CPU and memory, and what else says how well a task suits."""
    says = np.flatnonzero((np.isfinite(packed) & (packed > 0)).any(axis=0))
    return np.union1d(says, np.array([CPU_INDEX, MEMORY_INDEX], dtype=np.intp))


def _places(times: Counts) -> tuple[Rows, Counts]:
    """Return the machine of each place, and how many places of that machine come before."""
    machine = np.arange(len(times)).repeat(times)
    return machine, np.arange(len(machine)) - (times.cumsum() - times).take(machine)


def _lowest_so_far(ranks: Floats, machine: Rows, number: Counts) -> Floats:
    """Return of each place the lowest rank up to there on its machine."""
    table = np.full((int(machine[-1]) + 1, int(number.max()) + 1), np.inf)
    table[machine, number] = ranks
    return np.minimum.accumulate(table, axis=1)[machine, number]
