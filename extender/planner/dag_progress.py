"""How far each job has got in the order of its DAG while a plan is made."""

from collections.abc import Callable

import numpy as np

from extender.arrays import Floats, Mask, Rows, rows_by
from extender.cluster.waiting import Waiting
from extender.policy.dag_order import order_factor


class DagProgress:
    """Follows the order of jobs that are DAGs; `factor` [C] is `policy.dag_order.order_factor` of each class now.

    `ordered` [C] are the classes whose jobs have an order that counts.
    """

    def __init__(self, waiting: Waiting, *, rank: float) -> None:
        """Take what waits; without an order of any job all factors are 1."""
        self.factor: Floats = np.ones(len(waiting.count))
        self.ordered: Mask = np.zeros(len(waiting.count), dtype=np.bool_)
        self._rank, self._priority = rank, np.empty(0)
        self._next: Rows = np.full(len(waiting.count), -1, dtype=np.intp)
        self._end: Rows = self._next
        self._classes: list[Rows] = []
        order = waiting.order if rank > 0 else None
        if order is None:
            return
        self._priority, self.ordered = order.priority, order.next >= 0
        self._next, self._end = order.next.copy(), order.next + waiting.count
        of_dag = rows_by(order.dag, int(order.dag.max(initial=-1)) + 1)
        nobody = np.empty(0, dtype=np.intp)
        self._classes = [of_dag[dag] if dag >= 0 else nobody for dag in order.dag.tolist()]
        for rows in of_dag:
            self._settle(rows)

    def __bool__(self) -> bool:
        """Whether any job has an order that counts."""
        return len(self._classes) > 0

    def rank(self, task_class: int) -> float | None:
        """Return the priority of the next task of a class in its DAG's order; None without an order that counts."""
        if not self._classes or not 0 <= self._next[task_class] < self._end[task_class]:
            return None
        return self._priority.item(self._next[task_class])

    def start(self, task_class: int) -> None:
        """Count the next task of a class as started: the rank of the class moves, and perhaps its job's first."""
        if self._classes and self._next[task_class] >= 0:
            self._next[task_class] += 1
            self._settle(self._classes[task_class])

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is counted from now on."""
        places, factor = self._next.copy(), self.factor.copy()

        def undo() -> None:
            self._next[:], self.factor[:] = places, factor

        return undo

    def _settle(self, rows: Rows) -> None:
        """Set the factors of the classes of one DAG."""
        places = self._next[rows]
        waits = (places >= 0) & (places < self._end[rows])
        priority = np.where(waits, self._priority[np.where(waits, places, 0)], -np.inf)
        self.factor[rows] = order_factor(priority, rank=self._rank)
