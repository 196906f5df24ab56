"""What is replayed: jobs of stages of tasks, and the machines that they run on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Mask, Rows
from extender.cluster.eligibility import ANYWHERE, Constraints
from extender.cluster.ledger.layout import total_of
from extender.cluster.model import Node
from extender.cluster.resources import DIMENSIONS, DISK_WRITE_INDEX, NETWORK_IN_INDEX, PODS
from extender.control.queues.tree import QueueTree
from lab.sim.workloads.waves import Waves

BLOCKS, SHUFFLE, LOCAL = "blocks", "shuffle", "local"
"""Where a stage reads: one block per task, placed with copies on random machines; the machines that the parents' tasks
ran on, in proportion; or the machine that the task runs on."""

SOURCES = (LOCAL, BLOCKS, SHUFFLE)


UNLIMITED = 2.0**50
"""Bytes per second of a disk or link that a machine does not limit: a petabyte."""


def as_declared(capacity: Floats) -> Floats:
    """Return what machines offer as schedulers see it [N, R]: infinite where one does not limit a disk or link."""
    return np.where(capacity >= UNLIMITED, np.inf, capacity)


@dataclass(frozen=True, slots=True)
class Use:
    """What tasks use while they go on, as parts of their demand: piecewise constant in a task's progress.

    `until` [K] is the progress up to which each phase goes, ascending, the last 1; `parts` [K, 6] what a task uses in
    it. A part may be above 1. What a task reads from elsewhere goes by its disk-read. `scale` [tasks] times that is
    what each task uses (None: 1).
    """

    until: Floats
    parts: Floats
    scale: Floats | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Tasks of one shape. It may begin when all its parents have ended (a barrier).

    Of a parent that is `one_to_one` as well, its task n waits for task n only. Both have as many.

    `demand` [R] is a task's peak besides reading, in the dimensions of `Machines.axis` (its disk-read,
    network-in and network-out are zero: they follow from where it reads; only where it reads on its own machine may it
    take network besides); `reading` bytes per second at its peak.
    `duration` is what the scheduler expects, `durations` [tasks] what each task takes if it gets its peaks, in seconds.
    `copies` [tasks, K] are the machines that hold each task's block, -1 for none (None: they are drawn).
    `use` is what tasks use of their demand as they go on (None: all of it, from the beginning to the end).
    `constraints` say which machines a task may go to, `priority` is that of its pods; tasks of a `gang` start together,
    at first at least so many as `least` says (0: all of them); started one by one, they hold room until as many are
    there, and then begin (engine/gangs.py).
    `waves` say what tasks take by wave and by how many machines their job has (engine/machine_waves.py); `durations`
    are then the least of it (None: tasks take their `durations`).
    `comes` [tasks] is how many seconds after its stage may begin each task is there (None: at once); not for blocks.
    """

    name: str
    demand: Floats
    reading: float
    duration: float
    durations: Floats
    parents: tuple[int, ...] = ()
    source: str = LOCAL
    copies: NDArray[np.intp] | None = None
    use: Use | None = None
    constraints: Constraints = ANYWHERE
    priority: int = 0
    gang: bool = False
    least: int = 0
    one_to_one: tuple[int, ...] = ()
    waves: Waves | None = None
    comes: Floats | None = None

    @property
    def tasks(self) -> int:
        """How many tasks it has."""
        return len(self.durations)


@dataclass(frozen=True, slots=True)
class Job:
    """A DAG of stages; `parents` are indices into `stages`, parents before children.

    Jobs of one `recurring` name are runs of the same; stages of one name in them are alike ("": it runs once). One that
    `backs_off` is a Kubernetes Job: tasks that it loses come again later (engine/job_backoff.py), else at once.
    """

    name: str
    arrives_at: float
    stages: Sequence[Stage]
    queue: str = "default"
    recurring: str = ""
    backs_off: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in the order of their arrival. `about` says in a sentence where it is from.

    `at_once`: no more jobs than this are there at a time, the next one comes when one has ended (None: any number).
    `weights` are those of queues, by name; 1 for any other. `tree` has their parents and minimums too (None: no queue
    has any). `output_copies`: on how many machines the final output of a job is written, its task's own among them
    (engine/outputs.py; HDFS: 3). `taken` [T] is what each task takes in all, contention included, in the order of the
    tasks (None: contention slows tasks down).
    """

    name: str
    jobs: Sequence[Job]
    about: str = ""
    at_once: int | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    tree: QueueTree | None = None
    output_copies: int = 1
    taken: Floats | None = None

    @property
    def tasks(self) -> int:
        """How many tasks all jobs have."""
        return sum(stage.tasks for job in self.jobs for stage in job.stages)


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What the machine of a `row` is from then on, and what it offers, `capacity` [R]; None: it is not there."""

    at: float
    row: int
    node: Node | None
    capacity: Floats


@dataclass(frozen=True, slots=True)
class Machines:
    """The machines [N] and what each offers, `capacity` [N, R] in the dimensions of `axis`: the six, then others.

    `copies`: on how many machines each block is. With `aggregate` the cluster is one bin (Tetris, 2.2.3): what is read
    from blocks is local, a shuffle takes disk read, network out and network in of that one bin. `racks` [N] is the rack
    of each (None: not known). `nodes` [N] are those that have names, labels and taints (none: no machine has any).
    `changes`, by time, say how machines come, change and go; then `capacity` is the most that each ever offers.
    `move_seconds` [N] is what each takes to come from one job to another, before its first task there (None: nothing).
    `whole` [N, R] is what each has (None: what it offers, its capacity): the system holds the rest of memory, headers
    take the rest of a link. Loads that are measured are of the whole.
    """

    name: str
    capacity: Floats
    copies: int = 3
    aggregate: bool = False
    racks: NDArray[np.intp] | None = None
    axis: tuple[str, ...] = DIMENSIONS
    nodes: tuple[Node, ...] = ()
    changes: tuple[NodeChange, ...] = ()
    move_seconds: Floats | None = None
    whole: Floats | None = None

    @property
    def total(self) -> Floats:
        """What all offer together of what shares are of [R], as in a cluster (`Layout.total`)."""
        return total_of(as_declared(self.capacity), self.axis)

    @property
    def output_holders(self) -> Rows:
        """The machines that can hold a copy of an output: those with a disk and a network."""
        return np.flatnonzero((self.capacity[:, [DISK_WRITE_INDEX, NETWORK_IN_INDEX]] > 0).all(axis=1))

    @property
    def beyond(self) -> str:
        """The names of what is counted beyond the six dimensions, as errors show them."""
        words = {PODS: "places for pods (some node may run out of them before its CPU and memory)"}
        return ", ".join(words.get(name, name) for name in self.axis[len(DIMENSIONS) :])

    def allowed(self, constraints: Constraints) -> Mask:
        """Return which machines a task with these constraints may go to [N]: the service says."""
        if not self.nodes:
            return np.full(len(self.capacity), constraints.allow("", {}, (), unschedulable=False))
        return np.array([node.allows(constraints) for node in self.nodes], dtype=np.bool_)
