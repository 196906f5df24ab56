"""Many jobs: drawn DAGs on one cluster, by Tez-like schedulers, by Tetris and by ours (Graphene, 8.2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.planner import Scheduler
from lab.experiments.graphene.jobs import (
    CONTENDERS,
    KAPPA,
    LOOSE,
    MACHINES,
    OURS,
    PAPER,
    QUEUES,
    TETRIS,
    TEZ,
    TEZ_CP,
    TEZ_DRF,
    TEZ_TETRIS,
    drawn,
    in_two_queues,
    machines,
)
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds, paired
from lab.sim.dag.job_orders import MakeRanks
from lab.sim.engine import clock
from lab.sim.engine.clock import SimulationSettings
from lab.sim.engine.outcome import Outcome
from lab.sim.parallel import Tell
from lab.sim.runs import all_at_start
from lab.sim.workloads.workload import Workload

LOAD = 2.0
"""Jobs arrive in half the time that their work keeps the cluster busy: so many of them run at a time."""
WINDOWS = (10.0, 60.0, 240.0)
ARRIVING, TWO_QUEUES, AT_START = "arriving", "two queues", "at the start"
_HEARTBEAT = 1.0
_SETTINGS: Mapping[str, Sequence[str]] = {
    ARRIVING: tuple(name for name in CONTENDERS if name != LOOSE),  # which differs with two queues only
    TWO_QUEUES: (TEZ, TEZ_DRF, TEZ_TETRIS, OURS, LOOSE),
    AT_START: (TEZ, TEZ_CP, TEZ_TETRIS, TETRIS, OURS),
}
_PAPER_TEZ = {50: 27.8, 75: 45.7}
_PAPER_JAIN = (0.72, 0.83, 0.89)


@dataclass(frozen=True, slots=True)
class ManyRun:
    """So many DAGs of a seed by one scheduler; `setting`: they arrive in one queue, in two, or all at the start."""

    seed: int
    jobs: int
    contender: str
    setting: str

    @property
    def name(self) -> str:
        """What it is called while it runs."""
        return f"{self.contender}, {self.jobs} DAGs {self.setting}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class JobsRun:
    """The seconds of each job [J], the makespan, and Jain's index over WINDOWS (NaN: there is no such window).

    `least` is the makespan that no scheduler does better (workloads.bounds).
    """

    seconds: Floats
    makespan: float
    jain: tuple[float, ...]
    least: float


def perform(run: ManyRun, tell: Tell) -> JobsRun:
    """Replay the DAGs."""
    contender = CONTENDERS[run.contender]
    return replayed(_workload(run), contender.make(run.seed), contender.order, run.seed, tell)


def replayed(
    workload: Workload, scheduler: Scheduler, order: MakeRanks | None, seed: int, tell: Tell, *, loss: float = 0.0
) -> JobsRun:
    """Return what came of these jobs on the machines; `loss` is how much of what contention wastes counts."""
    outcome = clock.run(
        workload,
        machines(),
        scheduler,
        seed=seed,
        settings=SimulationSettings(heartbeat_seconds=_HEARTBEAT, loss=loss, sample_seconds=_HEARTBEAT, points=100_000),
        progress=tell,
        order=order,
    )
    index = tuple(jain(outcome, window) for window in WINDOWS)
    return JobsRun(outcome.job_seconds, outcome.makespan, index, outcome.bounds.makespan)


def jain(outcome: Outcome, seconds: float) -> float:
    """Return Jain's index of what the queues have, as a mean over windows in which all have jobs all the time.

    Of shares x of n queues with equal weights it is (sum x)^2 / (n sum x^2): 1 if all have the same.
    """
    series = outcome.series
    if len(outcome.queue_names) < len(QUEUES):
        return float("nan")
    has_jobs = np.zeros(series.queues.shape, dtype=np.bool_)
    for job in outcome.jobs:
        there = (series.at >= job.arrived) & (series.at < job.ended)
        has_jobs[there, outcome.queue_names.index(job.queue)] = True
    window = ((series.at - series.at[0]) // seconds).astype(np.intp)
    points = np.bincount(window)
    held = np.stack([np.bincount(window, weights=share) for share in series.queues.T], axis=1) / points[:, np.newaxis]
    counts = (np.bincount(window, weights=has_jobs.all(axis=1)) == points) & (held.sum(axis=1) > 0)
    held = held[counts]
    if not len(held):
        return float("nan")
    return float(np.mean(held.sum(axis=1) ** 2 / (held.shape[1] * (held**2).sum(axis=1))))


@dataclass(frozen=True, slots=True)
class Many:
    """The part: so many jobs for each seed."""

    jobs: int
    seeds: Sequence[int]
    name: str = "jobs"

    def runs(self) -> list[ManyRun]:
        """Return its runs."""
        return [
            ManyRun(seed, self.jobs, contender, setting)
            for seed in self.seeds
            for setting, contenders in _SETTINGS.items()
            for contender in contenders
        ]

    def section(self, outcomes: Mapping[ManyRun, JobsRun]) -> Section:
        """Return the section."""
        return Section(
            title="Many jobs (Graphene, 8.2)",
            about=(
                f"{self.jobs} drawn DAGs on {MACHINES} machines, which arrive in 1/{LOAD:g} of the time of their work. "
                "Gains are those of each job, as a part of its time under the other scheduler."
            ),
            figures=_figures(lambda contender, setting: [outcomes[run] for run in self._of(contender, setting)]),
            listings=[_listing(lambda contender, setting: [outcomes[run] for run in self._of(contender, setting)])],
            notes=[f"{name}: {contender.words}." for name, contender in CONTENDERS.items()],
        )

    def _of(self, contender: str, setting: str) -> list[ManyRun]:
        return [ManyRun(seed, self.jobs, contender, setting) for seed in self.seeds]


RunsOf = Callable[[str, str], Sequence[JobsRun]]


def _workload(run: ManyRun) -> Workload:
    workload = drawn(run.seed, run.jobs, LOAD)
    if run.setting == TWO_QUEUES:
        workload = in_two_queues(workload, run.seed)
    return all_at_start(workload) if run.setting == AT_START else workload


def _figures(runs_of: RunsOf) -> list[Figure]:
    ours = runs_of(OURS, ARRIVING)
    tez = [
        Figure(
            f"graphene.jobs_vs_tez.p{at}", _gain(ours, runs_of(TEZ, ARRIVING), at), paper, "of job time, less than Tez"
        )
        for at, paper in _PAPER_TEZ.items()
    ]
    drf = [
        Figure(
            f"graphene.jobs_vs_tez_drf.p{at}", _gain(ours, runs_of(TEZ_DRF, ARRIVING), at), None, "less than Tez+DRF"
        )
        for at in _PAPER_TEZ
    ]
    return [
        *tez,
        *drf,
        Figure(
            "graphene.makespan_vs_tez",
            _makespan(runs_of(OURS, AT_START), runs_of(TEZ, AT_START)),
            30.9,
            "all at the start",
            attainable=Seeds(tuple(100 * (1 - run.least / run.makespan) for run in runs_of(TEZ, AT_START))),
        ),
        Figure(
            "graphene.jobs_vs_tetris.p50",
            _gain(ours, runs_of(TEZ_TETRIS, ARRIVING), 50),
            None,
            "less than Tez+Tetris",
        ),
        Figure(
            "graphene.jobs_vs_paper.p50",
            _gain(ours, runs_of(PAPER, ARRIVING), 50),
            None,
            "less than Tetris that sees all open stages",
        ),
        Figure(
            "graphene.two_queues",
            _two_queues(runs_of(LOOSE, TWO_QUEUES), ours),
            2.0,
            f"of the median job time, gained by two queues, queue_kappa {KAPPA:g}; below 0: lost",
        ),
        *(
            Figure(
                f"graphene.jain.{window:g}s",
                Seeds(tuple(run.jain[place] for run in runs_of(LOOSE, TWO_QUEUES))),
                paper,
                f"two queues, queue_kappa {KAPPA:g}, windows in which both have jobs",
                "p",
            )
            for place, (window, paper) in enumerate(zip(WINDOWS, _PAPER_JAIN, strict=True))
        ),
    ]


def _gain(ours: Sequence[JobsRun], other: Sequence[JobsRun], percentile: int) -> Seeds:
    """Return that percentile of what jobs gain, in percent of their time under the other, for each seed."""
    return paired(ours, other, lambda one, two: float(np.percentile(100 * (1 - one.seconds / two.seconds), percentile)))


def _mean_gain(ours: Sequence[JobsRun], other: Sequence[JobsRun]) -> Seeds:
    return paired(ours, other, lambda one, two: 100 * (1 - one.seconds.mean() / two.seconds.mean()))


def _makespan(ours: Sequence[JobsRun], other: Sequence[JobsRun]) -> Seeds:
    return paired(ours, other, lambda one, two: 100 * (1 - one.makespan / two.makespan))


def _two_queues(two: Sequence[JobsRun], one: Sequence[JobsRun]) -> Seeds:
    """Return by how many percent the median job takes less time with two queues than with one, for each seed."""
    return paired(two, one, lambda run, base: float(100 * (1 - np.median(run.seconds) / np.median(base.seconds))))


def worse(some: Sequence[JobsRun], usual: Sequence[JobsRun]) -> tuple[Seeds, Seeds, Seeds]:
    """Return by how many percent mean and median job time and makespan are larger, for each seed."""
    return (
        paired(some, usual, lambda one, two: 100 * (one.seconds.mean() / two.seconds.mean() - 1)),
        paired(some, usual, lambda one, two: float(100 * (np.median(one.seconds) / np.median(two.seconds) - 1))),
        paired(some, usual, lambda one, two: 100 * (one.makespan / two.makespan - 1)),
    )


def _listing(runs_of: RunsOf) -> Listing:
    """Return what each scheduler gains over Tez, and how fair it is; a dash where it was not run so."""
    heads = (
        "less than Tez, %",
        "p25",
        "p50",
        "p75",
        "mean job time",
        "makespan, all at start",
        "two queues",
        *(f"Jain {window:g} s" for window in WINDOWS),
    )
    lines = []
    for name in CONTENDERS:
        arriving, tez = runs_of(OURS if name == LOOSE else name, ARRIVING), runs_of(TEZ, ARRIVING)
        cells = ["-"] * 4
        if name in _SETTINGS[ARRIVING]:
            gains = [_gain(arriving, tez, at) for at in (25, 50, 75)]
            cells = [f"{seeds.mean:.1f}" for seeds in (*gains, _mean_gain(arriving, tez))]
        at_start = name in _SETTINGS[AT_START]
        cells.append(f"{_makespan(runs_of(name, AT_START), runs_of(TEZ, AT_START)).mean:.1f}" if at_start else "-")
        if name in _SETTINGS[TWO_QUEUES]:
            two = runs_of(name, TWO_QUEUES)
            cells.append(f"{_two_queues(two, arriving).mean:.1f}")
            cells += [f"{Seeds(tuple(run.jain[place] for run in two)).mean:.2f}" for place in range(len(WINDOWS))]
        else:
            cells += ["-"] * (1 + len(WINDOWS))
        lines.append((name, *cells))
    return Listing(heads, lines)
