"""How a machine is chosen for a task: every rule gives each machine that has room a rank, and the highest wins.

A rank looks at one machine alone, with the task not yet there. By that a whole class can be placed at once (`placing`).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.policy.alignment import RULES, Offered, fullness, room
from extender.policy.levels import ordinals
from extender.verdict import Placement
from lab.sim.schedulers.kube_scores import Nodes

Rank = Callable[[Floats, Floats, Offered], Floats]
"""A number per machine [K], higher is better, from `demand` [R], `allocated` [K, R], and what these machines offer."""

_KUBE = [CPU_INDEX, MEMORY_INDEX]


def first_fit(_demand: Floats, allocated: Floats, _nodes: Offered) -> Floats:
    """Return the same for all: the first machine wins."""
    return np.zeros(len(allocated))


def best_fit(_demand: Floats, allocated: Floats, nodes: Offered) -> Floats:
    """Return how full each machine is: the fullest that has room wins."""
    return fullness(room(allocated, nodes), nodes)


def kube_default(demand: Floats, allocated: Floats, nodes: Offered) -> Floats:
    """Return kube-scheduler's default scores by CPU and memory (LeastAllocated and BalancedAllocation), 50..200."""
    machines = Nodes(nodes.capacity[:, _KUBE].astype(np.int64), allocated[:, _KUBE].astype(np.int64))
    need = demand[_KUBE].astype(np.int64)
    return np.asarray(machines.least_allocated(need) + machines.balanced_allocation(need), dtype=np.float64)


def dovetail(demand: Floats, allocated: Floats, nodes: Offered) -> Floats:
    """Return the ordinals of the service's default ranking: by shape in whole steps, then the fuller machine."""
    default = Placement()
    free = room(allocated, nodes)
    scores = RULES[default.rule](demand, free, nodes)
    return ordinals(scores, fullness(free, nodes), step=default.shape_step).astype(np.float64)


FIRST_FIT = "first-fit"

RULES_BY_NAME: Mapping[str, Rank] = MappingProxyType(
    {FIRST_FIT: first_fit, "best-fit": best_fit, "stock": kube_default, "dovetail": dovetail}
)
"""The rules by the name that users give. `stock` is kube-scheduler's default."""

AT_RANDOM = frozenset({"stock", "dovetail"})
"""Rules whose ties are broken at random: by an order of the machines that is drawn for each class."""
