"""What a scheduler decided, held against what it was told: only what exists, waits and is there may start."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Mask, Rows
from extender.errors import DovetailError
from extender.planner import Assignments


@dataclass(frozen=True, slots=True)
class WaitingTasks:
    """What a plan was made for: classes [C] by name, how many of their tasks wait and how many they have.

    `reads` [C] says which read blocks; a class's tasks are the rows from `first_task` [C] on of `free` [T], which says
    which wait, and of `copies` [T, K], where their blocks are; `scratch` [T] is to write on.
    """

    names: Sequence[str]
    count: Counts
    tasks: Counts
    reads: Mask
    first_task: Rows
    free: Mask
    copies: Rows
    nodes: int
    scratch: Rows


@dataclass(frozen=True, slots=True)
class CheckedAssignments:
    """Assignments that can be done [A].

    `task` is a row of `free`, -1 where any will do; `source` is the task's own node there.
    """

    task_class: Rows
    node: Rows
    task: Rows
    source: Rows


def check_assignments(assignments: Assignments, offer: WaitingTasks) -> CheckedAssignments:
    """Return what a plan decided.

    Raises DovetailError, with the class, for an unknown row, more tasks than wait, one task twice or one that does not
    wait, and a source without a copy.
    """
    row, node = _rows(assignments.task_class), _rows(assignments.node)
    _check_rows("class", row, len(offer.names))
    _check_rows("node", node, offer.nodes)
    taken = np.bincount(row, minlength=len(offer.names))
    if (taken > offer.count).any():
        worst = int((taken - offer.count).argmax())
        raise DovetailError(
            f"{offer.names[worst]}: the scheduler starts {taken[worst]} tasks of {offer.count[worst]} that wait"
        )
    task, source = np.full(len(row), -1, dtype=np.intp), node
    reads = np.flatnonzero(offer.reads[row])
    if len(reads):
        source = node.copy()
        source[reads] = _rows(assignments.source)[reads]
        task[reads] = _block_tasks(offer, row[reads], _rows(assignments.task)[reads], source[reads])
    return CheckedAssignments(row, node, task, source)


def _rows(given: Rows) -> Rows:
    return np.ascontiguousarray(given, dtype=np.intp)


def _check_rows(what: str, rows: Rows, count: int) -> None:
    if len(rows) and rows.view(np.uintp).max() >= count:  # below 0 is far above, without its sign
        unknown = rows[(rows < 0) | (rows >= count)][0]
        raise DovetailError(f"the scheduler names {what} {unknown}; there are {count}, from 0")


def _block_tasks(offer: WaitingTasks, row: Rows, task: Rows, source: Rows) -> Rows:
    """Return the tasks that read blocks as rows of all tasks, once they are known to wait and to have their source."""
    _refuse((task < 0) | (task >= offer.tasks[row]), offer, row, task, "there is no such task")
    of_all = offer.first_task[row] + task
    places = np.arange(len(of_all))
    offer.scratch[of_all] = places  # of two that are the same, the last remains
    again = offer.scratch[of_all] != places
    without = (offer.copies[of_all] != source[:, None]).all(axis=1)
    if (again | without | ~offer.free[of_all]).any():
        _refuse(~offer.free[of_all], offer, row, task, "that task does not wait")
        _refuse(again, offer, row, task, "the scheduler starts it twice")
        _refuse(without, offer, row, task, "the source that the scheduler names has no copy of its block")
    return of_all


def _refuse(wrong: Mask, offer: WaitingTasks, row: Rows, task: Rows, why: str) -> None:
    if wrong.any():
        first = int(wrong.argmax())
        raise DovetailError(f"{offer.names[row[first]]}, task {task[first]}: {why}")
