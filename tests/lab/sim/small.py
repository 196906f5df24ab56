"""Clusters and waiting classes small enough to check by hand: CPU in cores, memory in GiB, rates in MB/s."""

from dataclasses import dataclass, field, replace

import numpy as np

from extender.cluster.ledger.layout import layout_of
from extender.cluster.ledger.snapshot import Nominations, Snapshot
from extender.cluster.model import Node
from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Blocks, Jobs, Waiting

CORE, GIB, MB = 1000.0, 2.0**30, 1e6
UNITS = np.array([CORE, GIB, MB, MB, MB, MB])
PLENTY = 1000.0


def row(cpu=0.0, memory=0.0, disk_read=0.0, disk_write=0.0, network_in=0.0, network_out=0.0):
    """Return amounts [R] in the units of the simulator, 0 of a dimension that is not named here."""
    amounts = np.array([cpu, memory, disk_read, disk_write, network_in, network_out]) * UNITS
    return np.pad(amounts, (0, len(DIMENSIONS) - len(amounts)))


def machine(cpu, memory, rates=PLENTY):
    """Return what a machine offers [R], the same in every rate."""
    return row(cpu, memory, rates, rates, rates, rates)


def cluster(*capacity, allocated=None):
    """Return a snapshot of machines m0, m1, ... with these capacities."""
    nodes = {f"m{n:04}": Node(f"m{n:04}", dict(zip(DIMENSIONS, c, strict=True))) for n, c in enumerate(capacity)}
    layout = layout_of(nodes)
    layout = replace(layout, axis=DIMENSIONS, capacity=layout.capacity[:, : len(DIMENSIONS)])
    nothing = np.zeros_like(layout.capacity)
    nobody = Nominations((), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), nothing[:0])
    held = nothing if allocated is None else np.array(allocated)
    return Snapshot(0, 0, layout, held, nothing, nobody)


@dataclass
class Class:
    """A class of one job: how many wait, what each takes, and what it reads."""

    count: int
    demand: np.ndarray
    job: int = 0
    reading: float = 0.0
    inputs: object = None
    name: str = ""


@dataclass
class Tenants:
    """The jobs: their names, queues and weights, and what they hold already."""

    names: list = field(default_factory=list)
    queue: list = field(default_factory=list)
    weight: list = field(default_factory=list)
    queue_weight: list = field(default_factory=list)
    allocated: dict = field(default_factory=dict)


def waiting(*classes, tenants=None, running=None):
    """Return these classes as what waits; jobs are numbered from 0, in one queue unless told otherwise."""
    tenants = tenants or Tenants()
    count = max([c.job for c in classes] + [len(tenants.queue) - 1]) + 1 if classes else 0
    queue = np.array(tenants.queue or [0] * count, dtype=np.intp)
    allocated = np.zeros((count, len(DIMENSIONS)))
    for job, amounts in tenants.allocated.items():
        allocated[job] = amounts
    queue_weight = np.array(tenants.queue_weight or [1.0] * (int(queue.max(initial=0)) + 1))
    jobs = Jobs(
        names=tenants.names or [f"job{j}" for j in range(count)],
        queue=queue,
        weight=np.array(tenants.weight or [1.0] * count),
        allocated=allocated,
        work=np.ones(count),
        queue_names=[f"queue{q}" for q in range(len(queue_weight))],
        queue_weight=queue_weight,
    )
    number = len(classes)
    return Waiting(
        names=[c.name or f"class{n}" for n, c in enumerate(classes)],
        job=np.array([c.job for c in classes], dtype=np.intp),
        count=np.array([c.count for c in classes], dtype=np.int64),
        demand=np.array([c.demand for c in classes]).reshape(number, len(DIMENSIONS)),
        reading=np.array([c.reading for c in classes]) * MB,
        inputs=[c.inputs for c in classes],
        duration=np.ones(number),
        since=np.zeros(number),
        finished=np.zeros(number),
        jobs=jobs,
        running=running,
    )


def blocks(nodes, *copies):
    """Return blocks of which all wait, each given as the nodes that hold a copy."""
    width = max(len(c) for c in copies)
    held = np.full((len(copies), width), -1, dtype=np.intp)
    for task, holders in enumerate(copies):
        held[task, : len(holders)] = holders
    return Blocks(held, np.ones(len(copies), dtype=np.bool_), nodes)


def started(plan, classes):
    """Return how many tasks of each class a plan starts."""
    return np.bincount(plan.assignments.task_class, minlength=classes).tolist()


def where(plan, task_class):
    """Return the nodes of a class's tasks, in the order in which they were placed."""
    chosen = plan.assignments
    return chosen.node[chosen.task_class == task_class].tolist()


def promised(plan, snapshot, waits):
    """Return what is allocated once the plan is carried out, besides reading [N, R]."""
    total = snapshot.allocated.copy()
    np.add.at(total, plan.assignments.node, waits.demand[plan.assignments.task_class])
    return total
