"""The parts that the baselines share: which job goes next, and which machine gets its task.

Hadoop's schedulers wait for machines to report and hand each that has room one task: the neediest job's. Here all
reports of one heartbeat are handled together, in an order drawn anew each time:

- the job with the least share places its next task; a job of which no task fits anywhere is skipped;
- the task goes to the next machine in heartbeat order that it fits, one task per machine and round as in Hadoop, so
  that no machine is filled with one job;
- a task that reads a block prefers a machine that holds it. That is delay scheduling without the waiting, because all
  reports of the heartbeat are at hand.

No room is kept idle for a large task that does not fit yet. YARN reserves a machine for it; on the suite that changes
the makespan and the mean job time by less than 1 %.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import DISK_READ_INDEX
from extender.cluster.waiting import Jobs, TaskOrder, Waiting
from extender.planner import Assignments
from lab.sim.schedulers.promises import Promises

_WITHOUT_WEIGHT = 1e12
"""Beyond any share by weight."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """What a baseline counts, in K dimensions of its own; it ignores all others.

    `need` [C, K] of one task; `free` [N, K]; `used` [J, K] by each job's running tasks; `total` [K] of the cluster.
    """

    need: Floats
    free: Floats
    used: Floats
    total: Floats


class ArrivalOrder:
    """The order in which names first appeared: the only state that a baseline keeps from plan to plan."""

    def __init__(self) -> None:
        self._names: Sequence[str] = ()
        self._order = np.empty(0, dtype=np.int64)
        self._first: dict[str, int] = {}
        self._count = 0

    def ranks(self, names: Sequence[str]) -> Counts:
        """Return each name's rank in the order of arrival [K]; names that arrive together go by row."""
        if names is not self._names:
            fresh = (name for name in names if name not in self._first)
            first = self._first | {name: place for place, name in enumerate(fresh, self._count)}
            self._count += len(first) - len(self._first)
            self._first = {name: first[name] for name in names}
            self._names, self._order = names, np.array(list(self._first.values()), dtype=np.int64)
        return self._order


class FittingClasses:
    """Classes of which a task may still fit somewhere."""

    def __init__(self, classes: Rows, need: Floats) -> None:
        """Take the classes (rows), and what a task of each class needs [C, K]."""
        self._need = need.T.copy()
        self._open = np.zeros(len(need), dtype=np.bool_)
        self._open[classes] = True

    def are_open(self, classes: Rows) -> Mask:
        """Return which of these classes are not left out [K]."""
        return self._open[classes]

    def give_up(self, task_class: int) -> None:
        """Leave out a class that fits nowhere any more, and all that need as much."""
        self._open &= _needs_less(self._need, task_class)

    def leave_out(self, task_class: int) -> None:
        """Leave out this class alone: it fits nowhere where it may go."""
        self._open[task_class] = False


class ClassLine(FittingClasses):
    """Classes in the order of arrival. Iteration leaves out each class that needs as much as one that fits nowhere."""

    def __init__(self, classes: Rows, ranks: Counts, need: Floats) -> None:
        """Take the classes (rows), the `ranks` [C] by arrival, and what a task of each class needs [C, K]."""
        super().__init__(classes, need)
        self._classes = classes[np.argsort(ranks[classes])].tolist()

    def __iter__(self) -> Iterator[int]:
        return (task_class for task_class in self._classes if self._open[task_class])


class ShareOrder:
    """The order of jobs by share: first the queue with the least share by its weight, then the job with the least.

    A share is that of the dominant dimension. With `fifo` [J] the jobs of a queue go by that rank instead.
    """

    def __init__(self, accounts: Accounts, jobs: Jobs, waiting: Rows, *, fifo: Counts | None = None) -> None:
        """Take the jobs (rows) that have something to place."""
        offered = accounts.total > 0
        self._total = accounts.total[offered].tolist()
        self._dimensions = np.flatnonzero(offered).tolist()
        self._queue, self._fifo = jobs.queue.tolist(), fifo
        self._weight, self._queue_weight = jobs.weight.tolist(), jobs.queue_weight.tolist()
        used, queue_used = accounts.used[:, offered], np.zeros((len(jobs.queue_weight), len(self._total)))
        np.add.at(queue_used, jobs.queue, used)
        self._used, self._queue_used = used.tolist(), queue_used.tolist()
        rank = (used / accounts.total[offered]).max(axis=1, initial=0.0) / jobs.weight if fifo is None else fifo
        self._rank = np.full(len(jobs.queue), np.inf)
        self._rank[waiting] = rank[waiting]
        self._queue_rank = np.full(len(jobs.queue_weight), np.inf)
        queues = np.unique(jobs.queue[waiting])
        shares = (queue_used / accounts.total[offered]).max(axis=1, initial=0.0)
        for queue in queues.tolist():
            self._queue_rank[queue] = _by_weight(shares.item(queue), self._queue_weight[queue])
        self._jobs_of = {queue: np.flatnonzero(jobs.queue == queue) for queue in queues.tolist()}

    def next(self) -> int:
        """Return the job that goes next; -1 if none is left."""
        while True:
            queue = int(self._queue_rank.argmin())
            if self._queue_rank[queue] == np.inf:
                return -1
            jobs = self._jobs_of[queue]
            job = int(jobs[self._rank[jobs].argmin()])
            if self._rank[job] < np.inf:
                return job
            self._queue_rank[queue] = np.inf

    def give(self, job: int, need: Sequence[float]) -> None:
        """Count one more task of the job, which takes `need` [K]."""
        queue = self._queue[job]
        share, queue_share = 0.0, 0.0
        used, queue_used = self._used[job], self._queue_used[queue]
        for place, (dimension, total) in enumerate(zip(self._dimensions, self._total, strict=True)):
            used[place] += need[dimension]
            queue_used[place] += need[dimension]
            share, queue_share = max(share, used[place] / total), max(queue_share, queue_used[place] / total)
        self._queue_rank[queue] = _by_weight(queue_share, self._queue_weight[queue])
        if self._fifo is None:
            self._rank[job] = share / self._weight[job]

    def close(self, job: int) -> None:
        """Take out a job that has nothing more to place."""
        self._rank[job] = np.inf

    def keep(self, jobs: Rows) -> None:
        """Take out all jobs but these (rows)."""
        rank = self._rank[jobs]
        self._rank[:] = np.inf
        self._rank[jobs] = rank


def _by_weight(share: float, weight: float) -> float:
    """Return the rank of a queue with this share; a weight of 0 puts it behind all others."""
    return share / weight if weight > 0 else _WITHOUT_WEIGHT + share


class HeartbeatOrder:
    """The machines with room, in the order in which they report in this heartbeat."""

    def __init__(self, free: Floats, rows: Rows, draw: np.random.Generator) -> None:
        """Take what is free [N, K] and the nodes (rows) that take part."""
        self._nodes = rows[draw.permutation(len(rows))]
        self._free = [free[self._nodes, dimension] for dimension in range(free.shape[1])]
        self._reported = 0

    def fitting(self, need: Sequence[float]) -> Rows:
        """Return where a task fits, as places in the order, the next to report first."""
        fits = self._free[0] >= need[0]
        for free, amount in zip(self._free[1:], need[1:], strict=True):
            fits &= free >= amount
        places = fits.nonzero()[0]
        first = int(places.searchsorted(self._reported))
        return np.concatenate((places[first:], places[:first])) if 0 < first < len(places) else places

    def at(self, places: Rows) -> Rows:
        """Return the nodes at these places."""
        return self._nodes[places]

    def give(self, place: int, need: Sequence[float]) -> int:
        """Place a task there and return the node. The next to report is the one after it."""
        for free, amount in zip(self._free, need, strict=True):
            free[place] -= amount
        self._reported = place + 1
        return int(self._nodes[place])


class UnplacedClasses:
    """The classes that may yet place a task."""

    def __init__(self, accounts: Accounts, waiting: Waiting, rows: Rows) -> None:
        """Take the classes (rows) to begin with."""
        self._need, self._job = accounts.need.T.copy(), waiting.job
        self._unplaced = waiting.count.tolist()
        self._open = np.zeros(len(waiting.count), dtype=np.bool_)
        self._open[rows] = True
        self._of_job: dict[int, list[int]] = {}
        rows = in_job_order(waiting, rows)
        for task_class, job in zip(rows.tolist(), waiting.job[rows].tolist(), strict=True):
            self._of_job.setdefault(job, []).append(task_class)

    def first_of(self, job: int) -> int:
        """Return the first class of a job, in the order of its DAG, else of rows. It must have one."""
        classes = self._of_job[job]
        while not self._open[classes[0]]:
            classes.pop(0)
        return classes[0]

    def place(self, task_class: int) -> bool:
        """Count a task as placed; return whether its job is out of classes by that."""
        self._unplaced[task_class] -= 1
        if self._unplaced[task_class]:
            return False
        self._open[task_class] = False
        return not any(self._open[other] for other in self._of_job[int(self._job[task_class])])

    def give_up(self, task_class: int) -> Rows:
        """Close a class that fits nowhere, and all that need as much; return the jobs that still have one."""
        self._open &= _needs_less(self._need, task_class)
        return self._job[self._open]


def offer(
    snapshot: Snapshot,
    waiting: Waiting,
    accounts: Accounts,
    draw: np.random.Generator,
    *,
    fifo: Counts | None = None,
) -> Assignments:
    """Return the assignments of one heartbeat."""
    # 1. The classes that fit somewhere, and the machines where something fits.
    assigned = AssignmentList()
    rows, nodes = candidates(accounts, waiting.count)
    if not len(rows):
        return assigned.assignments()
    classes = UnplacedClasses(accounts, waiting, rows)
    order = ShareOrder(accounts, waiting.jobs, waiting.job[rows], fifo=fifo)
    machines, promises = HeartbeatOrder(accounts.free, nodes, draw), Promises(snapshot, waiting)
    need = accounts.need.tolist()
    # 2. One task at a time, until no job is left that has a class which may fit.
    while (job := order.next()) >= 0:
        # a. The first class of the job with the least share; a class that fits nowhere is given up.
        task_class = classes.first_of(job)
        places = machines.fitting(need[task_class])
        if not len(places):
            order.keep(classes.give_up(task_class))
            continue
        # b. The next machine that holds a block of the class, else the next to report.
        near = promises.nearest(task_class, machines.at(places))
        node = machines.give(int(places[max(near, 0)]), need[task_class])
        assigned.add(task_class, node, *promises.take(task_class, node))
        # c. The share of the job grows; a job without waiting tasks leaves the order.
        order.give(job, need[task_class])
        if classes.place(task_class):
            order.close(job)
    return assigned.assignments()


def candidates(accounts: Accounts, count: Counts) -> tuple[Rows, Rows]:
    """Return the classes of which a task fits somewhere, and the nodes where something fits, each in order."""
    classes = np.flatnonzero(count > 0)
    need = accounts.need[classes]
    if not len(classes):
        return classes, classes
    nodes = np.flatnonzero((accounts.free >= need.min(axis=0)).all(axis=1))
    free = accounts.free[nodes]
    fits = np.ones((len(classes), len(nodes)), dtype=np.bool_)
    for dimension in range(need.shape[1]):
        fits &= need[:, dimension, np.newaxis] <= free[:, dimension]
    return classes[fits.any(axis=1)], nodes[fits.any(axis=0)]


def _needs_less(need: Floats, task_class: int) -> NDArray[np.bool_]:
    """Return which classes need less than this one in some dimension [C], by `need` [K, C].

    Only they may fit where this class does not fit.
    """
    less = need[0] < need[0, task_class]
    for amounts in need[1:]:
        less |= amounts < amounts[task_class]
    return np.asarray(less)


def in_job_order(waiting: Waiting, rows: Rows) -> Rows:
    """Return the classes (rows) by the priority of their next tasks where their jobs have an order, else as they are.

    A job manager that asks for its tasks in this order: the scheduler only sees what comes first.
    """
    if waiting.order is None:
        return rows
    return rows[np.argsort(-next_priorities(waiting.order, rows), kind="stable")]


def next_priorities(order: TaskOrder, rows: Rows) -> Floats:
    """Return the priority of the next task of each of these classes, of which tasks wait [K]; 0 without an order."""
    places = order.next[rows]
    return np.where(places >= 0, order.priority[places], 0.0)


def carried_out(chosen: Assignments, snapshot: Snapshot, waiting: Waiting) -> tuple[Snapshot, Waiting]:
    """Return what there is, and what waits, once these have started; what they read counts on their own machine."""
    if not len(chosen):
        return snapshot, waiting
    taken = waiting.demand[chosen.task_class].copy()
    taken[:, DISK_READ_INDEX] += waiting.reading[chosen.task_class]
    allocated, by_job = snapshot.allocated.copy(), waiting.jobs.allocated.copy()
    np.add.at(allocated, chosen.node, taken)
    np.add.at(by_job, waiting.job[chosen.task_class], taken)
    count = waiting.count - np.bincount(chosen.task_class, minlength=len(waiting.count))
    jobs = replace(waiting.jobs, allocated=by_job)
    return replace(snapshot, allocated=allocated), replace(waiting, count=count, jobs=jobs)


def drawing(seed: int, now: float) -> np.random.Generator:
    """Return a random generator that depends on nothing but the seed and the time, and so does a plan."""
    return np.random.default_rng((seed, int(np.float64(now).view(np.uint64))))


class AssignmentList:
    """A growing list of assignments."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int]] = []

    def add(self, task_class: int, node: int, task: int, source: int) -> None:
        """Add an assignment."""
        self._rows.append((task_class, node, task, source))

    def assignments(self) -> Assignments:
        """Return all of them as arrays."""
        return Assignments(*np.array(self._rows, dtype=np.intp).reshape(-1, 4).T)
