"""How a machine is chosen for a task: every rule gives each machine that has room a rank, and the highest wins.

A rank looks at one machine alone, with the task not yet there. By that a whole class can be placed at once (`placing`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.policy.alignment import RULES, Offered, fullness, room
from extender.policy.levels import ordinals
from extender.verdict import Placement
from lab.sim.schedulers.kube_scores import Nodes


@dataclass(frozen=True, slots=True)
class Held:
    """What machines hold, and what follows from that alone: prepared once for all tasks that are ranked for.

    `allocated` and `room` [K, R] is what is taken and free, `full` [K] the mean allocated part; `nodes` is what they
    offer. Dimensions that do not say how well a task suits are left out.
    """

    allocated: Floats
    room: Floats
    full: Floats
    nodes: Offered

    def at(self, rows: Rows) -> "Held":
        """Return the same of these machines."""
        return Held(self.allocated[rows], self.room[rows], self.full[rows], self.nodes.at(rows))

    def now(self, rows: Rows, allocated: Floats) -> None:
        """Note that these machines hold this now."""
        changed = held(allocated, self.nodes.at(rows))
        self.allocated[rows], self.room[rows], self.full[rows] = changed.allocated, changed.room, changed.full


def held(allocated: Floats, nodes: Offered) -> Held:
    """Return what machines hold by what is `allocated` there [K, R]."""
    free = room(allocated, nodes)
    return Held(allocated, free, fullness(free, nodes), nodes)


Rank = Callable[[Floats, Held], Floats]
"""A number per machine [K], higher is better, from `demand` [R] and what these machines hold."""

_KUBE = [CPU_INDEX, MEMORY_INDEX]


def first_fit(_demand: Floats, machines: Held) -> Floats:
    """Return the same for all: the first machine wins."""
    return np.zeros(len(machines.full))


def best_fit(_demand: Floats, machines: Held) -> Floats:
    """Return how full each machine is: the fullest that has room wins."""
    return machines.full


def kube_default(demand: Floats, machines: Held) -> Floats:
    """Return kube-scheduler's default scores by CPU and memory (LeastAllocated and BalancedAllocation), 50..200."""
    nodes = Nodes(machines.nodes.capacity[:, _KUBE].astype(np.int64), machines.allocated[:, _KUBE].astype(np.int64))
    need = demand[_KUBE].astype(np.int64)
    return np.asarray(nodes.least_allocated(need) + nodes.balanced_allocation(need), dtype=np.float64)


def dovetail(demand: Floats, machines: Held) -> Floats:
    """Return the ordinals of the service's default ranking: by shape in whole steps, then the fuller machine."""
    default = Placement()
    scores = RULES[default.rule](demand, machines.room, machines.nodes)
    return ordinals(scores, machines.full, step=default.shape_step).astype(np.float64)


FIRST_FIT = "first-fit"

RULES_BY_NAME: Mapping[str, Rank] = MappingProxyType(
    {FIRST_FIT: first_fit, "best-fit": best_fit, "stock": kube_default, "dovetail": dovetail}
)
"""The rules by the name that users give. `stock` is kube-scheduler's default."""

AT_RANDOM = frozenset({"stock", "dovetail"})
"""Rules whose ties are broken at random: by an order of the machines that is drawn for each class."""
