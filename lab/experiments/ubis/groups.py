"""The parts of the UBIS experiment: the runs that each needs, and figures over the seeds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lab.experiments.sections import Plot, Section
from lab.experiments.seeds import Seeds, paired
from lab.experiments.ubis.alibaba_jobs import AlibabaJobs
from lab.experiments.ubis.jobs import Pipelines
from lab.experiments.ubis.runs import UbisOutcome, UbisRun

Results = Mapping[UbisRun, UbisOutcome]


@dataclass(frozen=True, slots=True)
class UbisScale:
    """How large the experiment is: maps of a sleep job, other jobs, and the values that are gone through."""

    about: str
    seeds: int
    maps: int = 315
    pipelines: Pipelines = field(default_factory=Pipelines)
    alibaba: AlibabaJobs = field(default_factory=AlibabaJobs)
    t_allocs: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
    t_preempts: Sequence[float] = (0.85, 0.9, 0.95, 0.99)
    scrapes: Sequence[float] = (1.0, 5.0, 15.0, 30.0)


FULL = UbisScale("The paper's nodes, tasks and thresholds.", 5)
QUICK = UbisScale(
    "A small form, which shows that everything works; its numbers are not to be quoted.",
    seeds=1,
    maps=50,
    pipelines=Pipelines(size=0.02, nodes=1),
    alibaba=AlibabaJobs(nodes=1, seconds=150.0),
    t_allocs=(0.5, 0.9),
    t_preempts=(0.9, 0.99),
    scrapes=(1.0, 15.0),
)


@dataclass(frozen=True, slots=True)
class UbisPart:
    """A part of the experiment: its name, the runs that it needs, and the function that makes its section."""

    name: str
    needed: Sequence[UbisRun]
    section: Callable[[Results], Section]

    def runs(self) -> Sequence[UbisRun]:
        """Return all runs; parts may share some."""
        return self.needed


def with_seeds(run: UbisRun, seeds: Sequence[int]) -> list[UbisRun]:
    """Return a run with each of these seeds."""
    return seeded((run,), seeds)


def seeded(runs: Iterable[UbisRun], seeds: Sequence[int]) -> list[UbisRun]:
    """Return each of these runs with each of these seeds."""
    return [replace(run, seed=seed) for run in runs for seed in seeds]


def over(results: Results, run: UbisRun, seeds: Sequence[int], figure: Callable[[UbisOutcome], float]) -> Seeds:
    """Return a figure of a run for each seed."""
    return Seeds(tuple(float(figure(results[one])) for one in with_seeds(run, seeds)))


def compared(
    results: Results,
    run: UbisRun,
    other: UbisRun,
    seeds: Sequence[int],
    figure: Callable[[UbisOutcome, UbisOutcome], float],
) -> Seeds:
    """Return for each seed a figure of a run and another with the same seed."""
    return paired(
        with_seeds(run, seeds), with_seeds(other, seeds), lambda one, base: figure(results[one], results[base])
    )


def less(figure: Callable[[UbisOutcome], float]) -> Callable[[UbisOutcome, UbisOutcome], float]:
    """Return by how many percent a figure is less than that of another run."""
    return lambda ours, base: 100.0 * (figure(base) - figure(ours)) / figure(base)


def makespan(outcome: UbisOutcome) -> float:
    """Return the seconds from the first arrival to the last end."""
    return outcome.makespan


def total_job_seconds(outcome: UbisOutcome) -> float:
    """Return the sum of all job times (figure 6)."""
    return sum(outcome.job_seconds.values())


def task_seconds(outcome: UbisOutcome) -> float:
    """Return the sum of the times of all tasks (figure 7)."""
    return outcome.task_seconds


def share(outcome: UbisOutcome) -> float:
    """Return the percentage of all starts that were opportunistic."""
    return 100.0 * outcome.counts.opportunistic / outcome.counts.starts


def preempted(outcome: UbisOutcome) -> float:
    """Return the percentage of starts that were preempted."""
    return outcome.preempted


def cell(seeds: Seeds, unit: str = "") -> str:
    """Return the mean over the seeds, with its unit."""
    return f"{round(seeds.mean, 1) + 0.0:.1f}{unit}"  # + 0.0: no -0.0


def plot(
    name: str,
    title: str,
    note: str,
    axes: tuple[str, str],
    places: Sequence[float],
    curves: Mapping[str, Sequence[Seeds]],
) -> Plot:
    """Return a figure with a curve for each key over the places; `axes` are the words on x and y."""

    def draw() -> str:
        from lab.experiments import curves as drawing

        return drawing.curves(f"ubis-{name}", places, curves, axes[1], axes[0], [f"{place:g}" for place in places])

    return Plot(title, note, draw)
