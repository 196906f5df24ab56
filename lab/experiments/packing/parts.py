"""What is compared on each cluster: the paper's orders by first fit, and rules in the order of arrival."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds
from lab.packing.compaction import Compaction, CompactionLimits, Policy, compact
from lab.packing.holes import fill, unit_of_median
from lab.packing.inflation import Inflated, most
from lab.packing.model import Problem
from lab.packing.orders import order_of
from lab.packing.placing import pack
from lab.packing.traces import read_openb, read_roadef
from lab.sim.parallel import Tell

TAU = 0.004
"""The part of the tasks that may stay pending in figures 4 and 5."""

UNIT = 0.1

CONTENDERS: Mapping[str, Policy] = MappingProxyType(
    {order: Policy(order) for order in ("arrival", "cpu", "memory", "sum")}
    | {"bestfit": Policy(rule="best-fit"), "default": Policy(rule="stock"), "fgd": Policy(rule="fgd")}
    | {"dovetail": Policy(rule="dovetail")}
)
"""By the last word of a row's id: the paper's orders by first fit, then rules in the order of arrival."""

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "arrival": "first fit by arrival",
        "cpu": "first fit by CPU",
        "memory": "first fit by memory",
        "sum": "first fit by sum",
        "bestfit": "best fit",
        "default": "kube-scheduler",
        "fgd": "FGD",
        "dovetail": "Dovetail",
    }
)


@dataclass(frozen=True, slots=True)
class PackingScale:
    """How much is run: one of `openb` nodes and pods, one of `machines` of a `google` cluster, how many `trials`."""

    about: str
    openb: int
    google: str
    machines: int
    trials: int
    seeds: int = 1


FULL = PackingScale("Clusters of traces, packed anew; 0.4 % of the tasks may find no place.", 8, "a2_2", 1, 11)
QUICK = PackingScale(
    f"{FULL.about} A small form, which shows that everything works; not to be quoted.", 40, "a2_4", 4, 2
)


@dataclass(frozen=True, slots=True)
class PackingRun:
    """One contender on one cluster."""

    cluster: str
    contender: str
    scale: PackingScale
    seed: int
    traces: Path

    @property
    def name(self) -> str:
        """The name that is shown; different runs have different names."""
        return f"{self.cluster}, {_WORDS[self.contender]}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class PackingOutcome:
    """What was measured. `compacted` is None where no size was enough; factors where the workload does not fit now."""

    machines: int
    tasks: int
    compacted: Compaction | None
    horizontal: Inflated | None
    vertical: Inflated | None
    filled: tuple[float, float]


@dataclass(frozen=True, slots=True)
class PackingPart:
    """One cluster."""

    name: str
    about: str
    needed: Sequence[PackingRun]

    def runs(self) -> Sequence[PackingRun]:
        """Return the runs of all contenders."""
        return self.needed

    def section(self, results: Mapping[PackingRun, PackingOutcome]) -> Section:
        """Return the figures of one cluster, machines first; the table has the first seed."""
        outcomes: dict[str, list[PackingOutcome]] = {}
        for run in self.needed:
            outcomes.setdefault(run.contender, []).append(results[run])
        figures, more, lines = [], [], []
        for name, of_seeds in outcomes.items():
            sizes = [one.compacted for one in of_seeds if one.compacted is not None]
            if sizes:
                figures.append(
                    _figure(self, "machines", name, [size.percentile for size in sizes], note=_range(sizes[0]))
                )
            factors = {
                "horizontal": [one.horizontal.factor for one in of_seeds if one.horizontal is not None],
                "vertical": [one.vertical.factor for one in of_seeds if one.vertical is not None],
            }
            more += [_figure(self, way, name, values, "x") for way, values in factors.items() if values]
            for place, resource in enumerate(("cpu", "memory")):
                more.append(_figure(self, f"holes_{resource}", name, [one.filled[place] for one in of_seeds], "%"))
            lines.append((_WORDS[name], *_cells(of_seeds[0])))
        bounds = [one.compacted.bound for one in outcomes["arrival"] if one.compacted is not None]
        if bounds:
            note = "no placement needs fewer, on the permutations of first fit by arrival"
            figures.append(_figure(self, "machines", "lower_bound", bounds, note=note))
        first = outcomes["arrival"][0]
        return Section(
            title=f"{self.name}: {first.machines} machines, {first.tasks} tasks",
            about=f"{self.about}. Machines that are enough: 90th percentile of {self.needed[0].scale.trials} trials.",
            figures=figures,
            listings=[
                Listing(("", "machines", "range", "more tasks", "larger tasks", "holes: CPU %", "memory %"), lines)
            ],
            notes=(
                "More tasks, larger tasks: the largest factor that leaves at most 0.4 % pending on all machines; -: "
                "the workload does not fit on them as it is. Holes: allocated with "
                "units of a tenth of the median machine.",
                "More machines than there are: clones of all were added first. More clones: other permutations.",
            ),
            more=more,
        )


def parts(scale: PackingScale, seeds: Sequence[int], traces: Path) -> list[PackingPart]:
    """Return the clusters that are compared on."""
    part = f", one of {scale.machines} machines" if scale.machines > 1 else ""
    abouts = {
        "openb": f"One of {scale.openb} nodes and pods of Alibaba's GPU cluster of 2023",
        "google": f"Cluster {scale.google} of Google's machine reassignment challenge{part}",
    }
    return [
        PackingPart(name, about, [PackingRun(name, one, scale, seed, traces) for one in CONTENDERS for seed in seeds])
        for name, about in abouts.items()
    ]


def perform(run: PackingRun, tell: Tell) -> PackingOutcome:
    """Measure one contender on one cluster. Raises TraceError."""
    problem, policy = _problem(run), CONTENDERS[run.contender]
    every, steps = np.arange(len(problem.classes.count)), iter(range(1, run.scale.trials + 1))
    terms = CompactionLimits(TAU, trials=run.scale.trials, seed=run.seed)
    compacted = compact(problem, policy, terms, lambda: tell(next(steps), run.scale.trials + 1))
    horizontal, vertical = (most(problem, way, every, policy, TAU, run.seed) for way in ("horizontal", "vertical"))
    machines, draw = np.arange(problem.machines), np.random.default_rng(run.seed)
    packing = pack(problem, machines, order_of(problem, policy.order), policy.rule, draw=draw)
    after = fill(problem, packing.allocated, unit_of_median(problem, UNIT)).after
    tell(run.scale.trials + 1, run.scale.trials + 1)
    filled = (100 * float(after[0]), 100 * float(after[1]))
    return PackingOutcome(problem.machines, problem.classes.tasks, compacted, horizontal, vertical, filled)


def _problem(run: PackingRun) -> Problem:
    if run.cluster == "openb":
        return read_openb(run.traces / "openb_gpu2023", every=run.scale.openb).problem
    return read_roadef(run.traces / "roadef2012_google" / run.scale.google, every=run.scale.machines).problem


def _figure(
    part: PackingPart, measure: str, name: str, values: Sequence[float], unit: str = "", *, note: str = ""
) -> Figure:
    return Figure(f"{part.name}.{measure}.{name}", Seeds(tuple(map(float, values))), note=note, unit=unit)


def _range(compaction: Compaction) -> str:
    words = f"{compaction.sizes.min()} to {compaction.sizes.max()} in {len(compaction.sizes)} trials"
    beside = f"{compaction.disagree} of {compaction.looked} neighbouring sizes disagree"
    return f"{words}; {compaction.times} x the machines; {beside}"


def _cells(outcome: PackingOutcome) -> tuple[str, ...]:
    compacted = outcome.compacted
    sizes = (
        ("-", "-")
        if compacted is None
        else (str(compacted.percentile), f"{compacted.sizes.min()} to {compacted.sizes.max()}")
    )
    factors = ["-" if one is None else f"{one.factor:.2f}" for one in (outcome.horizontal, outcome.vertical)]
    return (*sizes, *factors, *(f"{percent:.1f}" for percent in outcome.filled))
