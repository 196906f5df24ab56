"""What pods of task classes demand, as vectors. Each distinct demand is made a vector once for a layout."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.layout import Layout
from extender.control.backlog.backlog import TaskClass

_MOST_FORGOTTEN = 1_000
"""So many classes more than twice those that there are may be remembered."""


class DemandVectors:
    """Remembers the demand of each class for the latest layout. One thread."""

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._row_of_class: dict[TaskClass, int] = {}
        self._row_of_demand: dict[tuple[tuple[str, float], ...], int] = {}
        self._table: list[Floats] = []

    def of(self, classes: Sequence[TaskClass], layout: Layout) -> Floats:
        """Return what a pod of each class demands [C, R]."""
        if self._layout is not layout:
            self._forget(layout)
        known = self._row_of_class
        rows = [known[task_class] if task_class in known else self._add(task_class, layout) for task_class in classes]
        return np.array(self._table)[rows] if rows else np.zeros((0, len(layout.axis)))

    def trim(self, classes: int) -> None:
        """Forget all where many more classes are remembered than this number of classes that there are."""
        if len(self._row_of_class) > 2 * classes + _MOST_FORGOTTEN:
            self._forget(None)

    def _forget(self, layout: Layout | None) -> None:
        self._layout, self._row_of_class, self._row_of_demand, self._table = layout, {}, {}, []

    def _add(self, task_class: TaskClass, layout: Layout) -> int:
        demand = tuple(sorted(task_class.template.demand.items()))
        row = self._row_of_demand.get(demand)
        if row is None:
            row = self._row_of_demand[demand] = len(self._table)
            self._table.append(layout.vector(task_class.template.demand))
        self._row_of_class[task_class] = row
        return row
