"""How much m, rank, kappa, remote penalty, load and errors of durations change for many jobs (Graphene, 8.4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.cluster.resources import NETWORK_IN_INDEX
from extender.planner import Policy
from lab.experiments.graphene.jobs import CONTENDERS, OURS, TEZ, TEZ_TETRIS, drawn, in_two_queues
from lab.experiments.graphene.many import LOAD, WINDOWS, JobsRun, replayed, worse
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds
from lab.sim.dag.job_orders import searched
from lab.sim.parallel import Tell
from lab.sim.schedulers.policies import tetris
from lab.sim.workloads.workload import BLOCKS, Stage, Workload

M, RANK, KAPPA, PENALTY, ERRORS = "m", "rank", "kappa", "remote penalty", "errors"
QUEUE_KAPPA, OF_LOAD = "queue_kappa", "load"
_FIELDS = {M: "srtf", RANK: "rank", KAPPA: "kappa", PENALTY: "remote_penalty", QUEUE_KAPPA: "queue_kappa"}
VALUES: Mapping[str, Sequence[float]] = {
    M: (0.0, 0.2, 0.5, 1.0, 2.0),
    RANK: (0.0, 0.5, 1.0),
    KAPPA: (0.0, 0.1, 0.2, 0.5, 1.0),
    PENALTY: (0.0, 0.1, 0.2, 0.3, 0.5),
    ERRORS: (0.0, 0.25, 0.5, 0.75),
    QUEUE_KAPPA: (0.0, 0.1, 0.2, 0.4, 0.8),
    OF_LOAD: (0.5, 1.0, 2.0, 4.0),
}
_APART = (QUEUE_KAPPA, OF_LOAD)
"""These have tables of their own."""
_BY = {ERRORS: (OURS, TEZ_TETRIS, TEZ), OF_LOAD: (OURS, TEZ_TETRIS, TEZ)}
"""Who runs; ours alone with all others."""


@dataclass(frozen=True, slots=True)
class SweepRun:
    """So many DAGs of a seed with one value of one thing, by ours or, of errors and load, another contender."""

    seed: int
    jobs: int
    what: str
    value: float
    contender: str = OURS

    @property
    def name(self) -> str:
        """What it is called while it runs."""
        return f"{self.contender}, {self.what} {self.value:g}, {self.jobs} DAGs, seed {self.seed}"


def perform(run: SweepRun, tell: Tell) -> JobsRun:
    """Replay the DAGs."""
    workload = drawn(run.seed, run.jobs, run.value if run.what == OF_LOAD else LOAD)
    if run.what == QUEUE_KAPPA:
        workload = in_two_queues(workload, run.seed)
    if run.what == ERRORS:
        workload = expected_wrongly(workload, run.value, run.seed)
    if run.what == PENALTY:
        workload = reading_blocks(workload)
    if run.what in _FIELDS:
        return replayed(workload, tetris(**{_FIELDS[run.what]: run.value})(run.seed), searched, run.seed, tell)
    contender = CONTENDERS[run.contender]
    return replayed(workload, contender.make(run.seed), contender.order, run.seed, tell)


def expected_wrongly(workload: Workload, by: float, seed: int) -> Workload:
    """Return the same jobs, of whose stages schedulers expect durations that are wrong by up to that part (8.4)."""
    random = np.random.default_rng((seed, 1))
    return replace(
        workload,
        jobs=[
            replace(
                job,
                stages=[
                    replace(stage, duration=stage.duration * (1 + random.uniform(-by, by))) for stage in job.stages
                ],
            )
            for job in workload.jobs
        ],
    )


def reading_blocks(workload: Workload) -> Workload:
    """Return the same jobs; stages without parents read blocks, which lie on three machines each.

    They need a link only for what they read from elsewhere.
    """
    return replace(
        workload,
        jobs=[replace(job, stages=[_from_blocks(stage) for stage in job.stages]) for job in workload.jobs],
    )


def _from_blocks(stage: Stage) -> Stage:
    if stage.parents:
        return stage
    demand = stage.demand.copy()
    demand[NETWORK_IN_INDEX] = 0.0
    return replace(stage, source=BLOCKS, demand=demand)


@dataclass(frozen=True, slots=True)
class Sweeps:
    """The part: so many jobs for each seed."""

    jobs: int
    seeds: Sequence[int]
    name: str = "sweeps"

    def runs(self) -> list[SweepRun]:
        """Return its runs."""
        return [
            run
            for what in VALUES
            for value in VALUES[what]
            for name in _by(what)
            for run in self._of(what, value, name)
        ]

    def section(self, outcomes: Mapping[SweepRun, JobsRun]) -> Section:
        """Return the section."""

        def runs_of(knob: str, value: float, contender: str = OURS) -> list[JobsRun]:
            return [outcomes[run] for run in self._of(knob, value, contender)]

        half, _, _ = worse(runs_of(ERRORS, 0.5), runs_of(ERRORS, 0.0))
        return Section(
            title="Sweeps (Graphene, 8.4)",
            about=f"{self.jobs} drawn DAGs as in `jobs`, one queue; each against the default value, or no errors.",
            figures=[Figure("graphene.errors.half", half, None, "mean job time, durations wrong by up to 50 %")],
            listings=[_against_default(runs_of), _two_queues(runs_of), _by_load(runs_of)],
            notes=[
                "Errors: what is expected of a stage is wrong by a factor drawn evenly from 1 - e to 1 + e.",
                "Of the remote penalty: stages without parents read blocks; elsewhere tasks read where they run.",
                "Of queue_kappa: each job is of one of two queues. Times are beside those of one queue, Jain's index "
                "is of what both have while both have jobs.",
            ],
        )

    def _of(self, knob: str, value: float, contender: str) -> list[SweepRun]:
        return [SweepRun(seed, self.jobs, knob, value, contender) for seed in self.seeds]


RunsOf = Callable[..., Sequence[JobsRun]]
"""The runs of all seeds by what is changed, its value and, if it is not ours, who runs."""


def _by(knob: str) -> Sequence[str]:
    return _BY.get(knob, (OURS,))


def _usual(knob: str) -> float:
    return 0.0 if knob == ERRORS else float(getattr(Policy(), _FIELDS[knob]))


def _against_default(runs_of: RunsOf) -> Listing:
    """Return how much worse each value of most things is than the default."""
    lines = []
    for what, values in VALUES.items():
        for name in () if what in _APART else _by(what):
            usual = runs_of(what, _usual(what), name)
            for value in values:
                cells = [f"{seeds.mean:.1f}" for seeds in worse(runs_of(what, value, name), usual)]
                lines.append((what if what != ERRORS else f"errors, {name}", f"{value:g}", *cells))
    return Listing(("worse than by default, %", "value", "mean job time", "median job time", "makespan"), lines)


def _two_queues(runs_of: RunsOf) -> Listing:
    """Return what two queues cost, and how evenly they are served, by how far one may be ahead of the other."""
    one = runs_of(M, _usual(M))
    lines = []
    for value in VALUES[QUEUE_KAPPA]:
        two = runs_of(QUEUE_KAPPA, value)
        mean, median, _ = worse(two, one)
        index = [Seeds(tuple(run.jain[place] for run in two)).mean for place in range(len(WINDOWS))]
        lines.append((f"{value:g}", f"{mean.mean:.1f}", f"{median.mean:.1f}", *(f"{each:.2f}" for each in index)))
    heads = ("queue_kappa", "mean job time, % worse than one queue", "median", *(f"Jain {w:g} s" for w in WINDOWS))
    return Listing(heads, lines)


def _by_load(runs_of: RunsOf) -> Listing:
    """Return what ours gains by how many jobs run at a time."""
    lines = []
    for value in VALUES[OF_LOAD]:
        ours, cells = runs_of(OF_LOAD, value), []
        for name in (TEZ, TEZ_TETRIS):
            mean, median, _ = worse(ours, runs_of(OF_LOAD, value, name))
            cells += [f"{0.0 - mean.mean:.1f}", f"{0.0 - median.mean:.1f}"]
        lines.append((f"{value:g}", *cells))
    return Listing(("load", f"mean job time, % less than {TEZ}", "median", f"less than {TEZ_TETRIS}", "median"), lines)
