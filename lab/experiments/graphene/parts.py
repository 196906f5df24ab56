"""The list of the parts of the Graphene experiments, and how large they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.graph.building import EFFORT
from lab.experiments import running
from lab.experiments.graphene.single import Single, SingleRun, perform
from lab.experiments.sections import Section, Skipped
from lab.sim.parallel import Show


@dataclass(frozen=True, slots=True)
class Scale:
    """How large everything is: seeds, DAGs for each seed and load, and the effort on each."""

    about: str
    seeds: int
    dags: int
    effort: int


FULL = Scale("A hundred DAGs for each seed.", 5, 100, EFFORT)
QUICK = Scale("A small form, which shows that everything works; its numbers are not to be quoted.", 1, 5, 1_000)


def parts(scale: Scale, seeds: Sequence[int]) -> list[Single]:
    """Return the parts at this scale, over these seeds."""
    return [Single(scale.dags, seeds, scale.effort)]


def runs_of(parts: Sequence[Single]) -> dict[str, SingleRun]:
    """Return the runs that these parts need by their names, each once."""
    return {run.name: run for part in parts for run in part.runs()}


def run_parts(parts: Sequence[Single], *, processes: int, show: Show) -> tuple[list[Section], list[Skipped]]:
    """Return the sections of the parts, and the parts that are skipped because one of their runs failed."""
    return running.run_parts(
        parts, runs_of, perform, lambda part, results: part.make(results), processes=processes, show=show
    )
