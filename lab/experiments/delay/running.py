"""The delay experiment from its parts to their sections."""

from collections.abc import Sequence

from lab.experiments import running
from lab.experiments.delay.groups import DelayPart
from lab.experiments.delay.runs import DelayRun, perform
from lab.experiments.sections import Section, Skipped
from lab.sim.parallel import Show


def runs_of(parts: Sequence[DelayPart]) -> dict[str, DelayRun]:
    """Return the runs that these parts need by their names, each once."""
    return {run.name: run for part in parts for run in part.runs()}


def run_parts(parts: Sequence[DelayPart], *, processes: int, show: Show) -> tuple[list[Section], list[Skipped]]:
    """Return the sections of the parts, and the parts that are skipped because one of their runs failed."""
    return running.run_parts(
        parts, runs_of, perform, lambda part, results: part.make(results), processes=processes, show=show
    )
