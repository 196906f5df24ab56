"""Runs of one workload by several, over seeds, and the parts of the delay experiment that are made of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.experiments.delay.scans import Cluster, Scans
from lab.experiments.delay.trials import Measured, Trace, Trial, Who
from lab.experiments.tetris.gains import Seeds
from lab.experiments.tetris.sections import Plot, Section

Results = Mapping[Trial, Measured]


TIMES = "x"
"""The unit of what is so many times as large."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one workload on one cluster by several, each over the seeds; by name of who decides."""

    jobs: Scans | Trace
    cluster: Cluster | None
    who: Sequence[Who]
    seeds: Sequence[int]

    def trials(self) -> list[Trial]:
        """Return all runs."""
        return [self._trial(who, seed) for who in self.who for seed in self.seeds]

    def over(self, results: Results, name: str, figure: Callable[[Measured], float]) -> Seeds:
        """Return a figure of one contender for each seed."""
        return Seeds(tuple(figure(it) for it in self.of(results, name)))

    def ratio(self, results: Results, name: str, to: str, figure: Callable[[Measured], float]) -> Seeds:
        """Return for each seed how many times the figure of one contender that of another is."""
        pairs = zip(self.of(results, name), self.of(results, to), strict=True)
        return Seeds(tuple(figure(one) / figure(other) for one, other in pairs))

    def of(self, results: Results, name: str) -> list[Measured]:
        """Return what one contender came to, for each seed."""
        who = next(who for who in self.who if who.name == name)
        return [results[self._trial(who, seed)] for seed in self.seeds]

    def _trial(self, who: Who, seed: int) -> Trial:
        return Trial(self.jobs, self.cluster, who, seed)


@dataclass(frozen=True, slots=True)
class DelayPart:
    """A part of the experiment: its name, the runs it needs, and what makes a section of them."""

    name: str
    groups: Sequence[Group]
    make: Callable[[Results], Section]

    def trials(self) -> list[Trial]:
        """Return all runs; parts may share some."""
        return [trial for group in self.groups for trial in group.trials()]


def local(found: Measured) -> float:
    """Return the percentage of maps that read on their node."""
    return found.local()


def rack_local(found: Measured) -> float:
    """Return the percentage of maps that read on their node or in their rack."""
    return found.rack_local()


def makespan(found: Measured) -> float:
    """Return the seconds from the first arrival to the last end."""
    return found.makespan


def cell(seeds: Seeds, unit: str = "%") -> str:
    """Return the mean over the seeds, with its unit."""
    return f"{seeds.mean:.2f}{unit}" if unit == TIMES else f"{seeds.mean:.1f} {unit}"


def plot(
    name: str,
    title: str,
    x: str,
    unit: str,
    places: Sequence[float],
    curves: Mapping[str, Sequence[Seeds]],
    labels: Sequence[str] = (),
) -> Plot:
    """Return a figure of a curve for each label over these places, which have `labels` or their own numbers."""

    def draw() -> str:
        from lab.experiments.tetris import figures

        return figures.curves(name, places, curves, unit, x, labels)

    return Plot(title, "The mean over the seeds, and their range.", draw)


def where(cluster: Cluster) -> str:
    """Return what a cluster is, in words."""
    racks = f", {cluster.racks} racks" if cluster.racks else ""
    return f"{cluster.nodes} machines of {cluster.slots} slots{racks}"


def over(seeds: Sequence[int]) -> str:
    """Return which seeds, in words."""
    return f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
