"""The rows of the planner's classes: one for each open class, or several where its pods read from different nodes.

Their arrays follow from which rows there are and which nodes there are. While both are the same, so are the objects:
the planner knows by this what it need not prepare again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Floats, Mask
from extender.cluster.eligibility import Constraints
from extender.cluster.ledger.layout import Layout
from extender.cluster.pods.reading import besides_reading, reading
from extender.cluster.resources import Amounts
from extender.control.backlog.backlog import Backlog, TaskClass
from extender.control.backlog.task_classes import waits_as
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.plan_input.demand_vectors import DemandVectors
from extender.control.plan_input.preferred_nodes import PreferredNodes, Read


class ClassRow(NamedTuple):
    """A class, or those of its pods that `read` alike; `place` is that of its class, `waiting` how many pods wait."""

    task_class: TaskClass
    place: int
    waiting: int
    read: Read | None

    @property
    def suffix(self) -> str:
        """What sets the row's name apart from other rows of its class."""
        return "" if self.read is None else self.read.suffix

    @property
    def demand(self) -> Amounts:
        """What a pod takes of its node besides reading its blocks."""
        pod = self.task_class.template
        return pod.demand if self.read is None or self.read.blocks is None else besides_reading(pod)

    @property
    def reading(self) -> float:
        """How fast a pod reads its block, in bytes per second."""
        return reading(self.task_class.template) if self.read is not None and self.read.blocks is not None else 0.0


@dataclass(frozen=True, slots=True)
class ClassArrays:
    """What stays as it is while the same rows [C] are open on the same nodes; None: there is no such thing.

    The arrays are those of `cluster.waiting.Waiting`.
    """

    classes: Sequence[TaskClass]
    suffixes: Sequence[str]
    names: Sequence[str]
    layout: Layout
    nodes_version: int
    demand: Floats
    reading: Floats
    priority: Counts | None
    barred: Mask | None
    preferred: NDArray[np.int16] | None
    waits_as: Sequence[str]

    def suits(self, classes: Sequence[TaskClass], suffixes: Sequence[str], layout: Layout, nodes_version: int) -> bool:
        """Say whether these are the arrays of these rows on these nodes."""
        same_nodes = self.layout is layout and self.nodes_version == nodes_version
        return same_nodes and self.classes == classes and self.suffixes == suffixes


class ClassRowsBuilder:
    """Makes the rows of classes and their arrays. Under the backlog's lock; one thread."""

    def __init__(
        self, backlog: Backlog, allowed_nodes: AllowedNodes, preferred_nodes: PreferredNodes, vectors: DemandVectors
    ) -> None:
        self._backlog, self._vectors = backlog, vectors
        self._allowed_nodes, self._preferred_nodes = allowed_nodes, preferred_nodes
        self._kept: ClassArrays | None = None

    def rows(self, classes: Sequence[TaskClass], counts: Sequence[int], layout: Layout) -> list[ClassRow]:
        """Return the rows of those classes of which pods wait; so many pods of each class do."""
        rows: list[ClassRow] = []
        for place, (task_class, count) in enumerate(zip(classes, counts, strict=True)):
            if not count:
                continue
            reads = self._preferred_nodes.reads(task_class, layout) if task_class.template.inputs else None
            if reads is None:
                rows.append(ClassRow(task_class, place, count, None))
            else:
                rows += [ClassRow(task_class, place, read.waiting, read) for read in reads]
        self._preferred_nodes.forget_but([task_class for task_class, n in zip(classes, counts, strict=True) if n])
        return rows

    def arrays(self, rows: Sequence[ClassRow], layout: Layout) -> ClassArrays:
        """Return the arrays of these rows: the same object while rows and nodes are the same."""
        classes, suffixes = [row.task_class for row in rows], [row.suffix for row in rows]
        version = self._backlog.nodes_version
        if self._kept is None or not self._kept.suits(classes, suffixes, layout, version):
            priority = np.array([task_class.template.priority for task_class in classes], dtype=np.int64)
            self._kept = ClassArrays(
                classes=classes,
                suffixes=suffixes,
                names=[task_class.name + suffix for task_class, suffix in zip(classes, suffixes, strict=True)],
                layout=layout,
                nodes_version=version,
                demand=self._demand(rows, layout),
                reading=np.array([row.reading for row in rows], dtype=np.float64),
                priority=priority if len(set(priority.tolist())) > 1 else None,
                barred=self._barred(classes, layout),
                preferred=self._preferred(classes, layout),
                waits_as=[waits_as(task_class.job.queue, task_class.job.name) for task_class in classes],
            )
        return self._kept

    def _demand(self, rows: Sequence[ClassRow], layout: Layout) -> Floats:
        demand = self._vectors.of([row.task_class for row in rows], layout)
        for index, row in enumerate(rows):
            if row.read is not None:
                demand[index] = layout.vector(row.demand)
        return demand

    def _barred(self, classes: Sequence[TaskClass], layout: Layout) -> Mask | None:
        """Return on which nodes classes may not run [C, N]; None where all may run everywhere."""
        rows: dict[Constraints, int] = {}
        row = [rows.setdefault(task_class.template.constraints, len(rows)) for task_class in classes]
        allowed = [self._allowed_nodes.allowed_by(constraints, layout) for constraints in rows]
        barred = ~np.array(allowed, dtype=np.bool_)
        return barred[row] if barred.any() else None

    def _preferred(self, classes: Sequence[TaskClass], layout: Layout) -> NDArray[np.int16] | None:
        """Return how far nodes are from those that classes prefer [C, N]; None where none prefers any."""
        distances = {
            row: distance
            for row, task_class in enumerate(classes)
            if (task_class.template.prefers or task_class.template.constraints.volumes)
            and (distance := self._preferred_nodes.levels(task_class.template, layout)) is not None
        }
        if not distances:
            return None
        preferred = np.zeros((len(classes), len(layout.names)), dtype=np.int16)
        for row, distance in distances.items():
            preferred[row] = distance
        return preferred
