"""How a machine is chosen for a task: every rule gives each machine that has room a rank, and the highest wins.

A rank looks at one machine alone, with the task not yet there. By that a whole class can be placed at once (`placing`).
Who is usual is known beforehand: all of the workload.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.ledger.mix import MOST_CLASSES
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX, is_extended
from extender.policy.alignment import RULES as ALIGNMENTS
from extender.policy.alignment import Offered, fullness, room
from extender.policy.levels import ordinals
from extender.policy.stranding import UsualPods, lost_more, sought, stranded, usual_pods, weight_of_sought
from extender.verdict import STRANDED_STEP, Placement
from lab.packing.model import Problem
from lab.sim.schedulers.kube_scores import Nodes


@dataclass(frozen=True, slots=True)
class Sought:
    """How much devices [D] are sought, `more` [K, D] than those sought least, and how much that counts, `weight` [D].

    What counts is the same for all machines, and changes as they fill up.
    """

    more: Floats
    weight: Floats

    @property
    def counts(self) -> Floats:
        """What is added for each device that is taken [K, D]."""
        return self.more * self.weight

    def at(self, rows: Rows) -> "Sought":
        """Return the same of these machines."""
        return Sought(self.more.take(rows, axis=0), self.weight)

    def now(self, held: Floats, capacity: Floats) -> None:
        """Note that tasks hold so many of this capacity of all machines [D]."""
        self.weight[:] = weight_of_sought(held, capacity)


@dataclass(frozen=True, slots=True)
class Held:
    """What machines hold, and what follows from that alone: prepared once for all tasks that are ranked for.

    `allocated` and `room` [K, R] is what is taken and free, `full` [K] the mean allocated part; `nodes` is what they
    offer, `sought` how much their devices are. Dimensions that do not say how well a task suits are left out.
    """

    allocated: Floats
    room: Floats
    full: Floats
    nodes: Offered
    sought: Sought

    def at(self, rows: Rows) -> "Held":
        """Return the same of these machines."""
        allocated, free = self.allocated.take(rows, axis=0), self.room.take(rows, axis=0)
        return Held(allocated, free, self.full.take(rows), self.nodes.at(rows), self.sought.at(rows))

    def now(self, rows: Rows, allocated: Floats) -> None:
        """Note that these machines hold this now."""
        nodes = self.nodes.at(rows)
        free = room(allocated, nodes)
        self.allocated[rows], self.room[rows], self.full[rows] = allocated, free, fullness(free, nodes)


def held(allocated: Floats, nodes: Offered, sought: Sought) -> Held:
    """Return what machines hold by what is `allocated` there [K, R]."""
    free = room(allocated, nodes)
    return Held(allocated, free, fullness(free, nodes), nodes, sought)


Rank = Callable[[Floats, Held], Floats]
"""A number per machine [K], higher is better, from `demand` [R] and what these machines hold."""

_KUBE = [CPU_INDEX, MEMORY_INDEX]


def first_fit(_demand: Floats, machines: Held) -> Floats:
    """Return the same for all: the first machine wins."""
    return np.zeros(len(machines.full))


def best_fit(_demand: Floats, machines: Held) -> Floats:
    """Return how full each machine is: the fullest that has room wins, and the first of those equally full."""
    return ordinals(np.zeros(len(machines.full)), machines.full, step=1.0).astype(np.float64)


def _kube_nodes(machines: Held) -> Nodes:
    capacity, allocated = machines.nodes.capacity[:, _KUBE], machines.allocated[:, _KUBE]
    return Nodes(capacity.astype(np.int64), allocated.astype(np.int64))


def kube_default(demand: Floats, machines: Held) -> Floats:
    """Return kube-scheduler's default scores by CPU and memory (LeastAllocated and BalancedAllocation), 50..200."""
    nodes, need = _kube_nodes(machines), demand[_KUBE].astype(np.int64)
    return np.asarray(nodes.least_allocated(need) + nodes.balanced_allocation(need), dtype=np.float64)


def most_allocated(demand: Floats, machines: Held) -> Floats:
    """Return kube-scheduler's score where it is set to pack: MostAllocated by CPU and memory, 0..100."""
    return np.asarray(_kube_nodes(machines).most_allocated(demand[_KUBE].astype(np.int64)), dtype=np.float64)


_ALL_LOST = 100.0
"""Above this many devices more the score is 0, whatever the number."""


@dataclass(frozen=True, slots=True)
class Fgd:
    """Fragmentation Gradient Descent: the fewest devices more that nobody could use, in whole numbers of 0 to 100.

    Machines' devices count as one amount; where no task asks for any, all machines are equal (Weng et al., ATC 2023).
    """

    usual: UsualPods

    def __call__(self, demand: Floats, machines: Held) -> Floats:
        """Return the scores."""
        more = np.minimum(_more_stranded(demand, machines, self.usual), _ALL_LOST)
        return np.floor(100.0 / (1.0 + np.exp(more)))


@dataclass(frozen=True, slots=True)
class Dovetail:
    """The service's default ranking: fewest devices lost to others, then shape in steps, then the fuller machine."""

    usual: UsualPods

    def __call__(self, demand: Floats, machines: Held) -> Floats:
        """Return one number that orders so."""
        default = Placement()
        scores = ALIGNMENTS[default.rule](demand, machines.room, machines.nodes)
        places = ordinals(scores, machines.full, step=default.shape_step).astype(np.float64)
        if not len(self.usual.devices):
            return places
        more = lost_more(demand, machines.room, machines.sought.counts, self.usual)
        strands = np.rint(more / STRANDED_STEP)
        return places - strands * _PLACES


_PLACES = float(1 << 26)
"""More than the ordinals of the default ranking differ by."""


def _more_stranded(demand: Floats, machines: Held, usual: UsualPods) -> Floats:
    if not len(usual.devices):
        return np.zeros(len(machines.full))
    return stranded(machines.room - demand, usual) - stranded(machines.room, usual)


def usual_of(problem: Problem, columns: Rows) -> UsualPods:
    """Return who is usual in a workload, by these columns of its demands: of those who ask for devices."""
    demand, names = problem.classes.demand[:, columns], [problem.layout.axis[column] for column in columns.tolist()]
    devices = np.flatnonzero(np.array([is_extended(name) for name in names]) & demand.any(axis=0))
    asks = demand[:, devices].any(axis=1)
    kinds, kind = np.unique(demand[asks], axis=0, return_inverse=True)
    count = np.bincount(kind.ravel(), weights=problem.classes.count[asks], minlength=len(kinds)).astype(np.int64)
    most = np.argsort(-count, kind="stable")[:MOST_CLASSES]
    return usual_pods(kinds[most], count[most], devices)


def sought_of(problem: Problem, devices: Rows) -> Floats:
    """Return how much the devices of these columns are sought on all machines [M, D]."""
    classes = problem.classes
    asked = np.zeros((len(classes.masks), len(devices)))
    np.add.at(asked, classes.mask, classes.demand[:, devices] * classes.count[:, np.newaxis])
    return sought(asked, classes.masks, problem.capacity[:, devices])


FIRST_FIT = "first-fit"

_RULES: Mapping[str, Rank] = MappingProxyType(
    {FIRST_FIT: first_fit, "best-fit": best_fit, "most-allocated": most_allocated, "stock": kube_default}
)
_BY_DEVICES: Mapping[str, type[Fgd] | type[Dovetail]] = MappingProxyType({"fgd": Fgd, "dovetail": Dovetail})

RULES = (*_RULES, *_BY_DEVICES)
"""The rules by the name that users give. `stock` is kube-scheduler's default."""

AT_RANDOM = frozenset({"most-allocated", "stock", "fgd", "dovetail"})
"""Rules whose ties are broken at random: by an order of the machines that is drawn for each class."""


def rank_of(rule: str, problem: Problem, columns: Rows) -> tuple[Rank, Rows]:
    """Return what ranks machines by the rule of this name, and the columns of devices that it looks at [D].

    The rule is given these columns of demands and machines.
    """
    by_devices = _BY_DEVICES.get(rule)
    if by_devices is None:
        return _RULES[rule], columns[:0]
    usual = usual_of(problem, columns)
    return by_devices(usual), columns[usual.devices]
