"""Places classes of tasks on machines: a class at a time, with the same result as task by task.

But for how much it counts that devices are sought: that is as with the first task of the class.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Rows
from lab.packing.first import FirstRoom
from lab.packing.model import Problem
from lab.packing.ranked import RankedRoom
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
    """Machines as they fill up, by one rule."""

    def __init__(self, problem: Problem, machines: Rows, rule: str, draw: np.random.Generator | None) -> None:
        self._classes, self._machines = problem.classes, machines
        self._room = FirstRoom(problem, machines) if rule == FIRST_FIT else RankedRoom(problem, machines, rule, draw)

    @property
    def allocated(self) -> Floats:
        """What the machines hold [M', R]."""
        return self._room.allocated

    def place(self, row: int, *, clone: int = 0) -> Placed:
        """Place as many tasks of the class as have room; a clone of it keeps apart from tasks of the same clone."""
        wanted, group = int(self._classes.count[row]), Group(int(self._classes.group[row]), clone)
        rows, taken = self._room.choose(row, wanted, group)
        there = taken > 0
        rows, taken = rows[there], taken[there]
        self._room.take(rows, taken, row, group)
        return Placed(row, self._machines[rows], taken)
