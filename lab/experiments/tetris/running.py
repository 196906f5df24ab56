"""An experiment from its parts to what they came to: every run once, over all cores."""

from collections.abc import Sequence
from typing import Protocol

from lab.experiments.sections import Section, Skipped
from lab.experiments.tetris.gains import Results
from lab.experiments.tetris.runs import RunSummary, name, perform
from lab.sim.parallel import Failed, Show, run_all
from lab.sim.runs import Run


class ExperimentPart(Protocol):
    """A part of an experiment."""

    @property
    def name(self) -> str:
        """What `--only` takes."""

    def runs(self) -> Sequence[Run]:
        """Return what has to be run; parts may share runs."""

    def section(self, results: Results) -> Section:
        """Return what the runs came to."""


def runs_of(parts: Sequence[ExperimentPart]) -> dict[str, Run]:
    """Return the runs that these parts need by their names, each once, in the order in which they are first needed."""
    return {name(run): run for part in parts for run in part.runs()}


def run_parts(parts: Sequence[ExperimentPart], *, processes: int, show: Show) -> tuple[list[Section], list[Skipped]]:
    """Return what the parts came to, and those of which a run failed."""
    asked = runs_of(parts)
    found = run_all(perform, asked, processes=processes, show=show)
    results = {asked[called]: result for called, result in found.items() if isinstance(result, RunSummary)}
    skipped = {part.name: reason for part in parts if (reason := _why(part, found))}
    return [part.section(results) for part in parts if part.name not in skipped], list(skipped.values())


def _why(part: ExperimentPart, found: "dict[str, RunSummary | Failed]") -> Skipped | None:
    """Return why a part cannot be done: the first of its runs that failed."""
    for called in runs_of([part]):
        result = found[called]
        if isinstance(result, Failed):
            return Skipped(part.name, f"{called}: {result.reason}", result.trace)
    return None
