"""The Tetris experiment from its parts to their sections."""

from collections.abc import Sequence
from typing import Protocol

from lab.experiments import running
from lab.experiments.sections import Section, Skipped
from lab.experiments.tetris.gains import Results
from lab.experiments.tetris.runs import perform, run_name
from lab.sim.parallel import Show
from lab.sim.runs import Run


class ExperimentPart(Protocol):
    """A part of an experiment."""

    @property
    def name(self) -> str:
        """What `--only` takes."""

    def runs(self) -> Sequence[Run]:
        """Return the runs that it needs; parts may share some."""

    def section(self, results: Results) -> Section:
        """Return the section that the results make."""


def runs_of(parts: Sequence[ExperimentPart]) -> dict[str, Run]:
    """Return the runs that these parts need by their names, each once, in the order in which they are first needed."""
    return {run_name(run): run for part in parts for run in part.runs()}


def run_parts(parts: Sequence[ExperimentPart], *, processes: int, show: Show) -> tuple[list[Section], list[Skipped]]:
    """Return the sections of the parts, and the parts that are skipped because one of their runs failed."""
    return running.run_parts(
        parts, runs_of, perform, lambda part, results: part.section(results), processes=processes, show=show
    )
