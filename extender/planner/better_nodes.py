"""Nodes of a far better shape: where a task goes instead, so that those of other shapes stay free for others."""

import numpy as np

from extender.planner.prepared import Prepared, Shapes
from extender.planner.room import Room

_FAR_WORSE = 2.0
"""A shape of nodes is far worse for a class than another by whose misfit its own is so many times."""


class BetterNodes:
    """For each class and each shape of nodes the node of a far better shape that has room for it."""

    def __init__(self, classes: Prepared, shapes: Shapes, room: Room) -> None:
        """Take the shapes of the nodes and their `room`, which changes while the plan is made."""
        self._classes, self._shapes, self._room = classes, shapes, room
        self._better: dict[tuple[int, int], int] = {}

    def forget(self) -> None:
        """Look anew from now on, as nodes may have more room than before."""
        self._better.clear()

    def node_for(self, task_class: int, node: int) -> int:
        """Return a node with room now whose shape suits the class far better than that of this one; -1 for none."""
        shapes, room = self._shapes, self._room
        if not self._classes.own[task_class] or room.beyond is not None:
            return -1
        # 1. The last one found for the class and a node of this shape, while it has room. Where there was none there is
        #    none: room only gets less.
        row, key = np.array([task_class]), (task_class, shapes.of_node.item(node))
        better = self._better.get(key)
        if better is not None and (better < 0 or room.fits(row, np.array([better]))[0].all()):
            return better
        # 2. Else the one that is filled first of those of the shape that suits it best.
        misfit = shapes.misfit(self._classes.whole[task_class])
        nodes = (_FAR_WORSE * misfit < misfit[key[1]])[shapes.of_node].nonzero()[0]
        nodes = nodes[room.fits(row, nodes)[0][0]]
        order = np.lexsort((-room.order(nodes), misfit[shapes.of_node[nodes]]))
        self._better[key] = nodes.item(order[0]) if len(nodes) else -1
        return self._better[key]
