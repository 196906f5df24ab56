"""What the measures of packing cost on a large cluster of unequal machines, and how that grows."""

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from extender.cluster.eligibility import ANYWHERE, Constraints
from extender.cluster.model import Node
from extender.cluster.resources import CPU, MEMORY, PODS
from lab.packing.compaction import TAU, Compaction, CompactionLimits, Policy, compact
from lab.packing.holes import fill, unit_of_median
from lab.packing.inflation import most
from lab.packing.model import Problem, problem_of
from lab.packing.orders import order_of
from lab.packing.placing import pack
from lab.packing.task import PackingTask
from lab.report.rows import Report, Row
from lab.sim.parallel import usable_cores

_GIB = 2.0**30
_SHAPES = ((16, 64), (32, 64), (32, 128), (48, 256), (64, 256), (64, 512), (96, 384), (128, 512))
"""Cores and GiB of machines; each comes with three sizes of what its system keeps back, in three zones."""

_ZONES, _KEPT = ("a", "b", "c"), (1.0, 0.97, 0.94)
_SLOTS = 110.0
_BOUND, _APART = 0.2, 0.1
"""The parts of the classes that are bound to a zone, and of which one machine takes one task."""


@dataclass(frozen=True, slots=True)
class PackingSize:
    """How large a cluster is tried."""

    machines: int
    classes: int
    tasks_per_class: int = 50


FULL: Sequence[PackingSize] = (
    PackingSize(1_000, 200),
    PackingSize(5_000, 1_000),
    PackingSize(10_000, 500),
    PackingSize(10_000, 2_000),
)
OTHERS = ("first-fit", "best-fit", "stock")
"""The rules that are tried on the largest cluster besides ours, `OURS`."""

OURS = "dovetail"
QUICK: Sequence[PackingSize] = (PackingSize(50, 10), PackingSize(100, 20))


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds that each measure took, the most memory held by then in MiB, and what compaction found."""

    size: PackingSize
    rule: str
    compaction: float
    inflation: float
    holes: float
    rss_mib: float
    found: Compaction


def cluster(size: PackingSize) -> Problem:
    """Return machines and tasks drawn at random; half of the machines' CPU is asked for, about."""
    draw = np.random.default_rng(1)
    nodes = []
    for row in range(size.machines):
        cores, gib = _SHAPES[draw.integers(len(_SHAPES))]
        offers = {CPU: cores * 1000 * float(draw.choice(_KEPT)), MEMORY: gib * _GIB, PODS: _SLOTS}
        nodes.append(Node(f"n{row:05}", offers, labels={"zone": str(draw.choice(_ZONES))}))
    tasks: list[PackingTask] = []
    for row in range(size.classes):
        cpu = float(round(float(draw.choice((250, 500, 1000, 2000, 4000, 8000))) * draw.uniform(0.7, 1.4)))
        memory = float(round(cpu / 1000 * _GIB * draw.lognormal(1.2, 0.6)))
        bound = Constraints(selector=(("zone", str(draw.choice(_ZONES))),)) if draw.random() < _BOUND else ANYWHERE
        apart = f"g{row}" if draw.random() < _APART else ""
        task = PackingTask({CPU: cpu, MEMORY: memory, PODS: 1.0}, float(row), f"j{row}", bound, group=apart)
        tasks += [task] * size.tasks_per_class
    return problem_of(nodes, tasks)


def measure(size: PackingSize, rule: str = OURS, advance: Callable[[], None] = lambda: None) -> Cost:
    """Time the measures by a rule in the order of arrival, with eleven trials."""
    problem, policy = cluster(size), Policy(rule=rule)
    every = np.arange(len(problem.classes.count))
    begin = time.perf_counter()
    compaction = compact(problem, policy, CompactionLimits(), processes=usable_cores())
    compacted = time.perf_counter()
    most(problem, "horizontal", every, policy, TAU)
    inflated = time.perf_counter()
    draw = np.random.default_rng(0)
    packing = pack(problem, np.arange(problem.machines), order_of(problem, policy.order), policy.rule, draw=draw)
    packed = time.perf_counter()
    fill(problem, packing.allocated, unit_of_median(problem, 0.1))
    filled = time.perf_counter()
    advance()
    if compaction is None:
        raise ValueError(f"{size}: the drawn workload fits on no number of machines")
    return Cost(size, rule, compacted - begin, inflated - compacted, filled - packed, _rss_mib(), compaction)


def _rss_mib() -> float:
    """Return the most that this process and its largest ended ones held, one of these for each core."""
    own, ended = (resource.getrusage(scope).ru_maxrss for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (own + usable_cores() * ended) / 1024


def report(costs: Sequence[Cost]) -> Report:
    """Return the rows of the largest cluster by our ranking, and a table of all."""
    last = max((cost for cost in costs if cost.rule == OURS), key=lambda cost: (cost.size.machines, cost.size.classes))
    size = last.size
    what = f"{size.machines} machines, {size.classes * size.tasks_per_class} tasks in {size.classes} classes"
    what = f"{what}; Dovetail's default ranking"
    name = size.machines
    on = f"{usable_cores()} processes"
    trials = len(last.found.sizes)
    rows = [
        Row(f"compaction_s.{name}", round(last.compaction, 4), "s", 60.0, f"{trials} trials, {on}; {what}"),
        Row(f"inflation_s.{name}", round(last.inflation, 4), "s", 60.0, f"the largest horizontal factor; {what}"),
        Row(f"holes_s.{name}", round(last.holes, 6), "s", 1.0, what),
        Row(f"rss_mib.{name}", round(last.rss_mib, 1), "MiB", 2048.0, f"the most of the whole run, {on}; {what}"),
    ]
    table = Table(title="What the measures of packing cost", title_justify="left")
    table.add_column("policy")
    for head in ("machines", "classes", "tasks", "compaction s", "inflation s", "holes s", "machines enough", "bound"):
        table.add_column(head, justify="right")
    for cost in costs:
        amounts = (cost.size.machines, cost.size.classes, cost.size.classes * cost.size.tasks_per_class)
        seconds = (f"{cost.compaction:.2f}", f"{cost.inflation:.2f}", f"{cost.holes:.4f}")
        table.add_row(cost.rule, *map(str, amounts), *seconds, str(cost.found.percentile), str(cost.found.bound))
    return Report(rows, [table])
