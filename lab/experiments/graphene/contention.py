"""What overbooking disks and links does where contention wastes much, little or nothing (Graphene, 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.planner import Planner, Policy
from lab.experiments.graphene.jobs import MACHINES, drawn
from lab.experiments.graphene.many import JobsRun, replayed, worse
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds
from lab.sim.parallel import Tell

LOADS, LOSSES = (1.0, 2.0), (0.0, 0.5, 1.0)
CAP = 0.2
"""What Graphene's own example overbooks, and up to where our links lose nothing."""


@dataclass(frozen=True, slots=True)
class ContentionRun:
    """So many DAGs of a seed that arrive at a load, where so much of what contention wastes counts."""

    seed: int
    jobs: int
    load: float
    loss: float
    overbook: float

    @property
    def name(self) -> str:
        """What it is called while it runs."""
        return f"overbook {self.overbook:g}, load {self.load:g}, loss {self.loss:g}, {self.jobs} DAGs, seed {self.seed}"


def perform(run: ContentionRun, tell: Tell) -> JobsRun:
    """Replay the DAGs by our planner, without orders inside jobs."""
    planner = Planner(Policy(overbook=run.overbook))
    return replayed(drawn(run.seed, run.jobs, run.load), planner, None, run.seed, tell, loss=run.loss)


@dataclass(frozen=True, slots=True)
class Contention:
    """The part: so many jobs for each seed."""

    jobs: int
    seeds: Sequence[int]
    name: str = "contention"

    def runs(self) -> list[ContentionRun]:
        """Return its runs."""
        return [
            run
            for load in LOADS
            for loss in LOSSES
            for overbook in (0.0, CAP)
            for run in self._of(load, loss, overbook)
        ]

    def section(self, outcomes: Mapping[ContentionRun, JobsRun]) -> Section:
        """Return the section."""
        figures, lines = [], []
        for load in LOADS:
            for loss in LOSSES:
                without = [outcomes[run] for run in self._of(load, loss, 0.0)]
                beyond = [outcomes[run] for run in self._of(load, loss, CAP)]
                jobs, _, makespan = worse(beyond, without)
                figures.append(Figure(f"graphene.overbook.load_{load:g}.loss_{loss:g}", jobs, None, "mean job time"))
                lines.append((f"{load:g}", f"{loss:g}", *_cells(jobs), *_cells(makespan)))
        return Section(
            title="Overbooking and contention (Graphene, 5)",
            about=(
                f"{self.jobs} drawn DAGs on {MACHINES} machines in one queue, by our planner without orders. By how "
                f"many percent more, with {CAP:.0%} of disks and links overbooked than with none; below 0 is better."
            ),
            figures=figures,
            listings=[
                Listing(
                    ("load", "loss", "mean job time, %", "over the seeds", "makespan, %", "over the seeds"),
                    lines,
                )
            ],
            notes=["Loss: how much of what contention wastes counts (seeks, incast); 1 is what is published."],
        )

    def _of(self, load: float, loss: float, overbook: float) -> list[ContentionRun]:
        return [ContentionRun(seed, self.jobs, load, loss, overbook) for seed in self.seeds]


def _cells(seeds: Seeds) -> tuple[str, str]:
    return f"{seeds.mean:.1f}", f"{seeds.low:.1f} to {seeds.high:.1f}"
