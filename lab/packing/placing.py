"""Places classes of tasks on machines: a class at a time, with the same result as task by task.

But for how much it counts that devices are sought: that is as with the first task of the class.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Counts, Floats, Rows
from lab.packing.evenly import Key, at_most, cells_of, shared_out
from lab.packing.first import FirstRoom
from lab.packing.keeping import Allowance, Keeping
from lab.packing.model import Problem
from lab.packing.ranked import RankedRoom
from lab.packing.relations import UNTIED
from lab.packing.room import Group
from lab.packing.rules import AT_RANDOM, FIRST_FIT


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
    placed, pending, complete, waiting = list[Placed](), 0, True, dict[int, int]()
    for row in order.tolist():
        part = filling.place(row)
        placed.append(part)
        missing = int(problem.classes.count[row] - part.count.sum())
        if missing and problem.classes.ties[row].waits:
            waiting[row] = missing
            continue
        pending += missing
        if pending > give_up_above:
            complete = False
            break
    if complete:
        placed += _tried_again(filling, waiting)
    return Packing(machines, filling.allocated, placed, pending + sum(waiting.values()), complete)


def _tried_again(filling: "Filling", waiting: dict[int, int]) -> list[Placed]:
    """Place those who wait for others to come, as long as any finds a place; takes them from `waiting`."""
    placed = list[Placed]()
    while True:
        parts = [filling.place(row, wanted=missing) for row, missing in waiting.items()]
        parts = [part for part in parts if len(part.count)]
        if not parts:
            return placed
        placed += parts
        for part in parts:
            waiting[part.task_class] -= int(part.count.sum())
            if not waiting[part.task_class]:
                del waiting[part.task_class]


class Filling:
    """Machines as they fill up, by one rule."""

    def __init__(self, problem: Problem, machines: Rows, rule: str, draw: np.random.Generator | None) -> None:
        self._classes, self._machines, self._draw = problem.classes, machines, draw
        self._room = FirstRoom(problem, machines) if rule == FIRST_FIT else RankedRoom(problem, machines, rule, draw)
        self._keeping = None if problem.relations is None else Keeping(problem.relations, machines)

    @property
    def allocated(self) -> Floats:
        """What the machines hold [M', R]."""
        return self._room.allocated

    def place(self, row: int, *, wanted: int | None = None, clone: int = 0) -> Placed:
        """Place as many tasks of the class as have room, of all or those that are `wanted`.

        A clone of it has to do with tasks of the same clone only.
        """
        count, group = int(self._classes.count[row]) if wanted is None else wanted, self._group(row, clone)
        if self._keeping is None or self._classes.ties[row] == UNTIED:
            rows, taken = self._taken(row, group, *self._room.choose(row, count, group))
        else:
            rows, taken = self._place_tied(self._keeping, row, count, group)
        return Placed(row, self._machines[rows], taken)

    def _group(self, row: int, clone: int) -> Group:
        return Group(int(self._classes.group[row]), clone or self._classes.ties[row].copy)

    def _taken(self, row: int, group: Group, rows: Rows, taken: Counts) -> tuple[Rows, Counts]:
        there = taken > 0
        rows, taken = rows[there], taken[there]
        self._room.take(rows, taken, row, group)
        return rows, taken

    def _place_tied(self, keeping: Keeping, row: int, wanted: int, group: Group) -> tuple[Rows, Counts]:
        """Place a class that has to do with others, or whose tasks have to do with one another."""
        ties, on = self._classes.ties[row], np.zeros(len(self._machines), dtype=np.int64)
        while wanted:
            # Here `on` are placed [M'], and so many are still wanted.
            able = self._room.able(row, group) if ties.spread else None
            allowance = keeping.allowance(ties, group.clone, able)
            now = min(wanted, allowance.limit)
            rows, taken = self._taken(row, group, *self._chosen(row, now, group, allowance))
            keeping.take(rows, taken, ties, group.clone)
            on[rows] += taken
            wanted -= int(taken.sum())
            if not len(rows) or now < allowance.limit:
                break
        rows = np.flatnonzero(on)
        return rows, on[rows]

    def _chosen(self, row: int, wanted: int, group: Group, allowance: Allowance) -> tuple[Rows, Counts]:
        if not allowance.caps:
            return self._room.choose(row, wanted, group, allowance)
        # 1. The places of each cell, as if it had no others beside it.
        allowed = allowance.allowed & self._room.able(row, group)
        cells, cell = cells_of(allowance.caps, allowed)
        luck = None if self._draw is None else self._draw.permutation(len(self._machines))
        machines, turns = list[Rows](), list[Sequence[Key]]()
        for number, most in enumerate(at_most(allowance.caps, cells, wanted)):
            there = replace(allowance, allowed=cell == number, luck=luck)
            rows, keys = self._room.places(row, most, group, there)
            machines.append(rows)
            turns.append(keys)
        # 2. Those that are taken, in turn.
        taken = shared_out(turns, cells, allowance.caps, wanted)
        on = np.concatenate([rows[:count] for rows, count in zip(machines, taken, strict=True)] or [cell[:0]])
        rows, counts = np.unique(on, return_counts=True)
        return rows, counts.astype(np.int64)
