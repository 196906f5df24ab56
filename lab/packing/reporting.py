"""What a packing report says, as data: the same for people (`words`) and for machines (--json)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import msgspec
import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import CPU, MEMORY
from lab.packing.compaction import Compaction, CompactionLimits, Policy, compact
from lab.packing.draining import Drained, drainable
from lab.packing.holes import fill, stranded, unit_of_median, unit_of_nodes, unit_of_tasks, utilisation
from lab.packing.inflation import WAYS, by_chance, most, picky
from lab.packing.misfits import without_misfits
from lab.packing.model import Problem
from lab.packing.moment import ClusterMoment
from lab.packing.orders import order_of
from lab.packing.placing import pack

UNITS: Mapping[str, Callable[[Problem, float], Floats]] = MappingProxyType(
    {
        "median": lambda problem, percent: unit_of_median(problem, percent / 100),
        "node": lambda problem, percent: unit_of_nodes(problem, percent / 100),
        "tasks": unit_of_tasks,
    }
)
"""What the unit that fills holes is taken from: the median node or each node itself, in percent; or a percentile."""


class Used(msgspec.Struct, frozen=True):
    """The allocated part of the cluster's CPU and memory, in percent."""

    cpu: float
    memory: float


class Filled(msgspec.Struct, frozen=True):
    """Hole filling: how many units (millicores, bytes) fit beside what is allocated, and what is allocated with them.

    Where each node has a unit of its own, `unit` is their median.

    On `cpu_stranded` nodes a unit of CPU is free and none of memory; on `memory_stranded` the reverse.
    """

    unit: dict[str, float]
    units: int
    before: Used
    after: Used
    cpu_stranded: list[str]
    memory_stranded: list[str]


class Grown(msgspec.Struct, frozen=True):
    """Inflation: the largest factor that leaves at most tau pending, and what is allocated then."""

    way: str
    classes: str
    factor: float
    used: Used


class Compacted(msgspec.Struct, frozen=True):
    """Compaction: how many nodes hold the workload, in each trial and at the 90th percentile; and the lower bound."""

    machines: int
    sizes: list[int]
    lower_bound: int
    times: int
    neighbours: int
    disagree: int


class Under(msgspec.Struct, frozen=True):
    """What is so where the whole workload is placed anew by a policy. `compacted` is None where no size is enough."""

    policy: str
    order: str
    pending: int
    compacted: Compacted | None
    holes: Filled
    inflated: list[Grown]
    by_chance: list[Grown]


class PackingReport(msgspec.Struct, frozen=True):
    """All that was found. `now` and `drain` are None where nobody knows where tasks are. `misfits` fit nowhere."""

    source: str
    machines: int
    tasks: int
    classes: int
    tau: float
    trials: int
    seed: int
    misfits: dict[str, int]
    picky: dict[str, int]
    now: Filled | None
    drain: Drained | None
    policies: list[Under]
    left_out: list[str]
    not_modelled: list[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report is to say. `unit`: percent of one of `UNITS`. `chances`: how often jobs are cloned at random."""

    policies: Sequence[Policy]
    terms: CompactionLimits
    unit: float = 10.0
    unit_of: str = "median"
    chances: int = 3


def report_of(moment: ClusterMoment, asked: Asked, advance: Callable[[], None] = lambda: None) -> PackingReport:
    """Measure the cluster; calls `advance` for each trial of compaction, and for each factor found."""
    # 1. Tasks that fit on no machine, however empty, are left out: no number of machines would do.
    problem, misfits = without_misfits(moment.problem)
    classes = problem.classes
    # 2. What is so now, and under each policy.
    unit = UNITS[asked.unit_of](problem, asked.unit)
    large, few = picky(problem)
    return PackingReport(
        source=moment.source,
        machines=problem.machines,
        tasks=classes.tasks,
        classes=len(classes.count),
        tau=asked.terms.tau,
        trials=asked.terms.trials,
        seed=asked.terms.seed,
        misfits=misfits,
        picky={"large": int(classes.count[large].sum()), "few_machines": int(classes.count[few].sum())},
        now=_filled(moment.problem, moment.problem.allocated, unit) if moment.placed else None,
        drain=_drained(moment) if moment.machines else None,
        policies=[_under(problem, policy, asked, unit, ~(large | few), advance) for policy in asked.policies],
        left_out=list(moment.left_out),
        not_modelled=list(moment.not_modelled),
    )


def _drained(moment: ClusterMoment) -> Drained:
    return drainable(moment.problem, moment.machines, moment.residents, moment.guards, moment.staying)


def steps(asked: Asked) -> int:
    """Return how often `report_of` calls `advance`."""
    return len(asked.policies) * (asked.terms.trials + 2 * len(WAYS) + asked.chances)


def _under(
    problem: Problem, policy: Policy, asked: Asked, unit: Floats, plain: Mask, advance: Callable[[], None]
) -> Under:
    terms, every = asked.terms, np.arange(len(problem.classes.count))
    draw = np.random.default_rng(terms.seed)
    packing = pack(problem, np.arange(problem.machines), order_of(problem, policy.order), policy.rule, draw=draw)
    compaction = compact(problem, policy, terms, advance)
    inflated, chances = [], []
    for way in WAYS:
        for name, rows in (("all", every), ("conforming", np.flatnonzero(plain))):
            limit = most(problem, way, rows, policy, terms.tau, terms.seed)
            inflated += [Grown(way, name, limit.factor, _used(limit.used))] if limit else []
            advance()
    fits = packing.pending <= terms.tau * problem.classes.tasks
    for seed in range(terms.seed, terms.seed + asked.chances):
        if fits:
            reached = by_chance(problem, every, policy, terms.tau, seed)
            chances.append(Grown("by chance", "all", round(reached.factor, 3), _used(reached.used)))
        advance()
    return Under(
        policy=policy.rule,
        order=policy.order,
        pending=packing.pending,
        compacted=None if compaction is None else _compacted(compaction),
        holes=_filled(problem, packing.allocated, unit),
        inflated=inflated,
        by_chance=chances,
    )


def _compacted(compaction: Compaction) -> Compacted:
    return Compacted(
        machines=compaction.percentile,
        sizes=compaction.sizes.tolist(),
        lower_bound=compaction.bound,
        times=compaction.times,
        neighbours=compaction.looked,
        disagree=compaction.disagree,
    )


def _filled(problem: Problem, allocated: Floats, unit: Floats) -> Filled:
    holes = fill(problem, allocated, unit)
    of_cpu, of_memory = stranded(problem, allocated, unit)
    return Filled(
        unit=dict(zip((CPU, MEMORY), np.median(np.atleast_2d(unit), axis=0).tolist(), strict=True)),
        units=int(holes.units.sum()),
        before=_used(utilisation(problem, allocated)),
        after=_used(holes.after),
        cpu_stranded=_names(problem, np.flatnonzero(of_cpu)),
        memory_stranded=_names(problem, np.flatnonzero(of_memory)),
    )


def _names(problem: Problem, rows: Rows) -> list[str]:
    return [problem.layout.names[row] for row in rows.tolist()]


def _used(parts: Floats) -> Used:
    cpu, memory = (round(100 * float(part), 2) for part in parts)
    return Used(cpu, memory)
