"""How much m, the rank, the remote penalty and errors of durations change for many jobs (Graphene, 8.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.cluster.resources import NETWORK_IN_INDEX
from extender.planner import Policy
from lab.experiments.graphene.jobs import CONTENDERS, OURS, TEZ, TEZ_TETRIS, drawn
from lab.experiments.graphene.many import LOAD, JobsRun, in_one_queue, replayed
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds
from lab.sim.dag.job_orders import searched
from lab.sim.parallel import Tell
from lab.sim.schedulers.policies import tetris
from lab.sim.workloads.workload import BLOCKS, Stage, Workload

M, RANK, PENALTY, ERRORS = "m", "rank", "remote penalty", "errors"
_FIELDS = {M: "srtf", RANK: "rank", PENALTY: "remote_penalty"}
VALUES: Mapping[str, Sequence[float]] = {
    M: (0.0, 0.2, 0.5, 1.0, 2.0),
    RANK: (0.0, 0.5, 1.0),
    PENALTY: (0.0, 0.1, 0.2, 0.3, 0.5),
    ERRORS: (0.0, 0.25, 0.5, 0.75),
}
_ERRING = (OURS, TEZ_TETRIS, TEZ)


@dataclass(frozen=True, slots=True)
class SweepRun:
    """So many DAGs of a seed with one value of one thing, by ours or, of errors, another contender."""

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
    workload = in_one_queue(drawn(run.seed, run.jobs, LOAD))
    contender = CONTENDERS[run.contender]
    if run.what == ERRORS:
        return replayed(
            expected_wrongly(workload, run.value, run.seed), contender.make(run.seed), contender.order, run.seed, tell
        )
    if run.what == PENALTY:
        workload = reading_blocks(workload)
    tuned = tetris(**{_FIELDS[run.what]: run.value})(run.seed)
    return replayed(workload, tuned, searched, run.seed, tell)


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

    def make(self, outcomes: Mapping[SweepRun, JobsRun]) -> Section:
        """Return the section."""

        def of(what: str, value: float, contender: str = OURS) -> list[JobsRun]:
            return [outcomes[run] for run in self._of(what, value, contender)]

        lines = []
        for what, values in VALUES.items():
            for name in _by(what):
                usual = of(what, _usual(what), name)
                for value in values:
                    cells = [f"{seeds.mean:.1f}" for seeds in _worse(of(what, value, name), usual)]
                    lines.append((what if what != ERRORS else f"errors, {name}", f"{value:g}", *cells))
        half, _, _ = _worse(of(ERRORS, 0.5), of(ERRORS, 0.0))
        return Section(
            title="Sweeps (Graphene, 8.4)",
            about=f"{self.jobs} drawn DAGs as in `jobs`, one queue; each against the default value, or no errors.",
            figures=[Figure("graphene.errors.half", half, None, "mean job time, durations wrong by up to 50 %")],
            listings=[
                Listing(("worse than by default, %", "value", "mean job time", "median job time", "makespan"), lines)
            ],
            notes=[
                "Errors: what is expected of a stage is wrong by a factor drawn evenly from 1 - e to 1 + e.",
                "Of the remote penalty: stages without parents read blocks; elsewhere tasks read where they run.",
            ],
        )

    def _of(self, what: str, value: float, contender: str) -> list[SweepRun]:
        return [SweepRun(seed, self.jobs, what, value, contender) for seed in self.seeds]


def _by(what: str) -> Sequence[str]:
    return _ERRING if what == ERRORS else (OURS,)


def _usual(what: str) -> float:
    return 0.0 if what == ERRORS else float(getattr(Policy(), _FIELDS[what]))


def _worse(some: Sequence[JobsRun], usual: Sequence[JobsRun]) -> tuple[Seeds, Seeds, Seeds]:
    """Return by how many percent mean and median job time and makespan are larger, for each seed."""
    pairs = list(zip(some, usual, strict=True))
    return (
        Seeds(tuple(float(100 * (one.seconds.mean() / two.seconds.mean() - 1)) for one, two in pairs)),
        Seeds(tuple(float(100 * (np.median(one.seconds) / np.median(two.seconds) - 1)) for one, two in pairs)),
        Seeds(tuple(100 * (one.makespan / two.makespan - 1) for one, two in pairs)),
    )
