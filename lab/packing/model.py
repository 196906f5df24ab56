"""A cluster at one moment: machines, and classes of equal tasks with where they may go."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.eligibility import Constraints
from extender.cluster.ledger.layout import Layout, layout_of
from extender.cluster.model import Node
from lab.packing.relations import Relations, Ties, relate
from lab.packing.task import PackingTask

NO_GROUP = -1


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes of equal tasks, in order of arrival.

    `demand` [C, R], `count` [C] tasks each, `job` [C]. `mask` [C] is the row of `masks` [K, M] that says which machines
    may take the class. `group` [C] is the group whose tasks may be `at_most` [C] on one machine, -1 for none.
    `ties` [C] are what it has to do with other classes.
    """

    demand: Floats
    count: Counts
    mask: Rows
    masks: Mask
    group: Rows
    at_most: Counts
    job: tuple[str, ...]
    ties: tuple[Ties, ...]

    @property
    def tasks(self) -> int:
        """How many tasks all classes have."""
        return int(self.count.sum())

    def of(self, rows: Rows) -> "Classes":
        """Return these classes alone."""
        return replace(
            self,
            demand=self.demand[rows],
            count=self.count[rows],
            mask=self.mask[rows],
            group=self.group[rows],
            at_most=self.at_most[rows],
            job=tuple(self.job[row] for row in rows.tolist()),
            ties=tuple(self.ties[row] for row in rows.tolist()),
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """Machines and the workload that they should hold.

    `capacity` [M, R] is what machines offer to the workload: without what leaves with them (DaemonSet pods); infinite
    where not limited. `packed` [M, R] is the same, infinite also in dimensions that do not say how well a task suits.
    `allocated` [M, R] is what the workload's tasks take where they are now, 0 where nobody knows. Machines of one
    `kind` [M] offer the same and may take the same classes. Without `relations` no class has to do with another.
    """

    layout: Layout
    capacity: Floats
    packed: Floats
    allocated: Floats
    classes: Classes
    kind: Rows
    relations: Relations | None = None

    @property
    def machines(self) -> int:
        """How many machines there are."""
        return len(self.capacity)

    def grown(self, times: int) -> "Problem":
        """Return the cluster beside so many less one clones of itself, with the same workload."""

        def tiled(array: Floats) -> Floats:
            return np.tile(array, (times, 1))

        masks = np.tile(self.classes.masks, (1, times))
        return replace(
            self,
            capacity=tiled(self.capacity),
            packed=tiled(self.packed),
            allocated=tiled(self.allocated),
            kind=np.tile(self.kind, times),
            classes=replace(self.classes, masks=masks),
            relations=None if self.relations is None else self.relations.grown(times),
        )


def problem_of(nodes: Sequence[Node], tasks: Sequence[PackingTask], leaving: Sequence[PackingTask] = ()) -> Problem:
    """Return machines and classes; `leaving` is what leaves with its node, and is there from the beginning.

    Tasks of one job with one demand and the same constraints are a class. A class arrives with its first task.
    """
    layout = layout_of({node.name: node for node in nodes})
    known = {node.name: node for node in nodes}
    machines = [known[name] for name in layout.names]
    capacity = layout.capacity.copy()
    for task in leaving:
        if task.node is not None:
            capacity[layout.rows[task.node]] -= layout.vector(task.demand)
    capacity = np.maximum(capacity, 0.0)
    allocated = np.zeros_like(capacity)
    for task in tasks:
        if task.node is not None and task.node in layout.rows:
            allocated[layout.rows[task.node]] += layout.vector(task.demand)
    packed = np.where(np.isfinite(layout.packed), capacity, np.inf)
    allows = Allowing(machines)
    relations, ties = relate(tasks, leaving, machines, allows)
    classes = _classes(layout, allows, tasks, ties)
    more = np.empty((len(machines), 0)) if relations is None else relations.told_apart_by()
    kind = _kinds(np.concatenate((capacity, packed, more), axis=1), classes.masks)
    return Problem(layout, capacity, packed, allocated, classes, kind, relations)


def _kinds(offers: Floats, masks: Mask) -> Rows:
    """Return the kind of each machine [M]."""
    kinds: dict[bytes, int] = {}
    return np.array(
        [
            kinds.setdefault(offered.tobytes() + takes.tobytes(), len(kinds))
            for offered, takes in zip(offers, masks.T, strict=True)
        ],
        dtype=np.intp,
    )


def _classes(layout: Layout, allows: "Allowing", tasks: Sequence[PackingTask], ties: Sequence[Ties]) -> Classes:
    counts: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], int] = {}
    for row in sorted(range(len(tasks)), key=lambda row: tasks[row].arrived):
        task = tasks[row]
        key = (task.job, tuple(sorted(task.demand.items())), task.constraints, task.group, task.at_most, ties[row])
        counts[key] = counts.get(key, 0) + 1
        first.setdefault(key, row)
    rows = list(first.values())
    firsts = [tasks[row] for row in rows]
    groups = {name: row for row, name in enumerate(dict.fromkeys(task.group for task in firsts if task.group))}
    constraints = {which: row for row, which in enumerate(dict.fromkeys(task.constraints for task in firsts))}
    masks = np.array([allows(which) for which in constraints], dtype=np.bool_)
    return Classes(
        demand=np.array([layout.vector(task.demand) for task in firsts]).reshape(len(firsts), len(layout.axis)),
        count=np.array(list(counts.values()), dtype=np.int64),
        mask=np.array([constraints[task.constraints] for task in firsts], dtype=np.intp),
        masks=masks.reshape(len(constraints), allows.machines),
        group=np.array([groups.get(task.group, NO_GROUP) for task in firsts], dtype=np.intp),
        at_most=np.array([task.at_most for task in firsts], dtype=np.int64),
        job=tuple(task.job for task in firsts),
        ties=tuple(ties[row] for row in rows),
    )


class Allowing:
    """Says which machines constraints allow; asks once for all machines that the constraints cannot tell apart."""

    def __init__(self, machines: Sequence[Node]) -> None:
        self._machines = machines
        self._alike: dict[tuple[frozenset[str], bool], tuple[Rows, Rows]] = {}

    @property
    def machines(self) -> int:
        """How many machines it is about."""
        return len(self._machines)

    def __call__(self, constraints: Constraints) -> Mask:
        """Return on which machines a task with these may run [M]."""
        first, which = self._told_apart_by(*_looked_at(constraints))
        answers = np.array([self._machines[row].allows(constraints) for row in first.tolist()], dtype=np.bool_)
        return np.asarray(answers[which])

    def _told_apart_by(self, keys: Set[str], by_name: bool) -> tuple[Rows, Rows]:
        """Return the first machine of each kind, and the kind of each machine [M]."""
        known = self._alike.get((frozenset(keys), by_name))
        if known is not None:
            return known
        kinds: dict[tuple[object, ...], int] = {}
        first, which = list[int](), list[int]()
        for row, node in enumerate(self._machines):
            labels = tuple(node.labels.get(key) for key in sorted(keys))
            kind = (labels, node.taints, node.unschedulable, node.name if by_name else "")
            if kind not in kinds:
                kinds[kind] = len(kinds)
                first.append(row)
            which.append(kinds[kind])
        both = np.array(first, dtype=np.intp), np.array(which, dtype=np.intp)
        self._alike[frozenset(keys), by_name] = both
        return both


def _looked_at(constraints: Constraints) -> tuple[frozenset[str], bool]:
    """Return the labels that constraints look at, and whether they look at a node's name."""
    terms = [*(constraints.terms or ()), *(term for volume in constraints.volumes for term in volume)]
    needed = [requirement for term in terms for requirement in term]
    keys = {key for key, _ in constraints.selector} | {one.key for one in needed if not one.field}
    return frozenset(keys), any(one.field for one in needed)
