"""The Tetris experiment from its parts to their sections: every run once, over all cores."""

from collections.abc import Sequence
from typing import Protocol

from lab.experiments.sections import Section, Skipped
from lab.experiments.tetris.gains import Results
from lab.experiments.tetris.runs import RunSummary, perform, run_name
from lab.sim.parallel import Failed, Show, run_all
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
    runs = runs_of(parts)
    answers = run_all(perform, runs, processes=processes, show=show)
    results = {runs[name]: answer for name, answer in answers.items() if isinstance(answer, RunSummary)}
    skipped = {part.name: reason for part in parts if (reason := _why(part, answers))}
    return [part.section(results) for part in parts if part.name not in skipped], list(skipped.values())


def _why(part: ExperimentPart, answers: "dict[str, RunSummary | Failed]") -> Skipped | None:
    """Return why a part cannot be done: the first of its runs that failed."""
    for name in runs_of([part]):
        answer = answers[name]
        if isinstance(answer, Failed):
            return Skipped(part.name, f"{name}: {answer.reason}", answer.trace)
    return None
