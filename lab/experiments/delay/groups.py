"""Groups of runs of one workload by several contenders, and the parts of the delay experiment that use them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.experiments.delay.runs import DelayContender, DelayOutcome, DelayRun, YahooTrace
from lab.experiments.delay.scans import Scans, SlotCluster
from lab.experiments.sections import Plot, Section
from lab.experiments.seeds import Seeds, paired

Results = Mapping[DelayRun, DelayOutcome]

TIMES = "x"
"""The unit of a ratio."""


@dataclass(frozen=True, slots=True)
class RunGroup:
    """One workload on one cluster, run by each contender with each seed."""

    jobs: Scans | YahooTrace
    cluster: SlotCluster | None
    contenders: Sequence[DelayContender]
    seeds: Sequence[int]

    def runs(self) -> list[DelayRun]:
        """Return all runs."""
        return [self._run(contender, seed) for contender in self.contenders for seed in self.seeds]

    def over(self, results: Results, name: str, figure: Callable[[DelayOutcome], float]) -> Seeds:
        """Return a figure of the contender of this name for each seed."""
        return Seeds(tuple(figure(outcome) for outcome in self.outcomes(results, name)))

    def ratio(self, results: Results, name: str, divisor: str, figure: Callable[[DelayOutcome], float]) -> Seeds:
        """Return for each seed a figure of the contender `name` divided by that of the contender `divisor`."""
        ours, others = self.outcomes(results, name), self.outcomes(results, divisor)
        return paired(ours, others, lambda one, other: figure(one) / figure(other))

    def outcomes(self, results: Results, name: str) -> list[DelayOutcome]:
        """Return the outcomes of the contender of this name, for each seed."""
        contender = next(contender for contender in self.contenders if contender.name == name)
        return [results[self._run(contender, seed)] for seed in self.seeds]

    def _run(self, contender: DelayContender, seed: int) -> DelayRun:
        return DelayRun(self.jobs, self.cluster, contender, seed)


@dataclass(frozen=True, slots=True)
class DelayPart:
    """A part of the experiment: its name, the runs that it needs, and the function that makes its section."""

    name: str
    groups: Sequence[RunGroup]
    section: Callable[[Results], Section]

    def runs(self) -> list[DelayRun]:
        """Return all runs; parts may share some."""
        return [run for group in self.groups for run in group.runs()]


def local(outcome: DelayOutcome) -> float:
    """Return the percentage of maps that read on their node."""
    return outcome.local()


def rack_local(outcome: DelayOutcome) -> float:
    """Return the percentage of maps that read on their node or in their rack."""
    return outcome.rack_local()


def makespan(outcome: DelayOutcome) -> float:
    """Return the seconds from the first arrival to the last end."""
    return outcome.makespan


def mean_seconds(outcome: DelayOutcome) -> float:
    """Return the mean job time in seconds."""
    return float(outcome.seconds.mean())


def cell(seeds: Seeds, unit: str = "%") -> str:
    """Return the mean over the seeds, with its unit."""
    return f"{seeds.mean:.2f}{unit}" if unit == TIMES else f"{seeds.mean:.1f} {unit}"


def plot(
    name: str,
    *,
    title: str,
    x: str,
    unit: str,
    places: Sequence[float],
    curves: Mapping[str, Sequence[Seeds]],
    labels: Sequence[str] = (),
) -> Plot:
    """Return a figure with one curve for each key of `curves`.

    `places` are the points on the axis `x`; they show `labels`, or their own numbers without labels.
    """

    def draw() -> str:
        from lab.experiments import curves as drawing

        return drawing.curves(name, places, curves, unit, x, labels)

    return Plot(title, "The mean over the seeds, and their range.", draw)


def cluster_words(cluster: SlotCluster) -> str:
    """Return the size of a cluster in words."""
    racks = f", {cluster.racks} racks" if cluster.racks else ""
    return f"{cluster.nodes} machines of {cluster.slots} slots{racks}"
