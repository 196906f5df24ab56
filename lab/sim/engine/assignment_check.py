"""Check what a scheduler decided: only tasks that exist and wait may start, and only on nodes that exist."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Mask, Rows
from extender.errors import DovetailError
from extender.planner import Assignments


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTasks:
    """What waits while a plan is made: classes [C] by name, how many of their tasks wait, and how many they have.

    `reads` [C] says which classes read blocks. The tasks of a class are the rows from `first_task` [C] on, of
    `unstarted` [T] and of `copies` [T, K], the nodes that hold each task's block. `scratch` [T] may be overwritten.
    """

    names: Sequence[str]
    count: Counts
    tasks: Counts
    reads: Mask
    first_task: Rows
    unstarted: Mask
    copies: Rows
    nodes: int
    scratch: Rows


@dataclass(frozen=True, slots=True)
class CheckedAssignments:
    """Assignments that can be carried out [A].

    `task` is a row of all tasks, -1 where any task of the class will do; there, `source` is the task's own node.
    """

    task_class: Rows
    node: Rows
    task: Rows
    source: Rows


def check_assignments(assignments: Assignments, waiting: WaitingTasks) -> CheckedAssignments:
    """Return the assignments of a plan with tasks as rows of all tasks.

    Raises DovetailError, naming the class, for an unknown row, for more tasks than wait, for a task that starts twice
    or does not wait, and for a source without a copy.
    """
    # 1. Classes and nodes exist.
    row, node = _rows(assignments.task_class), _rows(assignments.node)
    _check_rows("class", row, len(waiting.names))
    _check_rows("node", node, waiting.nodes)
    # 2. No class starts more tasks than wait.
    started = np.bincount(row, minlength=len(waiting.names))
    if (started > waiting.count).any():
        worst = int((started - waiting.count).argmax())
        raise DovetailError(
            f"{waiting.names[worst]}: the scheduler starts {started[worst]} tasks of {waiting.count[worst]} that wait"
        )
    # 3. Tasks that read blocks are named one by one, each with the node that it reads from.
    task, source = np.full(len(row), -1, dtype=np.intp), node
    reads = np.flatnonzero(waiting.reads[row])
    if len(reads):
        source = node.copy()
        source[reads] = _rows(assignments.source)[reads]
        task[reads] = _block_tasks(waiting, row[reads], _rows(assignments.task)[reads], source[reads])
    return CheckedAssignments(row, node, task, source)


def _rows(array: Rows) -> Rows:
    return np.ascontiguousarray(array, dtype=np.intp)


def _check_rows(axis: str, rows: Rows, count: int) -> None:
    if len(rows) and rows.view(np.uintp).max() >= count:  # without its sign, a negative number is a huge one
        unknown = rows[(rows < 0) | (rows >= count)][0]
        raise DovetailError(f"the scheduler names {axis} {unknown}; there are {count}, from 0")


def _block_tasks(waiting: WaitingTasks, row: Rows, task: Rows, source: Rows) -> Rows:
    """Return tasks that read blocks as rows of all tasks. Raises DovetailError for a wrong task or source."""
    _refuse((task < 0) | (task >= waiting.tasks[row]), waiting, row, task, "there is no such task")
    task_row = waiting.first_task[row] + task
    places = np.arange(len(task_row))
    waiting.scratch[task_row] = places  # of two equal tasks, the later place stays
    twice = waiting.scratch[task_row] != places
    no_copy = (waiting.copies[task_row] != source[:, None]).all(axis=1)
    started = ~waiting.unstarted[task_row]
    if (twice | no_copy | started).any():
        _refuse(started, waiting, row, task, "that task does not wait")
        _refuse(twice, waiting, row, task, "the scheduler starts it twice")
        _refuse(no_copy, waiting, row, task, "the source that the scheduler names has no copy of its block")
    return task_row


def _refuse(wrong: Mask, waiting: WaitingTasks, row: Rows, task: Rows, reason: str) -> None:
    if wrong.any():
        first = int(wrong.argmax())
        raise DovetailError(f"{waiting.names[row[first]]}, task {task[first]}: {reason}")
