"""Where classes fit on the nodes that a plan goes over: as it was when it began to, less who is out by now."""

from collections.abc import Iterator

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import DISK_READ_INDEX


class Fitting:
    """The classes `rows` [k] on `nodes` [n]. What others took of a node since is for a closer look."""

    def __init__(self, rows: Rows, nodes: Rows, near: Mask, far: Mask) -> None:
        """Take where they fit reading there, and where reading from elsewhere, [rows, nodes] each."""
        self._rows, self._nodes = rows, nodes
        self._column = {node: column for column, node in enumerate(nodes.tolist())}
        self._near, self._far = np.ascontiguousarray(near.T), np.ascontiguousarray(far.T)
        self._fits = self._near | self._far
        self._candidates = self._fits.sum(axis=1)

    def in_order(self, room: Floats) -> Iterator[int]:
        """Yield the nodes on which anybody fits when it is their turn, those with the most `room` [n] first."""
        order = np.argsort(-room, kind="stable")
        for column in order[self._candidates[order] > 0].tolist():
            if self._candidates[column]:
                yield self._nodes.item(column)

    def at(self, node: int) -> tuple[Rows, Mask, Mask]:
        """Return the classes that fit on a node, and which of them reading there, and from elsewhere."""
        column = self._column[node]
        places: Rows = self._fits[column].nonzero()[0]
        return self._rows[places], self._near[column][places], self._far[column][places]

    def leave_out(self, task_class: int) -> None:
        """Leave a class out everywhere."""
        mine = self._rows == task_class
        self._candidates -= self._fits[:, mine].sum(axis=1)
        self._fits[:, mine] = False

    def leave_out_on(self, node: int, task_class: int) -> None:
        """Leave a class out on one node."""
        column = self._column[node]
        self._candidates[column] -= 1
        self._fits[column, self._rows == task_class] = False


def within(needs: Floats, rows: Rows, limit: Floats) -> Mask:
    """Return who of these rows needs no more than the limit [R]; `needs` [C, R]."""
    return np.asarray((needs.take(rows, axis=0) <= limit).all(axis=1))


def within_disk(needs: Floats, rows: Rows, limit: Floats) -> Mask:
    """Return the same where only the disk read is in doubt."""
    return np.asarray(needs[:, DISK_READ_INDEX][rows] <= limit.item(DISK_READ_INDEX))
