"""What waits, as arrays: task classes [C], the jobs [J] that they belong to, and where their inputs are.

Cost follows classes, not tasks: a stage of ten thousand equal tasks is one row. The control loops build this from pods,
the simulator from its workload.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Floats, Rows


@dataclass(frozen=True)
class Blocks:
    """Each task of the class reads one block, from whichever node has a copy.

    `copies` [T, K] are the nodes (rows) that hold task t's block, -1 for none; `waiting` [T] says which tasks wait;
    `nodes` is the number of nodes, N. `afar`: none may run where a copy is, so where it runs makes no difference to it.
    """

    copies: Rows
    waiting: NDArray[np.bool_]
    nodes: int
    afar: bool = field(default=False, kw_only=True)

    def at(self, node: int) -> Rows:
        """Return the tasks, waiting or not, whose block is on this node."""
        order, starts = self._by_node
        return order[starts[node] : starts[node + 1]]

    def without(self, tasks: Rows) -> "Blocks":
        """Return the same blocks with these tasks no longer waiting; what was indexed and counted is kept."""
        waiting = self.waiting.copy()
        waiting[tasks] = False
        blocks = Blocks(self.copies, waiting, self.nodes, afar=self.afar)
        copies = self.copies[tasks]
        left = self.local - np.bincount(copies[copies >= 0], minlength=self.nodes)
        blocks.__dict__.update(_by_node=self._by_node, local=left)
        return blocks

    @cached_property
    def local(self) -> Counts:
        """How many waiting tasks have a copy of their block on each node [N]."""
        copies = self.copies[self.waiting]
        return np.bincount(copies[copies >= 0], minlength=self.nodes)

    @cached_property
    def _by_node(self) -> tuple[Rows, Rows]:
        """Return the tasks sorted by node, and where each node's begin."""
        tasks, places = np.nonzero(self.copies >= 0)
        nodes = self.copies[tasks, places]
        order = np.argsort(nodes, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(nodes, minlength=self.nodes))))
        return tasks[order], starts


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Each task of the class reads a part from every one of these nodes (a shuffle).

    `nodes` [K] are distinct rows, ascending; `rates` [K] bytes per second from each at the task's peak.
    """

    nodes: Rows
    rates: Floats


Inputs = Blocks | Shuffle | None
"""None: whatever the class reads, it reads on the machine that it runs on."""


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """In which order the tasks of jobs that are DAGs should start (`extender.graph`; Graphene, 5).

    `priority` [T], in (0, 1], is 1 for the first task of its DAG. The tasks of one class stand one after another in it,
    in the order in which they start. `next` [C] is the place there of each class's next task, -1 where its job has no
    order; `dag` [C] numbers the DAGs, -1 for none.
    """

    priority: Floats
    next: Rows
    dag: Rows


@dataclass(frozen=True, slots=True)
class QueueGroups:
    """The queues and those above them [G]: `weight` among siblings, `minimum` as a part of the whole cluster.

    `parent` [G] is the row of the one above, -1 for none; `leaf` [Q] the row of each queue that has jobs.
    """

    weight: Floats
    minimum: Floats
    parent: Rows
    leaf: Rows


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs that have something waiting or running [J].

    `allocated` [J, R] is what their running tasks were promised as regular, wherever; `work` [J] the remaining work
    (policy.remaining); `queue` [J] the row of its queue; `weight` [J] its weight among the jobs of that queue;
    `queue_weight` [Q] the queue's fair share, in any unit; `groups` has weights, minimums and parents (None: the
    weights are `queue_weight`, without minimums and parents). `path` [J] is the least seconds that it still takes,
    however much it is given: the longest chain of its stages that have not ended (None: not known), 0 where no stage of
    it waited for another: then there is no chain. `opportunistic` [J, R] is what their opportunistic tasks need beyond
    what was promised (None: there are none).
    """

    names: Sequence[str]
    queue: Rows
    weight: Floats
    allocated: Floats
    work: Floats
    queue_names: Sequence[str]
    queue_weight: Floats
    path: Floats | None = None
    groups: QueueGroups | None = None
    opportunistic: Floats | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """What runs, for reservations [T]: on which node, until when it is expected to, what it holds there [T, R].

    `seconds` [T]: what it is expected to take from its start to its end (None: not known of any). A task that reads
    from other nodes may be there for each of them as well, with what it holds of it and 0 seconds. `priority` [T] is
    that of their pods, for schedulers that preempt (None: not said).
    """

    node: Rows
    ends_at: Floats
    demand: Floats
    seconds: Floats | None = None
    priority: Counts | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """All waiting tasks by class [C], rows in the order of queues, then of the jobs' arrival: so ties are settled.

    `demand` [C, R] is what a task takes of its machine besides reading its input; `reading` [C] the bytes per second
    that it reads at its peak, from `inputs`; `duration` [C] its expected seconds; `count` [C] how many wait, 0 allowed;
    `since` [C] when the class became able to run or last had a task started, whichever is later (minus infinity: it is
    what a gang that has begun still lacks; infinity: no room is kept for it); `finished` [C] the part of its stage that
    is done, in [0, 1]. `left_seconds` is the least time that all that is left, waiting or
    running, keeps the cluster busy: by the resource of which it needs most (infinite: not known). `topology` [L, N]: in
    which rack, zone, ... each node is, the smallest first, -1 for none (None: nobody knows); `level_names` are what
    these levels are called, the node itself first. `order` is that of the tasks of jobs that are DAGs (None: no job has
    one).

    The rest is for real clusters; None: there is no such thing. `priority` [C] is the value of its PriorityClass:
    higher ones go first, before fairness. `behind` [C] is how many jobs of its FIFO queue come before it (0 in a fair
    queue); such a queue is one row of `jobs`, whatever its jobs. `barred` [C, N] are the nodes that the class may not
    use. `gang` [C] is the row of its gang, -1 for none; of gang g a plan starts at least `gang_least[g]` tasks [G] over
    all its classes, or none: what of its minimum does not run yet. `preferred` [C, N] says how far each node is from
    what the class reads or prefers: 0 for the nodes themselves, then level by level; alike where it prefers none. It
    counts for classes without `Blocks`. `suited` [C] says how well idle room suits the class, in [0, 1], where that is
    given (policy.suitability). `shuffled` [C] says whose output a later stage shuffles (None: nobody knows).
    `waits_as` [C] is the name under which a class waits for locality (None: its job's; to be given where a row of
    `jobs` is a queue), `jobs_there` the names of all jobs that are there, whether or not they have something waiting:
    their waits are kept (None: those of `jobs`).
    """

    names: Sequence[str]
    job: Rows
    count: Counts
    demand: Floats
    reading: Floats
    inputs: Sequence[Inputs]
    duration: Floats
    since: Floats
    finished: Floats
    jobs: Jobs
    running: Running | None = None
    left_seconds: float = np.inf
    priority: Counts | None = None
    behind: Counts | None = None
    barred: NDArray[np.bool_] | None = None
    gang: Rows | None = None
    gang_least: Counts | None = None
    topology: Rows | None = None
    level_names: Sequence[str] = ("node", "rack", "zone")
    order: TaskOrder | None = None
    preferred: NDArray[np.int16] | None = None
    suited: Floats | None = None
    shuffled: NDArray[np.bool_] | None = None
    waits_as: Sequence[str] | None = None
    jobs_there: Collection[str] | None = None
